package policy

import (
	"cmp"
	"context"
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

// Counts holds the counts of limits. It is safe for concurrent use.
type Counts struct {
	shared SharedCounts // nil if there is one gateway

	mu  sync.Mutex
	all map[string]*keptCount
}

// SharedCounts holds the counts of limits that several gateways have in common. It is safe for concurrent use.
type SharedCounts interface {
	// Change calls change with the count of a key, also several times, and stores what the last call made of it, unless that
	// returned false; done is what it returned. A key without a count has the zero Count. After an error the count may be changed.
	Change(ctx context.Context, key string, change func(c *Count) bool) (done bool, err error)
}

// NewCounts returns empty counts. Those of limits per execution are in memory, as those of all limits if shared is nil.
func NewCounts(shared SharedCounts) *Counts {
	return &Counts{shared: shared, all: map[string]*keptCount{}}
}

// Count covers the current window and the previous one, from which a sliding window is estimated.
type Count struct {
	Start time.Time `json:"start,omitzero"`
	Now   int64     `json:"now"`
	Last  int64     `json:"last,omitempty"`
}

// keptCount is a Count in memory.
type keptCount struct {
	Count
	used time.Time
}

// charge is the amount that a call would add to a count.
type charge struct {
	rule *compiled
	cost int64
}

// isShared reports whether the count of a limit is one of all gateways: an execution runs on one.
func (c *Counts) isShared(l limiter) bool { return c.shared != nil && l.by != "execution" }

// take adds to all counts, or to none if one limit is exceeded; it returns that limit's rule. The error says that the count of
// that rule cannot be read or changed.
func (c *Counts) take(ctx context.Context, call *Call, all []charge) (*compiled, error) {
	if full := c.takeLocal(call, all); full != nil {
		return full, nil
	}
	for i, w := range all {
		if !c.isShared(w.rule.limit) {
			continue
		}
		if full, err := c.takeShared(ctx, call, w); full != nil {
			c.giveBack(ctx, call, all, i)
			return full, err
		}
	}
	return nil, nil
}

// takeShared adds to a count of all gateways.
func (c *Counts) takeShared(ctx context.Context, call *Call, w charge) (*compiled, error) {
	l := w.rule.limit
	key, ok := l.key(call)
	if !ok || w.cost > l.most {
		return fullIf(w, 0), nil
	}
	done, err := c.shared.Change(ctx, key, func(one *Count) bool {
		if fullIf(w, one.usage(l.window, call.Time)) != nil {
			return false
		}
		one.Now += w.cost
		return true
	})
	if !done {
		return w.rule, err
	}
	return nil, nil
}

// giveBack takes back what was added for a call that a limit of all gateways refuses: to the counts in memory, and to those of
// all gateways before that limit. A count that cannot be changed stays too high.
func (c *Counts) giveBack(ctx context.Context, call *Call, all []charge, refused int) {
	for i, w := range all {
		key, ok := w.rule.limit.key(call)
		back := func(one *Count) bool {
			one.Now = max(one.Now-w.cost, 0)
			return true
		}
		switch shared := c.isShared(w.rule.limit); {
		case ok && shared && i < refused:
			_, _ = c.shared.Change(ctx, key, back)
		case ok && !shared:
			c.mu.Lock()
			back(&c.at(key, call.Time).Count)
			c.mu.Unlock()
		}
	}
}

// fullIf returns the rule of a charge that exceeds its limit after this usage.
func fullIf(w charge, used int64) *compiled {
	if l := w.rule.limit; w.cost > l.most || used > l.most-w.cost {
		return w.rule
	}
	return nil
}

// takeLocal adds to the counts in memory, or to none if one limit is exceeded.
func (c *Counts) takeLocal(call *Call, all []charge) *compiled {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make([]*keptCount, len(all))
	for i, w := range all {
		l := w.rule.limit
		if c.isShared(l) {
			continue
		}
		used := int64(0)
		if key, ok := l.key(call); ok {
			counts[i] = c.at(key, call.Time)
			used = counts[i].usage(l.window, call.Time)
		}
		if full := fullIf(w, used); full != nil {
			return full
		}
	}
	for i, w := range all {
		if counts[i] != nil {
			counts[i].Now += w.cost
		}
	}
	return nil
}

// at returns a count, creating it if needed.
func (c *Counts) at(key string, now time.Time) *keptCount {
	one := c.all[key]
	if one == nil {
		c.shrink()
		one = &keptCount{}
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

// usage returns how much of a window that ends now is used. It begins a new window if the current one has ended.
func (c *Count) usage(window time.Duration, now time.Time) int64 {
	if window == 0 {
		return c.Now
	}
	switch past := now.Sub(c.Start); {
	case past >= 2*window:
		c.Start, c.Now, c.Last = now, 0, 0
	case past >= window:
		c.Start, c.Now, c.Last = c.Start.Add(window), 0, c.Now
	}
	left := window - max(now.Sub(c.Start), 0)
	return c.Now + int64(float64(c.Last)*float64(left)/float64(window))
}
