package access

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"sallyport/internal/tool"
)

const (
	// codeLife is how long a one-time code is valid.
	codeLife = time.Minute
	// sessionIdle is how long a session lasts without a request, sessionLife how long at most.
	sessionIdle, sessionLife = 12 * time.Hour, 7 * 24 * time.Hour
	// maxCodes and maxSessions bound the numbers of codes and sessions. The oldest code or the least recently used session is evicted.
	maxCodes, maxSessions = 16, 256
)

// OperatorName is the operator in records of what is done in a session that was opened with a one-time code.
const OperatorName = "dashboard"

// Sessions holds browser sessions and one-time login codes. They are in memory, so a restart ends them, but for sessions in records that
// gateways share. Cookies and codes are held as digests. It is safe for concurrent use.
type Sessions struct {
	tokens *Tokens
	shared *sharedSessions // nil: all are in memory

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // when each expires
	open  map[[sha256.Size]byte]*session
}

type session struct {
	caller            Caller
	started, lastUsed time.Time
	// renewal is nil for a session that is not renewed. due is when the caller must be read again, and renewing is closed when
	// the request that does so is over; nil while none does.
	renewal  *Renewal
	due      time.Time
	renewing chan struct{}
	// retry is when the provider may be asked again after a failure.
	retry time.Time
	// ended is set when the provider refuses to renew it.
	ended bool
}

// NewSessions returns sessions that end when the tokens that opened them are revoked or expire.
func NewSessions(tokens *Tokens) *Sessions {
	return &Sessions{tokens: tokens, codes: map[[sha256.Size]byte]time.Time{}, open: map[[sha256.Size]byte]*session{}}
}

// NewCode returns a new code with which a browser can log in once, within a minute, as an operator.
func (s *Sessions) NewCode() string {
	code := randomText()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var oldest [sha256.Size]byte
	for known, ends := range s.codes {
		if !now.Before(ends) {
			delete(s.codes, known)
		} else if first, ok := s.codes[oldest]; !ok || ends.Before(first) {
			oldest = known
		}
	}
	if len(s.codes) >= maxCodes {
		delete(s.codes, oldest)
	}
	s.codes[sha256.Sum256([]byte(code))] = now.Add(codeLife)
	return code
}

// Redeem returns the visitor of a code and invalidates the code. It returns false for an invalid code.
func (s *Sessions) Redeem(code string) (Caller, bool) {
	key := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	ends, ok := s.codes[key]
	delete(s.codes, key)
	if !ok || !time.Now().Before(ends) {
		return Caller{}, false
	}
	return Caller{By: BySession, Scopes: tool.Scopes(), Operator: OperatorName, Local: true}, true
}

// Open begins a session of a visitor, and returns its cookie.
func (s *Sessions) Open(ctx context.Context, v Caller) (cookie string, err error) {
	return s.OpenRenewed(ctx, v, nil)
}

// OpenRenewed is Open for a session of a provider: the first request after each interval waits until the caller is read again. The error
// is [ErrUnavailable].
func (s *Sessions) OpenRenewed(ctx context.Context, v Caller, renewal *Renewal) (cookie string, err error) {
	cookie = randomText()
	v.By = BySession
	if s.shared != nil && !v.Local { // a code is of the owner of this gateway's data directory, who may not own the others
		return cookie, s.shared.open(ctx, cookie, v, renewal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.open[sha256.Sum256([]byte(cookie))] = opened(v, renewal, time.Now())
	return cookie, nil
}

// sweep makes room for a session. It is called with mu held.
func (s *Sessions) sweep() {
	var oldest [sha256.Size]byte
	var since time.Time
	for key, one := range s.open {
		if !s.valid(one) {
			delete(s.open, key)
		} else if since.IsZero() || one.lastUsed.Before(since) {
			oldest, since = key, one.lastUsed
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
}

// Lookup returns the visitor of a browser's session, if it is valid. It may wait for the provider of the session. The error is
// [ErrUnavailable].
func (s *Sessions) Lookup(ctx context.Context, cookie string) (v Caller, ok bool, err error) {
	if v, known := s.lookup(ctx, cookie); known || s.shared == nil {
		return v, known, nil
	}
	return s.shared.lookup(ctx, cookie)
}

// lookup returns the visitor of a session in memory.
func (s *Sessions) lookup(ctx context.Context, cookie string) (Caller, bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[key]
	for renewed := false; ok && s.valid(one); renewed = true {
		if one.renewal == nil || renewed || time.Now().Before(one.due) {
			one.lastUsed = time.Now()
			return one.visitor(), true
		}
		if !s.renew(ctx, one) {
			return Caller{}, false
		}
		one, ok = s.open[key]
	}
	delete(s.open, key)
	return Caller{}, false
}

// valid reports whether a session is valid: neither it nor its token has expired.
func (s *Sessions) valid(one *session) bool {
	return !one.ended && !hasExpired(one.caller, one.started, one.lastUsed) && s.tokens.Alive(context.Background(), one.caller.Token)
}

// hasExpired reports whether the session of a caller has expired.
func hasExpired(v Caller, started, lastUsed time.Time) bool {
	now := time.Now()
	return now.Sub(lastUsed) >= sessionIdle || now.Sub(started) >= sessionLife || !v.Expires.IsZero() && !now.Before(v.Expires)
}

// Close ends a session, and reports whether it was that of a person who signed in at a provider. After an error it may not have ended.
func (s *Sessions) Close(ctx context.Context, cookie string) (signedIn bool, err error) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	one := s.open[key]
	delete(s.open, key)
	if one == nil && s.shared != nil {
		s.mu.Unlock()
		return s.shared.close(ctx, cookie)
	}
	defer s.mu.Unlock()
	if one == nil || one.renewal == nil {
		return false, nil
	}
	for one.renewing != nil && s.renew(ctx, one) { // for the state after it
	}
	state, provider := one.renewal.State, one.renewal.Provider
	s.mu.Unlock()
	provider.End(ctx, state)
	s.mu.Lock()
	return true, nil
}
