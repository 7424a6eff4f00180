package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

const (
	// maxWaiting bounds the pending questions of one principal, maxKept all stored questions.
	maxWaiting = 64
	maxKept    = 8192
	// maxResult is the longest result that a person can give.
	maxResult = 32 << 10
	// maxAge is how long a question is stored.
	maxAge = 8 * 24 * time.Hour
	// sessionIdle is the time without a call after which an approval for a session ends.
	sessionIdle = 30 * time.Minute
	// MaxOwn bounds the stored questions of one principal.
	MaxOwn = 256
	// storeTimeout bounds an operation of the store.
	storeTimeout = 2 * time.Second
)

// Limits returns the limits for the bucket of a [Store].
func Limits() store.Limits {
	return store.Limits{Records: 2 * maxKept, Age: maxAge, Bytes: 32 << 20, Record: 64 << 10}
}

// Options configure a book; nil means all defaults.
type Options struct {
	// Expire is how long a question can be answered, and then how long an approval for once can be used; nil is an hour.
	Expire func() time.Duration
	// Record is called before each question, answer and use; its error cancels the operation. nil does nothing.
	Record func(ctx context.Context, a Approval) error
	// Changed is called after each of these took effect; nil does nothing. It must not block.
	Changed func(a Approval)
	// Self is this process among those that share the bucket, "" for a bucket of one process. Alive reports whether another
	// one may be alive.
	Self  string
	Alive func(ctx context.Context, process string) bool
}

// stored is the stored form of an approval.
type stored struct {
	Approval

	Waiter string `json:"waiter,omitempty"`
}

// Store stores approvals in memory and in a bucket, which other processes may write too ([Store.Follow]). It is safe for concurrent use.
type Store struct {
	bucket *store.Bucket
	opts   Options

	mu          sync.Mutex
	loaded      bool
	records     map[string]*record
	sessionUses map[string]time.Time // last use of approvals for a session, in this process
	changed     chan struct{}        // closed at the next change
}

type record struct {
	Approval
	key      store.Key
	revision uint64
	// hasWaiter: a call of this process waits for it, and only that call can use an approval for once.
	hasWaiter bool
	// waiter is the process with such a call, "" for none or in a store of one process.
	waiter string
}

// NewStore returns a book with the approvals of a bucket, which it reads on first use.
func NewStore(kept *store.Bucket, opts *Options) *Store {
	b := &Store{bucket: kept, records: map[string]*record{}, sessionUses: map[string]time.Time{}, changed: make(chan struct{})}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Expire == nil {
		b.opts.Expire = func() time.Duration { return time.Hour }
	}
	if b.opts.Record == nil {
		b.opts.Record = func(context.Context, Approval) error { return nil }
	}
	if b.opts.Changed == nil {
		b.opts.Changed = func(Approval) {}
	}
	return b
}

// Changes returns a channel that is closed at the next new question or answer.
func (b *Store) Changes() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// signalChange wakes those that wait for a change. It is called with mu held.
func (b *Store) signalChange() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// load reads the bucket, once. It is called with mu held.
func (b *Store) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	for entry, err := range b.bucket.List(ctx, nil) {
		if err != nil {
			return fmt.Errorf("read approvals: %w", err)
		}
		p, err := decodeRecord(entry)
		if err != nil {
			return err
		}
		b.adopt(p)
	}
	b.loaded = true
	return nil
}

// lockLoaded locks mu, loads the book and drops old entries. The caller must call done, which unlocks mu, even after an error.
func (b *Store) lockLoaded(ctx context.Context) (limited context.Context, done func(), err error) {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	b.mu.Lock()
	err = b.load(limited)
	b.evict(time.Now())
	return limited, func() { b.mu.Unlock(); cancel() }, err
}

// evict drops expired entries. It is called with mu held.
func (b *Store) evict(now time.Time) {
	for id, used := range b.sessionUses {
		if now.Sub(used) >= sessionIdle {
			delete(b.sessionUses, id)
		}
	}
	for id, p := range b.records {
		if now.Sub(p.Asked) > maxAge {
			delete(b.records, id)
		}
	}
}

