package access

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKeys is how many principals and addresses are counted apart; all beyond them share one count.
const maxKeys = 4096

// Limits count how often each of many does something: a whole period's worth at once, after that as it comes in. It
// is safe for concurrent use.
type Limits struct {
	usual Rate

	mu     sync.Mutex
	byKey  map[string]*counted
	others *counted
	swept  time.Time
}

type counted struct {
	*rate.Limiter
	rate Rate
}

// NewLimits returns counts with a rate for those who have none of their own; 0 is no limit.
func NewLimits(usual Rate) *Limits {
	return &Limits{usual: usual, byKey: map[string]*counted{}, others: newCounted(usual)}
}

func newCounted(r Rate) *counted {
	if r.Count == 0 {
		return &counted{rate.NewLimiter(rate.Inf, 0), r}
	}
	return &counted{rate.NewLimiter(rate.Limit(float64(r.Count)/r.Per.Seconds()), r.Count), r}
}

// Standing is the remaining quota of a caller.
type Standing struct {
	// OK says that it may be done. If not, it may After some time.
	OK    bool
	After time.Duration
	// Rate is the limit, Left how often more at once, and Full when all of it is back.
	Rate Rate
	Left int
	Full time.Duration
}

// Take counts one. own, if any, is the rate of this key.
func (l *Limits) Take(key string, own Rate) Standing {
	now := time.Now()
	l.mu.Lock()
	c := l.of(key, own, now)
	l.mu.Unlock()
	if c.rate.Count == 0 {
		return Standing{OK: true}
	}
	s := Standing{OK: c.AllowN(now, 1), Rate: c.rate}
	tokens, perSecond := c.TokensAt(now), float64(c.Limit())
	s.Left = max(0, int(tokens))
	s.Full = seconds((float64(c.rate.Count) - tokens) / perSecond)
	if !s.OK {
		s.After = seconds((1 - tokens) / perSecond)
	}
	return s
}

// seconds rounds up: a retry after them succeeds.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(max(s, 0))) * time.Second
}

// of returns the count of a key. It is called with mu held.
func (l *Limits) of(key string, own Rate, now time.Time) *counted {
	wanted := l.usual
	if own.Count > 0 {
		wanted = own
	}
	if c, ok := l.byKey[key]; ok && c.rate == wanted {
		return c
	}
	if _, ok := l.byKey[key]; !ok && len(l.byKey) >= maxKeys && !l.forget(now) {
		return l.others
	}
	c := newCounted(wanted)
	l.byKey[key] = c
	return c
}

// forget drops the counts that are as if nothing had been done, once a second: a flood of addresses must not cost more.
func (l *Limits) forget(now time.Time) bool {
	if now.Sub(l.swept) < time.Second {
		return false
	}
	l.swept = now
	for key, c := range l.byKey {
		if c.TokensAt(now) >= float64(c.rate.Count) {
			delete(l.byKey, key)
		}
	}
	return len(l.byKey) < maxKeys
}
