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
	defaultRate Rate

	mu        sync.Mutex
	byKey     map[string]*limiter
	overflow  *limiter
	lastSweep time.Time
}

type limiter struct {
	*rate.Limiter
	rate Rate
}

// NewLimits returns limits with a default rate; 0 is no limit.
func NewLimits(usual Rate) *Limits {
	return &Limits{defaultRate: usual, byKey: map[string]*limiter{}, overflow: newLimiter(usual)}
}

func newLimiter(r Rate) *limiter {
	if r.Count == 0 {
		return &limiter{rate.NewLimiter(rate.Inf, 0), r}
	}
	return &limiter{rate.NewLimiter(rate.Limit(float64(r.Count)/r.Per.Seconds()), r.Count), r}
}

// Quota is the remaining quota of a caller.
type Quota struct {
	// OK reports that the request is allowed. If not, a retry is allowed after After.
	OK         bool
	RetryAfter time.Duration
	// Rate is the limit, Left the number of requests that are allowed now, and Full the time until Left is Rate.Count.
	Rate       Rate
	Remaining  int
	ResetAfter time.Duration
}

// Take counts one request of a key. A nonzero own replaces the default rate.
func (l *Limits) Take(key string, own Rate) Quota {
	now := time.Now()
	l.mu.Lock()
	c := l.get(key, own, now)
	l.mu.Unlock()
	if c.rate.Count == 0 {
		return Quota{OK: true}
	}
	s := Quota{OK: c.AllowN(now, 1), Rate: c.rate}
	tokens, perSecond := c.TokensAt(now), float64(c.Limit())
	s.Remaining = max(0, int(tokens))
	s.ResetAfter = ceilSeconds((float64(c.rate.Count) - tokens) / perSecond)
	if !s.OK {
		s.RetryAfter = ceilSeconds((1 - tokens) / perSecond)
	}
	return s
}

// ceilSeconds rounds up to seconds, so that a retry after them succeeds.
func ceilSeconds(s float64) time.Duration {
	return time.Duration(math.Ceil(max(s, 0))) * time.Second
}

// get returns the limiter of a key. It is called with mu held.
func (l *Limits) get(key string, own Rate, now time.Time) *limiter {
	wanted := l.defaultRate
	if own.Count > 0 {
		wanted = own
	}
	if c, ok := l.byKey[key]; ok && c.rate == wanted {
		return c
	}
	if _, ok := l.byKey[key]; !ok && len(l.byKey) >= maxKeys && !l.evictIdle(now) {
		return l.overflow
	}
	c := newLimiter(wanted)
	l.byKey[key] = c
	return c
}

// evictIdle drops full limiters, at most once a second, and reports whether there is room. It is called with mu held.
func (l *Limits) evictIdle(now time.Time) bool {
	if now.Sub(l.lastSweep) < time.Second {
		return false
	}
	l.lastSweep = now
	for key, c := range l.byKey {
		if c.TokensAt(now) >= float64(c.rate.Count) {
			delete(l.byKey, key)
		}
	}
	return len(l.byKey) < maxKeys
}
