package access

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Subject is a verified token of an identity provider, with which a principal called or signed in.
type Subject struct {
	// Token is the token. Formatting does not show it.
	Token string
	// Kind is access_token or id_token.
	Kind string
	// Issuer and ID are the person: the claims iss and sub.
	Issuer, ID string
	// Expires is when it expires; zero if unknown.
	Expires time.Time
	// Seen is when the principal first came with it.
	Seen time.Time
}

// Format writes the kind for every verb.
func (s Subject) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.Kind+" of a subject") }

// usable reports whether a token is valid long enough for a request.
func (s Subject) usable(now time.Time) bool {
	return s.Token != "" && s.ID != "" && (s.Expires.IsZero() || now.Add(subjectMargin).Before(s.Expires))
}

// outlives reports whether a token expires later than another one.
func (s Subject) outlives(other Subject) bool {
	return !s.Expires.IsZero() && !other.Expires.IsZero() && s.Expires.After(other.Expires)
}

const (
	// subjectMargin is how long a token must be valid.
	subjectMargin = 5 * time.Second
	// maxSubjects bounds the number of kept tokens, maxSubject the size of one, in bytes.
	maxSubjects, maxSubject = 20_000, 16 << 10
)

// Subjects holds the tokens with which principals have come, for exchange at the identity providers that issued them. They are in
// memory, and with [Subjects.Share] in records, until they expire or their principal logs out. It is safe for concurrent use; a nil Subjects keeps nothing.
type Subjects struct {
	records Records // nil: they are in memory only

	mu     sync.Mutex
	tokens map[subjectKey]Subject
	// keep reports whether the tokens of an issuer are of use, forget deletes what a principal got in exchange.
	keep   func(issuer string) bool
	forget func(ctx context.Context, principal string)
}

type subjectKey struct{ principal, issuer, kind string }

// NewSubjects returns an empty store, which keeps nothing before [Subjects.Use].
func NewSubjects() *Subjects { return &Subjects{tokens: map[subjectKey]Subject{}} }

// Use makes it keep the tokens of some issuers. forget is called when a principal has logged out, or is another person than before.
func (s *Subjects) Use(keep func(issuer string) bool, forget func(ctx context.Context, principal string)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep, s.forget = keep, forget
}

// Put keeps tokens of a principal that are verified, each in place of one that expires earlier.
func (s *Subjects) Put(ctx context.Context, principal string, tokens ...Subject) {
	if s == nil || principal == "" {
		return
	}
	for _, one := range tokens {
		other, added := s.put(principal, one)
		if other {
			s.forget(ctx, principal)
		}
		if added && s.records != nil {
			_ = s.putShared(ctx, principal, one) // without the store it is known here only
		}
	}
}

// put reports whether the principal is another person than before, and whether the token was added.
func (s *Subjects) put(principal string, one Subject) (other, added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.keep == nil || !one.usable(now) || len(one.Token) > maxSubject || !s.keep(one.Issuer) {
		return false, false
	}
	key := subjectKey{principal, one.Issuer, one.Kind}
	if s.tokens[key].Token == one.Token {
		return false, false // the common case: another request with the same token
	}
	for key, known := range s.tokens {
		if key.principal == principal && key.issuer == one.Issuer && known.ID != one.ID {
			delete(s.tokens, key)
			other = true
		}
	}
	if s.tokens[key].outlives(one) {
		return other, false
	}
	s.sweep(now)
	one.Seen = now
	s.tokens[key] = one
	return other, true
}

// sweep makes room. It is called with mu held.
func (s *Subjects) sweep(now time.Time) {
	if len(s.tokens) < maxSubjects {
		return
	}
	var oldest subjectKey
	var since time.Time
	for key, one := range s.tokens {
		if !one.usable(now) {
			delete(s.tokens, key)
		} else if since.IsZero() || one.Seen.Before(since) {
			oldest, since = key, one.Seen
		}
	}
	if len(s.tokens) >= maxSubjects {
		delete(s.tokens, oldest)
	}
}

// Get returns a token of a principal that has not expired.
func (s *Subjects) Get(principal, issuer, kind string) (Subject, bool) {
	if s == nil {
		return Subject{}, false
	}
	key := subjectKey{principal, issuer, kind}
	if s.records != nil {
		if one, ok, known := s.getShared(key); known {
			if !ok { // it has expired, or the principal has logged out anywhere
				s.drop(key)
			}
			return one, ok
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.tokens[key]
	if ok && !one.usable(time.Now()) {
		delete(s.tokens, key)
		return Subject{}, false
	}
	return one, ok
}

func (s *Subjects) drop(key subjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, key)
}

// Forget deletes the tokens of a principal, and what it got in exchange.
func (s *Subjects) Forget(ctx context.Context, principal string) {
	if s == nil || principal == "" {
		return
	}
	s.mu.Lock()
	for key := range s.tokens {
		if key.principal == principal {
			delete(s.tokens, key)
		}
	}
	forget := s.forget
	s.mu.Unlock()
	if s.records != nil {
		_ = s.records.Delete(ctx, recordKey(principal)) // without the store they expire there
	}
	if forget != nil {
		forget(ctx, principal)
	}
}
