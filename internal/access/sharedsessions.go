package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/sleep"
)

const (
	// touchInterval is how often it is written that a session is used.
	touchInterval = 5 * time.Minute
	// keepTimeout bounds the time for which it is tried to write the state of a renewed session: the old refresh token is used up.
	keepTimeout = 30 * time.Second
	// recordVersion is the version of the record of a session.
	recordVersion = 1
)

// sharedSessions are sessions in records that several gateways share, by the digests of their cookies.
type sharedSessions struct {
	records Records
	tokens  *Tokens
	log     *slog.Logger

	mu       sync.Mutex
	provider Provider // nil: people do not sign in here
}

// sessionRecord is the record of a session.
type sessionRecord struct {
	Version  int       `json:"version"`
	Caller   Caller    `json:"caller"`
	Started  time.Time `json:"started"`
	LastUsed time.Time `json:"last_used"`
	// Every, State and Due are of a session that is renewed. Retry is when the provider may be asked again after a failure.
	Every time.Duration `json:"every,omitempty"`
	State []byte        `json:"state,omitempty"`
	Due   time.Time     `json:"due,omitzero"`
	Retry time.Time     `json:"retry,omitzero"`
}

// NewSharedSessions returns sessions that are known to all gateways with these records. A nil log discards.
func NewSharedSessions(tokens *Tokens, records Records, log *slog.Logger) *Sessions {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := NewSessions(tokens)
	s.shared = &sharedSessions{records: records, tokens: tokens, log: log}
	return s
}

// Use sets the provider that renews sessions that were opened at another gateway. It does nothing for sessions in memory.
func (s *Sessions) Use(p Provider) {
	if s == nil || s.shared == nil {
		return
	}
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	s.shared.provider = p
}

func (s *sharedSessions) renewer() Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.provider
}

// recordKey returns the key of the record of a cookie or of a principal, which it does not show.
func recordKey(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])
}

func sessionError(err error) error { return fmt.Errorf("%w: session: %w", ErrUnavailable, err) }

func (s *sharedSessions) open(ctx context.Context, cookie string, v Caller, renewal *Renewal) error {
	now := time.Now().UTC()
	one := sessionRecord{Version: recordVersion, Caller: v, Started: now, LastUsed: now}
	if renewal != nil {
		one.Every, one.State, one.Due = renewal.Every, renewal.State, now.Add(renewal.Every)
	}
	_, err := s.put(ctx, recordKey(cookie), one, 0)
	return err
}

func (s *sharedSessions) put(ctx context.Context, id string, one sessionRecord, revision uint64) (ok bool, err error) {
	data, err := json.Marshal(one)
	if err == nil {
		ok, err = s.records.Put(ctx, data, revision, id)
	}
	if err != nil {
		return false, sessionError(err)
	}
	return ok, nil
}

// get returns the record of a session, with the revision 0 if there is none.
func (s *sharedSessions) get(ctx context.Context, fresh bool, id string) (one sessionRecord, revision uint64, err error) {
	data, revision, err := s.records.Get(ctx, fresh, id)
	switch {
	case err != nil:
		return one, 0, sessionError(err)
	case revision == 0:
		return one, 0, nil
	case json.Unmarshal(data, &one) != nil:
		return one, 0, sessionError(errors.New("the record is damaged"))
	case one.Version > recordVersion:
		return one, 0, sessionError(errors.New("the record is of a newer version"))
	}
	return one, revision, nil
}

func (s *sharedSessions) lookup(ctx context.Context, cookie string) (Caller, bool, error) {
	id := recordKey(cookie)
	one, revision, err := s.get(ctx, false, id)
	if err != nil || revision == 0 {
		return Caller{}, false, err
	}
	if hasExpired(one.Caller, one.Started, one.LastUsed) {
		s.forget(ctx, id)
		return Caller{}, false, nil
	}
	if !s.tokens.Alive(ctx, one.Caller.Token) {
		return Caller{}, false, nil
	}
	if one.Every > 0 && !time.Now().Before(one.Due) {
		if one, err = s.renew(ctx, id); err != nil || one.Version == 0 {
			return Caller{}, false, err
		}
	} else if time.Since(one.LastUsed) >= touchInterval {
		s.touch(ctx, id, one, revision)
	}
	v := one.Caller
	if one.Every > 0 {
		v.Expires = one.Due
	}
	return v, true, nil
}

