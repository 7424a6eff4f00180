// Package timeline counts programs and calls over time, for graphs: by the minute for a day, and by the hour for 30 days.
package timeline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Timeline counts in intervals, and keeps them in a store. Each process writes intervals of its own, which a report adds up, so that
// several gateways can share a store. It is safe for concurrent use.
type Timeline struct {
	opts   Options
	writer string // a part of the keys of this process
	series []*series
	quit   context.CancelFunc
	work   sync.WaitGroup
	saving sync.Mutex

	mu    sync.Mutex
	slots int // how many were made, for their keys
}

// Options are the dependencies of a [Timeline].
type Options struct {
	// Records stores the intervals; nil keeps them in memory.
	Records *store.Store
	// Load returns how many programs run and how many wait for their turn.
	Load   func() (running, waiting int)
	Logger *slog.Logger
}

// series are the intervals of one length.
type series struct {
	length time.Duration
	bucket *store.Bucket
	open   map[time.Time]*slot // not yet in the store, or still counting
}

// slot is an interval that this process counts.
type slot struct {
	counts Counts
	key    store.Key
	dirty  bool
}

const (
	// saveEvery is how often the queue is measured and intervals are saved.
	saveEvery = 10 * time.Second
	// millionths is how many of the unit in which money is counted are one of the currency.
	millionths = 1_000_000
	// maxOpen is the maximum number of open intervals of one length. Records of an earlier time beyond it are not counted.
	maxOpen = 200
	// saveWait is the maximum time for the last save of a process.
	saveWait = 5 * time.Second
)

// Open opens the intervals of a store. Call Start next, and Close at the end.
func Open(opts Options) (*Timeline, error) {
	if opts.Records == nil {
		opts.Records = store.Memory()
	}
	minutes, err := opts.Records.Bucket("minutes", store.Limits{Records: 50_000, Age: 25 * time.Hour, Bytes: 16 << 20, Record: 128 << 10})
	if err != nil {
		return nil, err
	}
	hours, err := opts.Records.Bucket("hours", store.Limits{Records: 20_000, Age: 31 * 24 * time.Hour, Bytes: 16 << 20, Record: 128 << 10})
	if err != nil {
		return nil, err
	}
	return &Timeline{opts: opts, writer: rand.Text(), quit: func() {}, series: []*series{
		{time.Minute, minutes, map[time.Time]*slot{}}, {time.Hour, hours, map[time.Time]*slot{}},
	}}, nil
}

// Start starts to measure the queue and to save intervals.
func (t *Timeline) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.quit = cancel
	t.work.Go(func() {
		ticker := time.NewTicker(saveEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				t.measureQueue()
				t.saveOrLog(ctx)
			}
		}
	})
}

// Close saves what was counted. It is idempotent.
func (t *Timeline) Close() {
	t.quit()
	t.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), saveWait)
	defer cancel()
	t.saveOrLog(ctx)
}

// AddProgram counts a program that ended at a time, which may be some time ago for one of another process.
func (t *Timeline) AddProgram(p Program) { t.count(p.Ended, func(c *Counts) { c.addProgram(p) }) }

// AddMoney counts the price of a model's answer, in the currency of the settings.
func (t *Timeline) AddMoney(money float64) {
	t.count(time.Now(), func(c *Counts) { c.Money += int64(math.Ceil(money * millionths)) })
}

// CountCalls counts each call by its tool. The name of a tool that does not exist, which a program can make up, is not kept.
func (t *Timeline) CountCalls(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		result, err := next(ctx, c)
		outcome := toolcall.Outcome(result, err)
		name := c.Tool.String()
		if outcome == string(tool.NotFound) {
			name = ""
		}
		t.count(time.Now(), func(of *Counts) { of.addCall(name, outcome) })
		return result, err
	}
}

// MeasureCalls measures the calls that reach it: their duration and the size of their results.
func (t *Timeline) MeasureCalls(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		began := time.Now()
		result, err := next(ctx, c)
		ended := time.Now()
		t.count(ended, func(of *Counts) { of.addMade(c.Tool.String(), ended.Sub(began), toolcall.TextSize(result)) })
		return result, err
	}
}

func (t *Timeline) measureQueue() {
	if _, waiting := t.opts.Load(); waiting > 0 {
		t.count(time.Now(), func(c *Counts) { c.Queue = max(c.Queue, waiting) })
	}
}

// count changes the counts of the intervals at a time.
func (t *Timeline) count(at time.Time, change func(*Counts)) {
	now := time.Now()
	if at.After(now) {
		at = now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.series {
		if now.Sub(at) > s.kept() {
			continue
		}
		if one := t.slotAt(s, at.UTC().Truncate(s.length)); one != nil {
			change(&one.counts)
			one.dirty = true
		}
	}
}

// slotAt returns the interval that begins at a time, nil if there are too many. Its key is new each time it is made, so that no
// interval in the store is ever overwritten by another.
func (t *Timeline) slotAt(s *series, begin time.Time) *slot {
	one := s.open[begin]
	if one == nil && len(s.open) < maxOpen {
		t.slots++
		one = &slot{key: store.Key{strconv.FormatInt(begin.Unix(), 10), t.writer, strconv.Itoa(t.slots)}}
		s.open[begin] = one
	}
	return one
}

func (t *Timeline) saveOrLog(ctx context.Context) {
	if err := t.save(ctx); err != nil && ctx.Err() == nil {
		t.opts.Logger.Error("the counts for graphs are not saved", "error", err)
	}
}

// save writes the intervals that have changed, and forgets those that are over.
func (t *Timeline) save(ctx context.Context) (err error) {
	t.saving.Lock()
	defer t.saving.Unlock()
	for _, s := range t.series {
		for begin, data := range t.changed(s) {
			if _, failed := s.bucket.Put(ctx, data.key, data.value); failed != nil {
				err = errors.Join(err, failed)
				t.mu.Lock()
				s.open[begin].dirty = true
				t.mu.Unlock()
			}
		}
		t.forget(s)
	}
	return err
}

type saved struct {
	key   store.Key
	value []byte
}

// changed returns the intervals to save, and marks them as saved.
func (t *Timeline) changed(s *series) map[time.Time]saved {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := map[time.Time]saved{}
	for begin, one := range s.open {
		if !one.dirty {
			continue
		}
		value, err := json.Marshal(one.counts)
		if err != nil {
			continue // counts and texts always have JSON
		}
		list[begin], one.dirty = saved{one.key, value}, false
	}
	return list
}

// forget removes the saved intervals that are over from memory.
func (t *Timeline) forget(s *series) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now().UTC().Truncate(s.length)
	for begin, one := range s.open {
		if !one.dirty && begin.Before(now) {
			delete(s.open, begin)
		}
	}
}

// kept is how long intervals are of use.
func (s *series) kept() time.Duration {
	if s.length == time.Minute {
		return 24 * time.Hour
	}
	return 30 * 24 * time.Hour
}
