package access

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKeys bounds the number of principals and addresses with their own limiter; all others share one.
const maxKeys = 4096

// Limits are token buckets by key, such as a principal or an address. The burst is the count of the rate. It is safe for
// concurrent use.
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

// NewLimits returns limits with a default rate; 0 is no limit.
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
	// OK reports that the request is allowed. If not, a retry is allowed after After.
	OK    bool
	After time.Duration
	// Rate is the limit, Left the number of requests that are allowed now, and Full the time until Left is Rate.Count.
	Rate Rate
	Left int
	Full time.Duration
}

// Take counts one request of a key. A nonzero own replaces the default rate.
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

// seconds rounds up to seconds, so that a retry after them succeeds.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(max(s, 0))) * time.Second
}

// of returns the limiter of a key. It is called with mu held.
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

// forget drops full limiters, at most once a second, and reports whether there is room. It is called with mu held.
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
