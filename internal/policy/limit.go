package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// The windows of limits.
var (
	windows = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	pers    = []string{"minute", "hour", "day", "execution", "session"}
	bys     = []string{"", "principal", "session", "execution", "everyone"}
)

type keyed struct{ key, message string }

func (l *Limits) problems(then Action) (all []keyed) {
	switch {
	case l == nil && then == Limit:
		return []keyed{{"then", "a rule that limits needs limit: {calls: 10, per: minute}"}}
	case l == nil:
		return nil
	case then != Limit:
		return []keyed{{"limit", "only a rule with then: limit has a limit"}}
	}
	if l.Calls < 1 {
		all = append(all, keyed{"limit.calls", "calls must be at least 1; to allow none, use then: deny"})
	}
	if !slices.Contains(pers, l.Per) {
		all = append(all, keyed{"limit.per", "per must be one of " + strings.Join(pers, ", ")})
	}
	if !slices.Contains(bys, l.By) {
		all = append(all, keyed{"limit.by", "by must be one of " + strings.Join(bys[1:], ", ")})
	}
	if windows[l.Per] == 0 && l.By != "" && l.By != l.Per {
		all = append(all, keyed{"limit.by", "what is counted per execution or session is counted by that alone; leave by out"})
	}
	return all
}

// limiter counts for one rule.
type limiter struct {
	rule   string
	most   int64
	window time.Duration // 0 is for as long as the key lasts
	by     string
	per    string
}

func newLimiter(l Limits, rule string) limiter {
	window := windows[l.Per]
	by := l.By
	if by == "" {
		by = "principal"
	}
	if window == 0 {
		by = l.Per
	}
	return limiter{rule: rule, most: int64(l.Calls), window: window, by: by, per: l.Per}
}

// identity is the same for a rule that has not changed when settings are loaded again.
func (r *compiled) identity() string {
	data, _ := json.Marshal(r.Rule) // strings and numbers only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// key names the count of a call; ok is false for a call without one.
func (l limiter) key(c *Call) (key string, ok bool) {
	parts := []string{l.rule}
	switch l.by {
	case "principal":
		parts = append(parts, c.Principal)
	case "session":
		parts = append(parts, c.Principal, c.Session)
	case "execution":
		if c.Execution == "" {
			return "", false // one that no program makes is alone
		}
		parts = append(parts, c.Principal, c.Execution)
	}
	return strings.Join(parts, "\x00"), true
}

// maxCounts is how many counts are kept; the one that was used the longest time ago goes.
const maxCounts = 50_000

// Counts keep what limits have counted, in memory only. It is safe for concurrent use.
type Counts struct {
	mu  sync.Mutex
	all map[string]*count
}

// NewCounts has counted nothing.
func NewCounts() *Counts { return &Counts{all: map[string]*count{}} }

// count is of this window and of the one before it, from which what slides out is reckoned.
type count struct {
	start     time.Time
	now, last int64
	used      time.Time
}

// wanted is what a call would add to a count.
type wanted struct {
	rule *compiled
	cost int64
}

// take adds to all counts, or to none if one is used up; that one's rule is returned.
func (c *Counts) take(call *Call, all []wanted) *compiled {
	if len(all) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make([]*count, len(all))
	for i, w := range all {
		l := w.rule.limit
		used := int64(0)
		if key, ok := l.key(call); ok {
			counts[i] = c.at(key, call.Time)
			used = counts[i].spent(l.window, call.Time)
		}
		if w.cost > l.most || used > l.most-w.cost {
			return w.rule
		}
	}
	for i, w := range all {
		if counts[i] != nil {
			counts[i].now += w.cost
		}
	}
	return nil
}

// at returns a count, which is made where there is none.
func (c *Counts) at(key string, now time.Time) *count {
	one := c.all[key]
	if one == nil {
		c.shrink()
		one = &count{start: now}
		c.all[key] = one
	}
	one.used = now
	return one
}

// shrink makes room, of some at once, as looking for the oldest takes time.
func (c *Counts) shrink() {
	if len(c.all) < maxCounts {
		return
	}
	keys := make([]string, 0, len(c.all))
	for key := range c.all {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(c.all[a].used.UnixNano(), c.all[b].used.UnixNano()) })
	for _, key := range keys[:len(keys)/10] {
		delete(c.all, key)
	}
}

// spent is how much of a window that ends now is used up.
func (c *count) spent(window time.Duration, now time.Time) int64 {
	if window == 0 {
		return c.now
	}
	switch past := now.Sub(c.start); {
	case past >= 2*window:
		c.start, c.now, c.last = now, 0, 0
	case past >= window:
		c.start, c.now, c.last = c.start.Add(window), 0, c.now
	}
	left := window - max(now.Sub(c.start), 0)
	return c.now + int64(float64(c.last)*float64(left)/float64(window))
}