// newRecord returns the page for a new question, nil if too many are pending. A principal with MaxOwn questions overwrites
// its own oldest, so that it does not evict those of others. It is called with mu held.
func (b *Store) newRecord(principal string, now time.Time) *record {
	var own, over []*record
	for _, p := range b.records {
		if p.Principal == principal {
			own = append(own, p)
		}
		if p.asOf(now).State != Waiting {
			over = append(over, p)
		}
	}
	older := func(a, b *record) int { return a.Asked.Compare(b.Asked) }
	rest := slices.DeleteFunc(slices.Clone(own), func(p *record) bool { return p.asOf(now).State == Waiting })
	switch {
	case len(own)-len(rest) >= maxWaiting, len(b.records) >= maxKept && len(over) == 0:
		return nil
	case len(own) >= MaxOwn:
		oldest := slices.MinFunc(rest, older)
		delete(b.records, oldest.ID)
		return &record{key: oldest.key, revision: oldest.revision}
	case len(b.records) >= maxKept:
		delete(b.records, slices.MinFunc(over, older).ID)
	}
	return &record{}
}

// Ask adds a request for approval; its caller waits until Leave. An earlier one for the same call that has no waiting caller
// is reused. Errors are ErrMany, and those of the store and of Options.Record.
func (b *Store) Ask(ctx context.Context, r Request) (a Approval, err error) {
	err = retryChanged(func() error { a, err = b.ask(ctx, r); return err })
	return a, err
}

func (b *Store) ask(ctx context.Context, r Request) (Approval, error) {
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil {
		return Approval{}, err
	}
	now := time.Now()
	for _, p := range b.records {
		if p.asOf(now).State == Waiting && !p.hasWaiter && !b.waitedElsewhere(ctx, p) && p.isSame(r) && p.Rule == r.Rule {
			next := p.Approval
			next.Execution = r.Execution
			p.waiter = b.opts.Self
			err := b.write(ctx, p, next)
			p.hasWaiter = err == nil
			return next, err
		}
	}
	p := b.newRecord(r.Principal, now)
	if p == nil {
		return Approval{}, ErrMany
	}
	expire := min(cmp.Or(r.Expire, b.opts.Expire()), MaxExpire)
	a := Approval{ID: "a-" + strings.ToLower(rand.Text()), Request: r, State: Waiting, Asked: now.UTC(), Expires: now.Add(expire).UTC()}
	if p.key == nil {
		p.key = store.Key{workspace.Folder(r.Principal), a.ID}
	}
	p.waiter = b.opts.Self
	if err := b.write(ctx, p, a); err != nil {
		return Approval{}, err
	}
	p.hasWaiter = true
	b.records[p.ID] = p
	return p.Approval, nil
}

// AskDetached adds a request without a waiting caller. An earlier one for the same call is returned as it is,
// with its answer if it has one; an expired one is ignored. Errors are those of Ask.
func (b *Store) AskDetached(ctx context.Context, r Request) (Approval, error) {
	if a, ok, err := b.findLast(ctx, r); ok || err != nil {
		return a, err
	}
	a, err := b.Ask(ctx, r)
	b.StopWaiting(a.ID)
	return a, err
}

// findLast returns the last question for the same call that is pending or answered.
func (b *Store) findLast(ctx context.Context, r Request) (last Approval, ok bool, err error) {
	_, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil {
		return Approval{}, false, err
	}
	for _, p := range b.records {
		if now := p.asOf(time.Now()); now.isSame(r) && now.Rule == r.Rule && slices.Contains([]State{Waiting, Allowed, Denied, Done}, now.State) && !now.Asked.Before(last.Asked) {
			last, ok = now, true
		}
	}
	return last, ok, nil
}

// StopWaiting marks that the caller no longer waits. The request stays pending: the same call, made again, finds the answer.
func (b *Store) StopWaiting(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.records[id]
	if p == nil || !p.hasWaiter {
		return
	}
	p.hasWaiter = false
	if p.waiter == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	p.waiter = "" // if it cannot be stored, other processes ask again
	if revision, err := b.put(ctx, p, p.Approval); err == nil {
		p.revision = revision
	} else if errors.Is(err, store.ErrConflict) {
		b.loaded = false
	}
}

// isFinal reports whether the answer is that the call is not to be made.
func (a *Approval) isFinal() bool { return a.State == Denied || a.State == Done }

