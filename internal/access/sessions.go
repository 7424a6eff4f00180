package access

import (
	"crypto/sha256"
	"sync"
	"time"

	"sallyport/internal/tool"
)

const (
	// codeLife is how long a one-time code is good.
	codeLife = time.Minute
	// sessionIdle is how long a session lasts without a request, sessionLife how long at most.
	sessionIdle, sessionLife = 12 * time.Hour, 7 * 24 * time.Hour
	// maxCodes and maxSessions are how many there can be; the oldest code, and the session that was used the longest time ago, makes room.
	maxCodes, maxSessions = 16, 256
)

// OperatorName is who stands on record for what is done in a session that a one-time code has opened.
const OperatorName = "dashboard"

// Sessions are those of browsers, and the one-time codes that open some. They are in memory: a restart ends all. What
// opens them is kept as a digest. It is safe for concurrent use.
type Sessions struct {
	tokens *Tokens

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // when each ends
	open  map[[sha256.Size]byte]*session
}

type session struct {
	visitor      Visitor
	begun, asked time.Time
}

// NewSessions returns sessions that end with the tokens by which they were opened.
func NewSessions(tokens *Tokens) *Sessions {
	return &Sessions{tokens: tokens, codes: map[[sha256.Size]byte]time.Time{}, open: map[[sha256.Size]byte]*session{}}
}

// Code makes a code by which a browser can come in once, within a minute, as an operator.
func (s *Sessions) Code() string {
	code := randomName()
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

// Redeem returns the visitor of a code, which is used up.
func (s *Sessions) Redeem(code string) (Visitor, bool) {
	key := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	ends, ok := s.codes[key]
	delete(s.codes, key)
	if !ok || !time.Now().Before(ends) {
		return Visitor{}, false
	}
	return Visitor{By: BySession, Scopes: tool.Scopes(), Operator: OperatorName}, true
}

// Open begins a session of a visitor, and returns what its browser has to bring along.
func (s *Sessions) Open(v Visitor) (cookie string) {
	cookie = randomName()
	v.By = BySession
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	now := time.Now()
	s.open[sha256.Sum256([]byte(cookie))] = &session{visitor: v, begun: now, asked: now}
	return cookie
}

// sweep makes room for a session. It is called with mu held.
func (s *Sessions) sweep() {
	var oldest [sha256.Size]byte
	var since time.Time
	for key, one := range s.open {
		if !s.lasts(one) {
			delete(s.open, key)
		} else if since.IsZero() || one.asked.Before(since) {
			oldest, since = key, one.asked
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
}

// Of returns the visitor of a browser's session, if it is valid.
func (s *Sessions) Of(cookie string) (Visitor, bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[key]
	if !ok {
		return Visitor{}, false
	}
	if !s.lasts(one) {
		delete(s.open, key)
		return Visitor{}, false
	}
	one.asked = time.Now()
	return one.visitor, true
}

// lasts reports whether a session continues: neither its time nor that of its token is over.
func (s *Sessions) lasts(one *session) bool {
	now := time.Now()
	if now.Sub(one.asked) >= sessionIdle || now.Sub(one.begun) >= sessionLife {
		return false
	}
	if v := one.visitor; !v.Expires.IsZero() && !now.Before(v.Expires) {
		return false
	}
	return s.tokens.Alive(one.visitor.Token)
}

// Close ends a session.
func (s *Sessions) Close(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(cookie)))
}
