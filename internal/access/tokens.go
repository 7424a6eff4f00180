package access

import (
	"crypto/subtle"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

// ErrUnknown reports an invalid token. Details in the error are for the log only.
var ErrUnknown = errors.New("unknown token")

// usedResolution is the resolution of the last use of a token.
const usedResolution = time.Minute

// Tokens are the tokens of a data directory. It reloads them when another process changes the file; if the file cannot
// be read, there are none. It is safe for concurrent use; nil has no tokens.
type Tokens struct {
	dir      string
	log      *slog.Logger
	mu       sync.Mutex
	lastInfo os.FileInfo // of the file when it was last read; nil: it did not exist
	byID     map[string]Token
	used     map[string]time.Time // the last use of each token, by id
	dirty    bool                 // used has changes that are not saved
}

// OpenTokens returns the tokens of a data directory; nil if it is "". A nil log discards.
func OpenTokens(dataDir string, log *slog.Logger) *Tokens {
	if dataDir == "" {
		return nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Tokens{dir: filepath.Join(dataDir, Folder), log: log, byID: map[string]Token{}, used: map[string]time.Time{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return t
}

// Exist reports whether there are any tokens.
func (t *Tokens) Exist() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return len(t.byID) > 0
}

// Check returns the visitor of a token. The error is ErrUnknown or ErrMistyped.
func (t *Tokens) Check(token string) (Caller, error) {
	id, err := idOf(token)
	if t == nil || err != nil || id == "" {
		return Caller{}, errors.Join(ErrUnknown, err)
	}
	sum := digest(token)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	known, ok := t.byID[id]
	now := time.Now()
	if !ok || subtle.ConstantTimeCompare([]byte(known.Digest), []byte(sum)) != 1 || known.Expired(now) {
		return Caller{}, ErrUnknown
	}
	if now.Sub(t.used[id]) >= usedResolution {
		t.used[id], t.dirty = now, true
	}
	return newCaller(known), nil
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

// Alive reports whether the token with an id is still valid. It is true for "", which means sessions without a token.
func (t *Tokens) Alive(id string) bool {
	if id == "" {
		return true
	}
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	known, ok := t.byID[id]
	return ok && !known.Expired(time.Now())
}

// reload reads the file if it has changed. It is called with mu held.
func (t *Tokens) reload() {
	path := filepath.Join(t.dir, tokensFile)
	info, err := os.Stat(path)
	if err != nil {
		if t.lastInfo != nil || !errors.Is(err, os.ErrNotExist) {
			t.lastInfo, t.byID = nil, map[string]Token{}
		}
		return
	}
	if t.lastInfo != nil && os.SameFile(info, t.lastInfo) && info.ModTime().Equal(t.lastInfo.ModTime()) && info.Size() == t.lastInfo.Size() {
		return
	}
	t.lastInfo, t.byID = info, map[string]Token{}
	all, err := readTokens(t.dir)
	if err != nil {
		t.log.Error("all tokens of sallyport token are refused", "error", err)
		return
	}
	for _, one := range all {
		t.byID[one.ID] = one
	}
}

// SaveUsage saves when tokens were used last, if that has changed.
func (t *Tokens) SaveUsage() {
	if t == nil {
		return
	}
	t.mu.Lock()
	fresh, used, known := t.dirty, maps.Clone(t.used), maps.Clone(t.byID)
	t.dirty = false
	t.mu.Unlock()
	if !fresh {
		return
	}
	unlock, err := filelock.Dir(t.dir, time.Second)
	if err != nil {
		return // not worth a longer wait
	}
	defer unlock()
	for id, at := range readUsed(t.dir) {
		if at.After(used[id]) {
			used[id] = at
		}
	}
	maps.DeleteFunc(used, func(id string, _ time.Time) bool { _, ok := known[id]; return !ok })
	if err := writeChecked(t.dir, usedFile, used); err != nil {
		t.log.Warn("cannot save when tokens were used", "error", err)
	}
}

// readUsed returns when each token was used last, by its id. It is empty if the file cannot be read.
func readUsed(dir string) map[string]time.Time {
	used := map[string]time.Time{}
	if readChecked(dir, usedFile, &used) != nil || used == nil {
		return map[string]time.Time{}
	}
	return used
}
