package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/internal/tool"
)

// ErrUnknown reports an invalid token. Details in the error are for the log only.
var ErrUnknown = errors.New("unknown token")

// ErrUnavailable reports that it is not known whether a token or a session is valid, as the store does not answer.
var ErrUnavailable = errors.New("the store does not answer")

// usedResolution is the resolution of the last use of a token.
const usedResolution = time.Minute

// Tokens are the tokens of a place, which other processes may change. It is safe for concurrent use; nil has no tokens.
type Tokens struct {
	place Place
	log   *slog.Logger

	mu    sync.Mutex
	used  map[string]time.Time // the last use of each token, by id
	dirty bool                 // used has changes that are not saved
}

// OpenTokens returns the tokens of a place; nil if it is nil. A nil log discards.
func OpenTokens(in Place, log *slog.Logger) *Tokens {
	if in == nil {
		return nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Tokens{place: in, log: log, used: map[string]time.Time{}}
}

// Exist reports whether there are any tokens. The error is [ErrUnavailable] if that is not known.
func (t *Tokens) Exist(ctx context.Context) (bool, error) {
	if t == nil {
		return false, nil
	}
	all, err := t.place.tokens(ctx, true)
	return len(all) > 0, err
}

// Check returns the visitor of a token. The error is ErrUnknown, ErrMistyped or ErrUnavailable.
func (t *Tokens) Check(ctx context.Context, token string) (Caller, error) {
	id, err := idOf(token)
	if t == nil || err != nil || id == "" {
		return Caller{}, errors.Join(ErrUnknown, err)
	}
	known, ok, err := t.find(ctx, id)
	if err != nil {
		return Caller{}, err
	}
	now := time.Now()
	if !ok || subtle.ConstantTimeCompare([]byte(known.Digest), []byte(digest(token))) != 1 || known.Expired(now) {
		return Caller{}, ErrUnknown
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.used[id]) >= usedResolution {
		t.used[id], t.dirty = now, true
	}
	return newCaller(known), nil
}

// find returns the token with an id. One that is not known may have been made a moment ago.
func (t *Tokens) find(ctx context.Context, id string) (known Token, ok bool, err error) {
	for _, fresh := range []bool{false, true} {
		all, err := t.place.tokens(ctx, fresh)
		if err != nil {
			return Token{}, false, err
		}
		if known, ok = all[id]; ok {
			break
		}
	}
	return known, ok, nil
}

func newCaller(t Token) Caller {
	v := Caller{By: ByToken, Principal: "token:" + t.Name, Scopes: slices.Clone(t.Scopes), Token: t.ID, Rate: t.Rate}
	if t.Expires != nil {
		v.Expires = *t.Expires
	}
	if slices.Contains(v.Scopes, tool.ScopeOperate) {
		v.Operator = v.Principal
	}
	return v
}

// Alive reports whether the token with an id is still valid. It is true for "", which means sessions without a token, and false if
// it is not known.
func (t *Tokens) Alive(ctx context.Context, id string) bool {
	if id == "" {
		return true
	}
	if t == nil {
		return false
	}
	all, err := t.place.tokens(ctx, false)
	known, ok := all[id]
	return err == nil && ok && !known.Expired(time.Now())
}

// SaveUsage saves when tokens were used last, if that has changed.
func (t *Tokens) SaveUsage(ctx context.Context) {
	if t == nil {
		return
	}
	t.mu.Lock()
	fresh, used := t.dirty, maps.Clone(t.used)
	t.dirty = false
	t.mu.Unlock()
	if !fresh {
		return
	}
	known, err := t.place.tokens(ctx, false)
	if err == nil {
		err = t.place.saveUsed(ctx, used, known)
	}
	if err != nil {
		t.log.Warn("cannot save when tokens were used", "error", err)
	}
}
