// Package budgets counts what principals use in a day (calls, programs, processor time and money), and refuses what
// exceeds the budgets of the settings. Its main type is [Budgets].
//
// A count is changed in memory, and written to the store within [Interval] with a compare-and-swap. Gateways that share a
// store add up their counts there. Near a limit, each call and each program is written before it is allowed.
package budgets

import (
	"context"
	"log/slog"
	glob "path"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Options are the dependencies of [Budgets]. Settings and Logger are required.
type Options struct {
	Settings config.Source
	// Records stores the counts; nil keeps them in memory.
	Records *store.Store
	// Directory has the groups of principals.
	Directory *access.Directory
	Logger    *slog.Logger
	// OnSpend is called with the money that a principal spends; nil for none. It must not block.
	OnSpend func(money float64)
	// OnRefusal is called with each refusal; nil for none. It must not block.
	OnRefusal func(ctx context.Context, r Refusal)
}

// Refusal says which budget is used up.
type Refusal struct {
	// Budget is its name, Principal the caller that was refused.
	Budget, Principal string
	// Resource is what is used up.
	Resource Resource
}

// Budgets counts what principals use, and refuses what exceeds the budgets in force. It is safe for concurrent use.
type Budgets struct {
	opts    Options
	bucket  *store.Bucket
	breaker *store.Breaker
	shared  bool // other processes may write the counts

	mu     sync.Mutex
	counts map[string]*count // by their ids
	timer  *time.Timer       // of the next flush; nil if nothing is to be written
	closed bool

	flushing sync.Mutex
	failed   bool // the last flush; guarded by flushing
}

// Open opens the counts. The caller closes the store after them.
func Open(opts Options) (*Budgets, error) {
	in := opts.Records
	if in == nil {
		in = store.Memory()
	}
	bucket, err := in.Bucket("budgets", store.Limits{Records: 50_000, Bytes: 16 << 20, Age: 8 * 24 * time.Hour})
	return &Budgets{opts: opts, bucket: bucket, breaker: in.Breaker(), shared: in.Shared(), counts: map[string]*count{}}, err
}

// Close writes what is not stored yet. Later changes of counts are lost.
func (b *Budgets) Close() error {
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.flush()
	return nil
}

// meter is a budget that applies to a caller, with the count that it bounds.
type meter struct {
	config.Budget
	*count
}

// metersOf returns the budgets that apply to a principal now, for a call of a tool. The zero tool is for what is no call.
func (b *Budgets) metersOf(principal string, called tool.ID) (all []meter) {
	set := b.opts.Settings.Load().Budgets
	if len(set) == 0 {
		return nil
	}
	day := today(time.Now())
	for _, one := range set {
		if covers(one, called) && b.applies(one, principal) {
			all = append(all, meter{one, b.countOf(day, one, principal)})
		}
	}
	return all
}

// covers reports whether calls of a tool count on a budget.
func covers(one config.Budget, called tool.ID) bool {
	return len(one.Tools) == 0 || called.Upstream != "" && policy.NewGlobs(one.Tools).Match(called)
}

// applies reports whether a budget applies to a principal. A principal has all groups while they are unknown, as after
// a restart.
func (b *Budgets) applies(one config.Budget, principal string) bool {
	if len(one.Principals)+len(one.Groups) == 0 {
		return true
	}
	if slices.ContainsFunc(one.Principals, func(pattern string) bool { return matches(pattern, principal) }) {
		return true
	}
	if len(one.Groups) == 0 {
		return false
	}
	groups, known := b.opts.Directory.Groups(principal)
	return !known || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(one.Groups, g) })
}

// matches reports whether a glob matches a principal, or the name of its token. An asterisk matches slashes, too.
func matches(pattern, principal string) bool {
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x01") }
	for _, name := range []string{principal, strings.TrimPrefix(principal, "token:")} {
		if ok, err := glob.Match(flat(pattern), flat(name)); ok && err == nil {
			return true
		}
	}
	return false
}

// charge is what was counted for one call or program.
type charge struct {
	budgets *Budgets
	meters  []meter
	of      Resource
}

// undo takes the charge back, for what was not done.
func (c *charge) undo() {
	if c != nil {
		c.budgets.add(c.meters, c.of, -1)
	}
}

// take counts one call or program of a principal. The error is a *[tool.Error]: a refusal, with the budget in refused, or that the
// counts cannot be read. The charge is nil for a principal without budgets.
func (b *Budgets) take(ctx context.Context, principal string, called tool.ID, of Resource) (*charge, *meter, error) {
	meters := b.metersOf(principal, called)
	if len(meters) == 0 {
		return nil, nil, nil
	}
	for range maxConflicts {
		if err := b.load(ctx, meters, of); err != nil {
			return nil, nil, err
		}
		full, near := b.tryTake(meters, of)
		if full != nil {
			return nil, full, b.refuse(ctx, principal, full, of)
		}
		taken := &charge{b, meters, of}
		if !near || !b.shared || b.store(ctx, meters, of) {
			return taken, nil, nil
		}
		taken.undo()
	}
	return nil, nil, &tool.Error{Kind: tool.Busy, Message: "the counts of budgets change too often", Hint: "try again in a second", Retryable: true, After: time.Second}
}

// tryTake adds one to all counts, or to none if a budget is used up. near says that the counts must be written now if other
// gateways write them, too: little is left of a budget, or much was added.
func (b *Budgets) tryTake(meters []meter, of Resource) (full *meter, near bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range meters {
		limit := limitsOf(m.Budget)[of]
		if limit == 0 {
			continue
		}
		used := m.used()[of]
		if used >= limit {
			return &meters[i], false
		}
		near = near || limit-used <= step(limit) || m.added[of] >= step(limit)
	}
	b.addLocked(meters, of, 1)
	return nil, near
}

// step is how many calls or programs a gateway allows without writing them, if other gateways count on the same budget; and
// how few may be left so that each is written before it is allowed.
func step(limit int64) int64 { return max(16, limit/20) }

// add adds to all counts of the budgets, to each once.
func (b *Budgets) add(meters []meter, of Resource, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addLocked(meters, of, n)
}

func (b *Budgets) addLocked(meters []meter, of Resource, n int64) {
	for i, m := range meters {
		if !slices.ContainsFunc(meters[:i], func(before meter) bool { return before.count == m.count }) {
			m.added[of] += n
		}
	}
	if b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(Interval, b.flush)
	}
}

// left returns the least that is left of a resource, and the budget that says so; nil if no budget limits it.
func (b *Budgets) left(meters []meter, of Resource) (least int64, tightest *meter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range meters {
		if limit := limitsOf(m.Budget)[of]; limit > 0 {
			if rest := max(0, limit-m.used()[of]); tightest == nil || rest < least {
				least, tightest = rest, &meters[i]
			}
		}
	}
	return least, tightest
}