// touch writes that a session is used. If another gateway writes it at the same time, or the store does not answer, the next request does.
func (s *sharedSessions) touch(ctx context.Context, id string, one sessionRecord, revision uint64) {
	one.LastUsed = time.Now().UTC()
	if _, err := s.put(ctx, id, one, revision); err != nil {
		s.log.Debug("the use of a session is not in the store", "error", err)
	}
}

// renew reads the caller of a session again, one request of all gateways at a time, as a refresh token may be valid once. It returns the
// record as it is then, without a version if the session has ended or cannot be used now.
func (s *sharedSessions) renew(ctx context.Context, id string) (none sessionRecord, err error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
	defer cancel()
	unlock, err := s.records.Lock(limited, id)
	if err != nil {
		return none, sessionError(err)
	}
	defer unlock()
	one, revision, err := s.get(limited, true, id)
	if err != nil || revision == 0 {
		return none, err
	}
	if time.Now().Before(one.Due) {
		return one, nil // another request was faster
	}
	provider := s.renewer()
	if provider == nil || time.Now().Before(one.Retry) {
		return none, nil
	}
	begun := time.Now()
	v, state, err := provider.Renew(limited, one.State)
	switch {
	case err == nil:
		v.By = BySession
		return s.keep(context.WithoutCancel(ctx), id, func(one *sessionRecord) { one.Caller, one.State, one.Due = v, state, begun.Add(one.Every).UTC() })
	case errors.Is(err, ErrEnded):
		s.log.Info("a session has ended at the provider", "principal", one.Caller.Principal, "reason", err)
		s.forget(limited, id)
		return none, nil
	}
	_, err = s.keep(limited, id, func(one *sessionRecord) { one.Retry = time.Now().Add(retryInterval).UTC() })
	return none, err
}

// keep changes the record of a session while this process has its lock: others only note that it is used, or end it. While the store does
// not answer it is tried again.
func (s *sharedSessions) keep(ctx context.Context, id string, change func(one *sessionRecord)) (one sessionRecord, err error) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	for {
		var revision uint64
		var ok bool
		if one, revision, err = s.get(ctx, true, id); err == nil {
			if revision == 0 { // it was closed in the meantime
				change(&one)
				s.end(ctx, one)
				return sessionRecord{}, nil
			}
			change(&one)
			one.LastUsed = time.Now().UTC()
			if ok, err = s.put(ctx, id, one, revision); ok {
				return one, nil
			}
		}
		if slept := sleep.For(ctx, retryInterval/10); slept != nil {
			return sessionRecord{}, errors.Join(err, slept)
		}
	}
}

// forget deletes the record of a session that has ended by itself. Without the store it expires there.
func (s *sharedSessions) forget(ctx context.Context, id string) {
	if err := s.records.Delete(ctx, id); err != nil {
		s.log.Debug("an ended session is still in the store", "error", err)
	}
}

// end ends a session at the provider.
func (s *sharedSessions) end(ctx context.Context, one sessionRecord) {
	if p := s.renewer(); p != nil && len(one.State) > 0 {
		p.End(ctx, one.State)
	}
}

// close ends a session at all gateways.
func (s *sharedSessions) close(ctx context.Context, cookie string) (signedIn bool, err error) {
	id := recordKey(cookie)
	one, revision, err := s.get(ctx, true, id)
	if err != nil || revision == 0 {
		return false, err
	}
	if err := s.records.Delete(ctx, id); err != nil {
		return false, sessionError(err)
	}
	s.end(ctx, one)
	return one.Every > 0, nil
}
