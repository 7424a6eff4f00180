package budgets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/store"
)

// Resource is what a budget limits.
type Resource int

// The resources. Processor time is counted in microseconds, money in millionths.
const (
	Calls Resource = iota
	Programs
	CPU
	Money
	resources
)

// amounts are amounts of all resources.
type amounts [resources]int64

// millionths is the unit of money in counts.
const millionths = 1e6

// limitsOf returns the limits of a budget, 0 for none.
func limitsOf(b config.Budget) amounts {
	return amounts{Calls: int64(b.Calls), Programs: int64(b.Programs), CPU: b.CPU.Microseconds(), Money: int64(b.Money * millionths)}
}

const (
	// Interval is the longest time until a count is written to the store, and until the counts of other gateways are read.
	Interval = time.Second
	// maxConflicts bounds the attempts to write a count that other gateways write, too.
	maxConflicts = 50
)

// today returns the day of a time, in UTC.
func today(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// record is a count in the store.
type record struct {
	// Principal is the principal that is counted; "" also for a shared count.
	Principal string `json:"principal,omitempty"`
	Shared    bool   `json:"shared,omitempty"`
	Calls     int64  `json:"calls,omitempty"`
	Programs  int64  `json:"programs,omitempty"`
	CPU       int64  `json:"cpu_us,omitempty"`
	Money     int64  `json:"money_millionths,omitempty"`
}

func (r record) amounts() amounts { return amounts{r.Calls, r.Programs, r.CPU, r.Money} }

// count is what a principal, or all principals of a shared budget, used on a day.
type count struct {
	id        string
	day       string
	key       store.Key
	principal string
	shared    bool

	io sync.Mutex // held while the count is read or written; locked before Budgets.mu

	// The following fields are guarded by Budgets.mu. stored is the amount in the store with its revision, at the time read; added
	// is not written yet.
	stored, added amounts
	revision      uint64
	read          time.Time
}

// used is called with Budgets.mu held.
func (c *count) used() amounts {
	sum := c.stored
	for i := range sum {
		sum[i] += c.added[i]
	}
	return sum
}

// countOf returns the count that a budget bounds for a principal. Budgets that are not shared and are for the same tools have one count in
// common.
func (b *Budgets) countOf(day string, one config.Budget, principal string) *count {
	c := newCount(day, one, principal)
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.counts[c.id]; known != nil {
		return known
	}
	b.counts[c.id] = c
	return c
}

func newCount(day string, one config.Budget, principal string) *count {
	of := []string{"principal", principal}
	if one.Shared { // a limit may change without a new count
		of = append(append([]string{"shared"}, sorted(one.Principals)...), "\x00")
		of, principal = append(of, sorted(one.Groups)...), ""
	}
	if len(one.Tools) > 0 {
		of = append(append(of, "\x00", "tools"), sorted(one.Tools)...)
	}
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	key := store.Key{day, hex.EncodeToString(sum[:16])}
	return &count{id: strings.Join(key, " "), day: day, key: key, principal: principal, shared: one.Shared}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// load reads the counts that are unknown or outdated. The error is a *tool.Error.
func (b *Budgets) load(ctx context.Context, meters []meter, of Resource) error {
	for _, m := range meters {
		if !b.isOutdated(m, of) {
			continue
		}
		m.io.Lock()
		var err error
		if b.isOutdated(m, of) {
			err = b.readCount(ctx, m.count)
		}
		m.io.Unlock()
		if err != nil {
			return toolcall.Unreadable(ctx, b.opts.Logger, err)
		}
	}
	return nil
}

// isOutdated reports whether a count must be read: it was not, or other gateways may have written it. Little that is left of a
// limit is read each time.
func (b *Budgets) isOutdated(m meter, of Resource) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.read.IsZero() || !b.shared {
		return m.read.IsZero()
	}
	limit := limitsOf(m.Budget)[of]
	near := limit > 0 && limit-m.used()[of] <= step(limit)
	return time.Since(m.read) > Interval || near
}

// readCount reads a count from the store. It is called with io held.
func (b *Budgets) readCount(ctx context.Context, c *count) error {
	var entry store.Entry
	err := b.breaker.Do(ctx, func(ctx context.Context) (err error) {
		entry, err = b.bucket.Get(ctx, c.key)
		return err
	})
	var r record
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(entry.Value, &r); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.stored, c.revision, c.read = r.amounts(), entry.Revision, time.Now()
	return nil
}

// writeCount writes what was added to a count. The error is store.ErrConflict if another gateway has written it.
// It is called with io held.
func (b *Budgets) writeCount(ctx context.Context, c *count) error {
	b.mu.Lock()
	sum, added, revision := c.used(), c.added, c.revision
	b.mu.Unlock()
	if added == (amounts{}) {
		return nil
	}
	data, err := json.Marshal(record{c.principal, c.shared, sum[Calls], sum[Programs], sum[CPU], sum[Money]})
	if err != nil {
		return err
	}
	err = b.breaker.Do(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		if revision == 0 {
			revision, err = b.bucket.Create(ctx, c.key, data)
		} else {
			revision, err = b.bucket.Update(ctx, c.key, data, revision)
		}
		return err
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		c.read = time.Time{} // whether it was written is unknown
		return err
	}
	c.stored, c.revision, c.read = sum, revision, time.Now()
	for i := range added {
		c.added[i] -= added[i]
	}
	return nil
}

// store writes the counts now. It returns false if another gateway has written one of them, or if one exceeds its limit: then
// another goroutine has read what other gateways wrote after the charge was taken.
func (b *Budgets) store(ctx context.Context, meters []meter, of Resource) bool {
	for _, m := range meters {
		m.io.Lock()
		ok := !b.isExceeded(m, of) && !errors.Is(b.writeCount(ctx, m.count), store.ErrConflict)
		m.io.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

func (b *Budgets) isExceeded(m meter, of Resource) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := limitsOf(m.Budget)[of]
	return limit > 0 && m.used()[of] > limit
}

// flush writes all counts that have changed, and forgets those of earlier days.
func (b *Budgets) flush() {
	b.flushing.Lock()
	defer b.flushing.Unlock()
	b.mu.Lock()
	b.timer = nil
	var changed []*count
	for id, c := range b.counts {
		switch {
		case c.added != (amounts{}):
			changed = append(changed, c)
		case c.day != today(time.Now()):
			delete(b.counts, id)
		}
	}
	b.mu.Unlock()
	failed := false
	for _, c := range changed {
		if err := b.flushCount(c); err != nil {
			failed = true
			if !b.failed {
				b.opts.Logger.Error("counts of budgets are not written, retrying", "error", err)
			}
		}
	}
	b.failed = failed
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed && b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(Interval, b.flush)
	}
}

// flushCount writes what was added to a count, on top of what other gateways have written.
func (b *Budgets) flushCount(c *count) (err error) {
	c.io.Lock()
	defer c.io.Unlock()
	ctx := context.Background()
	for range maxConflicts {
		b.mu.Lock()
		unread := c.read.IsZero()
		b.mu.Unlock()
		if unread {
			if err = b.readCount(ctx, c); err != nil {
				return err
			}
		}
		if err = b.writeCount(ctx, c); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}