// write records a change and writes it to the store, and then to the book. It is called with mu held.
func (b *Store) write(ctx context.Context, p *record, next Approval) error {
	if err := b.opts.Record(ctx, next); err != nil {
		return fmt.Errorf("record approval: %w", err)
	}
	revision, err := b.put(ctx, p, next)
	if errors.Is(err, store.ErrConflict) {
		b.loaded = false
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("keep approval: %w", err)
	}
	p.Approval, p.revision = next, revision
	b.signalChange()
	b.opts.Changed(next)
	return nil
}

func (b *Store) put(ctx context.Context, p *record, next Approval) (uint64, error) {
	data, err := json.Marshal(stored{next, p.waiter})
	if err != nil {
		return 0, err
	}
	if p.revision == 0 {
		return b.bucket.Create(ctx, p.key, data)
	}
	return b.bucket.Update(ctx, p.key, data, p.revision)
}

// Find returns the answer that allows or denies a call; decided is false if an approval is needed. It uses up an approval
// for once, so only one of two concurrent calls gets it. own is the id of the question that the caller waits for, ""
// for none.
func (b *Store) Find(ctx context.Context, r Request, own string) (a Approval, decided bool, err error) {
	err = retryChanged(func() error { a, decided, err = b.use(ctx, r, own); return err })
	return a, decided, err
}

func (b *Store) use(ctx context.Context, r Request, own string) (a Approval, decided bool, err error) {
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil {
		return Approval{}, false, err
	}
	now := time.Now()
	p := b.find(ctx, r, own, now)
	if p == nil {
		return Approval{}, false, nil
	}
	if p.State == Allowed && p.Scope == Session {
		b.sessionUses[p.ID] = now
	}
	if p.isFinal() && (p.Doubt || !p.Standing) || p.State == Allowed && p.Scope != Once {
		return p.Approval, true, nil
	}
	found, next := p.Approval, p.Approval
	if next.Told = next.isFinal(); !next.Told {
		next.State = Used
	}
	if err := b.write(ctx, p, next); err != nil {
		return Approval{}, false, err
	}
	return found, true, nil
}

// Restore makes a used approval available again, as its call was not made.
func (b *Store) Restore(ctx context.Context, id string) error {
	return retryChanged(func() error { return b.restore(ctx, id) })
}

func (b *Store) restore(ctx context.Context, id string) error {
	ctx, done, err := b.lockLoaded(ctx)
	defer done()
	p := b.records[id]
	if err != nil || p == nil || p.State != Used {
		return err
	}
	next := p.Approval
	next.State, p.hasWaiter = Allowed, false
	return b.write(ctx, p, next)
}

// find returns the answer for a call: a denial of exactly this call first, then an approval with a wide scope, then one
// for once. It is called with mu held.
func (b *Store) find(ctx context.Context, r Request, own string, now time.Time) (best *record) {
	for _, p := range b.records {
		switch {
		case p.isFinal() && !p.Told && p.Doubt == r.Doubt && (p.ID == own || r.Root != "" && p.isSame(r)):
			return p
		case !b.usable(ctx, p, r, own, now):
		case best == nil, best.Scope == Once && p.Scope != Once:
			best = p
		}
	}
	return best
}

// usable reports whether a page allows a call now. It is called with mu held.
func (b *Store) usable(ctx context.Context, p *record, r Request, own string, now time.Time) bool {
	_, alive := b.sessionUses[p.ID]
	switch {
	case !p.Covers(r):
		return false
	case p.Scope == Session:
		return alive
	case p.Scope == Once && p.ID != own && (p.hasWaiter || b.waitedElsewhere(ctx, p)):
		return false
	}
	return now.Before(p.Expires)
}

// Get returns one question with its current state. The error is ErrNotFound or that of the store.
func (b *Store) Get(ctx context.Context, id string) (Approval, error) {
	_, done, err := b.lockLoaded(ctx)
	defer done()
	p := b.records[id]
	switch {
	case err != nil:
		return Approval{}, err
	case p == nil:
		return Approval{}, ErrNotFound
	}
	return p.asOf(time.Now()), nil
}

// List returns all stored questions, the newest first.
func (b *Store) List(ctx context.Context) ([]Approval, error) {
	_, done, err := b.lockLoaded(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	list := make([]Approval, 0, len(b.records))
	for _, p := range b.records {
		list = append(list, p.asOf(now))
	}
	slices.SortFunc(list, func(a, b Approval) int {
		return cmp.Or(b.Asked.Compare(a.Asked), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}
