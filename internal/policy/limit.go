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
	windows      = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	limitPeriods = []string{"minute", "hour", "day", "execution", "session"}
	limitScopes  = []string{"", "principal", "session", "execution", "everyone"}
)

type keyedProblem struct{ key, message string }

func (l *Limits) problems(then Action) (all []keyedProblem) {
	switch {
	case l == nil && then == Limit:
		return []keyedProblem{{"then", "a rule that limits needs limit: {calls: 10, per: minute}"}}
	case l == nil:
		return nil
	case then != Limit:
		return []keyedProblem{{"limit", "only a rule with then: limit has a limit"}}
	}
	if l.Calls < 1 {
		all = append(all, keyedProblem{"limit.calls", "calls must be at least 1; to allow none, use then: deny"})
	}
	if !slices.Contains(limitPeriods, l.Per) {
		all = append(all, keyedProblem{"limit.per", "per must be one of " + strings.Join(limitPeriods, ", ")})
	}
	if !slices.Contains(limitScopes, l.By) {
		all = append(all, keyedProblem{"limit.by", "by must be one of " + strings.Join(limitScopes[1:], ", ")})
	}
	if windows[l.Per] == 0 && l.By != "" && l.By != l.Per {
		all = append(all, keyedProblem{"limit.by", "what is counted per execution or session is counted by that alone; leave by out"})
	}
	return all
}

// limiter counts for one rule.
type limiter struct {
	rule   string
	most   int64
	window time.Duration // 0 means as long as the key exists
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

// identity is stable for a rule that does not change across reloads of the settings.
func (r *compiled) identity() string {
	data, _ := json.Marshal(r.Rule) // strings and numbers only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// key returns the key of a call's count; ok is false if the limit does not apply.
func (l limiter) key(c *Call) (key string, ok bool) {
	parts := []string{l.rule}
	switch l.by {
	case "principal":
		parts = append(parts, c.Principal)
	case "session":
		parts = append(parts, c.Principal, c.Session)
	case "execution":
		if c.Execution == "" {
			return "", false // a call outside of a program has no execution
		}
		parts = append(parts, c.Principal, c.Execution)
	}
	return strings.Join(parts, "\x00"), true
}

// maxCounts bounds the number of counts; beyond it the least recently used ones are dropped.
const maxCounts = 50_000

// Counts holds the counts of limits, in memory only. It is safe for concurrent use.
type Counts struct {
	mu  sync.Mutex
	all map[string]*count
}

// NewCounts returns empty counts.
func NewCounts() *Counts { return &Counts{all: map[string]*count{}} }

// count covers the current window and the previous one, from which a sliding window is estimated.
type count struct {
	start     time.Time
	now, last int64
	used      time.Time
}

// charge is the amount that a call would add to a count.
type charge struct {
	rule *compiled
	cost int64
}

// take adds to all counts, or to none if one limit is exceeded; it returns that limit's rule.
func (c *Counts) take(call *Call, all []charge) *compiled {
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
			used = counts[i].usage(l.window, call.Time)
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

// at returns a count, creating it if needed.
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

// shrink drops several counts at once, as finding the oldest takes time.
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

// usage returns how much of a window that ends now is used.
func (c *count) usage(window time.Duration, now time.Time) int64 {
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
