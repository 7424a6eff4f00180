// Package alerts tells webhooks and desktops of what needs a person: approvals that are pending, quarantined tools,
// upstreams that are not available, and budgets that are used up. A receiver can answer approvals. Its main type is [Alerts].
//
// Nothing waits for a receiver: each has a bounded queue, from which one goroutine sends. What is alike within [Window] is
// sent together.
package alerts

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/desktop"
	"sallyport/internal/store"
)

// Options are the dependencies of [Alerts]. Settings and Logger are required.
type Options struct {
	Settings config.Source
	Logger   *slog.Logger
	// Records stores what was sent; nil keeps it in memory.
	Records *store.Store
	// Site is the address of the gateway's pages, without a path; "" if it serves none.
	Site string
	// Title returns the title of a running program, "" for an unknown one.
	Title func(execution string) string
	// Redact hides secrets in a text.
	Redact func(text string) string
	// Answer answers an approval.
	Answer func(ctx context.Context, id string, answer approval.Answer) (approval.Approval, error)
	// Count counts alerts that were sent, failed or were dropped.
	Count func(what, outcome string, n int)
	// Transport sends requests; nil is that of the process. Notify shows a desktop notification; nil shows it here.
	Transport http.RoundTripper
	Notify    func(ctx context.Context, title, text string) error
}

// Alerts sends alerts to the receivers of the settings. It is safe for concurrent use. A nil Alerts sends none.
type Alerts struct {
	opts   Options
	sender *Sender
	sent   *store.Bucket
	run    func(f func(closing, sending context.Context)) // in a goroutine, until Close
	close  func()
	reads  chan struct{} // slots for bodies of answers

	mu        sync.Mutex
	receivers map[string]*receiver // by their names
	budgets   map[string]bool      // those that were sent, as a cache of the bucket
	closed    bool
}

const (
	// closeTime is how long Close waits for what is queued.
	closeTime = 3 * time.Second
	// maxBudgets bounds the cache of budgets.
	maxBudgets = 10_000
)

// Open starts sending. The caller closes the store after Close.
func Open(opts Options) (*Alerts, error) {
	opts = opts.withDefaults()
	in := opts.Records
	if in == nil {
		in = store.Memory()
	}
	sent, err := in.Bucket("alerts", store.Limits{Records: 20_000, Bytes: 8 << 20, Age: 2*approval.MaxExpire + time.Hour, Record: 4 << 10})
	if err != nil {
		return nil, err
	}
	a := &Alerts{
		opts: opts, sender: NewSender(opts.Transport, opts.Notify), sent: sent,
		receivers: map[string]*receiver{}, budgets: map[string]bool{}, reads: make(chan struct{}, maxReads),
	}
	closing, stop := context.WithCancel(context.Background())
	sending, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	a.run = func(f func(closing, sending context.Context)) { work.Go(func() { f(closing, sending) }) }
	a.close = sync.OnceFunc(func() {
		stop()
		timer := time.AfterFunc(closeTime, cancel)
		work.Wait()
		timer.Stop()
		cancel()
	})
	return a, nil
}

func (o Options) withDefaults() Options {
	if o.Title == nil {
		o.Title = func(string) string { return "" }
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	if o.Count == nil {
		o.Count = func(string, string, int) {}
	}
	if o.Notify == nil {
		o.Notify = desktop.Notify
	}
	return o
}

// Close sends what is queued, within a few seconds, and drops the rest.
func (a *Alerts) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.close()
}

// Approval tells of an approval that is pending, or that one no longer is. It does not block.
func (a *Alerts) Approval(q approval.Approval) {
	switch {
	case a == nil:
	case q.State == approval.Waiting:
		a.raise(approvalEvent(q))
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, r := range a.receivers {
			r.forget(q.ID)
		}
	}
}

// Budget tells that a budget is used up, once for each principal and day. It does not block.
func (a *Alerts) Budget(name, principal, resource string) {
	if a == nil || !a.wants(config.OnBudget) {
		return
	}
	key := store.Key{"budget", time.Now().UTC().Format(time.DateOnly), name, clip(principal, 400)}
	id := key[1] + "\x00" + name + "\x00" + principal
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budgets[id] || a.closed {
		return
	}
	if len(a.budgets) >= maxBudgets {
		clear(a.budgets)
	}
	a.budgets[id] = true
	a.run(func(_, sending context.Context) {
		if a.isFirst(sending, key) {
			a.raise(budgetEvent(name, principal, resource))
		}
	})
}

// isFirst reports whether a key is not in the bucket, and adds it. If the bucket cannot be written, it is the first.
func (a *Alerts) isFirst(ctx context.Context, key store.Key) bool {
	_, err := a.sent.Create(ctx, key, []byte("1"))
	if err != nil && !errors.Is(err, store.ErrConflict) {
		a.opts.Logger.Warn("cannot store that an alert was sent", "error", err)
	}
	return !errors.Is(err, store.ErrConflict)
}

// wants reports whether a receiver wants an event.
func (a *Alerts) wants(what string) bool {
	return slices.ContainsFunc(a.opts.Settings.Load().Alerts, func(set config.Alert) bool { return set.Wants(what) })
}

// receiver returns a receiver as it is in the settings now.
func (a *Alerts) receiver(name string) (config.Alert, bool) {
	all := a.opts.Settings.Load().Alerts
	i := slices.IndexFunc(all, func(set config.Alert) bool { return set.Name == name })
	if i < 0 {
		return config.Alert{}, false
	}
	return all[i], true
}

// raise queues an event for each receiver that wants it.
func (a *Alerts) raise(e Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	for _, set := range a.opts.Settings.Load().Alerts {
		if !set.Wants(e.what()) {
			continue
		}
		r := a.receivers[set.Name]
		if r == nil {
			r = &receiver{alerts: a, name: set.Name, last: map[string]time.Time{}, wake: make(chan struct{}, 1)}
			a.receivers[set.Name] = r
		}
		r.add(e)
	}
}
