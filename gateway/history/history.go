// Package history records executions: what ran, how it ended, and the journals of their calls.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/journal/shared"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// History stores a record of each execution. The record of one with a journal is written to the journal first, and to the store
// after the answer. It is safe for concurrent use.
type History struct {
	records *store.Bucket
	Durable bool             // the store outlives the process
	Root    string           // of the journals, "" for none
	Copies  *shared.Journals // of journals, for other gateways; nil for none
	opts    Options
	breaker *store.Breaker
	briefs  briefs
	// handover has the records of processes without the store.
	handover *handover
	rebuild  func(ctx context.Context) // rebuilds damaged records; nil does nothing

	recovered chan struct{} // closed when the journals of earlier processes are recovered
	quit      chan struct{} // closed by Close
	taking    sync.Mutex    // held while a journal is recovered, which locks its file
	work      sync.WaitGroup

	mu         sync.Mutex
	pending    map[string]*pending
	queue      chan *pending
	closed     bool
	unrecorded map[string]string // folders of journals by execution, whose records could not be stored
}

// pending is a record that is not in the store yet.
type pending struct {
	record  Record
	root    string
	journal *journal.Writer // nil for none
	cost    *execution.Cost
	done    chan struct{} // closed when it is stored, and its journal can be opened
}

const (
	// maxPending is the length of the queue; if it is full, the answer waits until its record is stored.
	maxPending = 64
	// sweepEvery is how often expired journals are removed.
	sweepEvery = 10 * time.Minute
	// maxExecutionBytes is the maximum size of the records on disk.
	maxExecutionBytes = 256 << 20
)

// Options are the dependencies of a [History].
type Options struct {
	// DataDir is the data directory, "" for none.
	DataDir string
	// Journals is where journals are; "" is below DataDir.
	Journals string
	// Records stores records; nil keeps them in memory.
	Records *store.Store
	// Settings are the settings in force.
	Settings config.Source
	// EstimateTokens estimates tokens instead of counting them, for a short process.
	EstimateTokens bool
	Logger         *slog.Logger
	// Meter counts tokens.
	Meter *execution.Meter
	// OnRecord is called with each new record, also those of other processes that this one takes over; nil is no call.
	OnRecord func(Record)
	// OnTaken records, on behalf of the principal in ctx, that this gateway takes over an execution of a lost one. It is called before
	// the execution is put on record, and again later after an error; nil is no call.
	OnTaken func(ctx context.Context, e audit.Event) error
	// OnTokens is called with the tokens of each execution.
	OnTokens func(answered, read int)
	// Resources returns lines about what the caller uses now, for [History.Stats].
	Resources func(ctx context.Context) []string
}

func (o Options) onRecord(r Record) {
	if o.OnRecord != nil {
		o.OnRecord(r)
	}
}

// keep is how long records are kept.
func (o Options) keep() time.Duration { return cmp.Or(o.Settings.Load().Records.Keep, lookBack) }

// Open opens the records of executions. Call Start next, and Close at the end.
func Open(opts Options) (*History, error) {
	in, room := opts.Records, int64(maxExecutionBytes)
	if in == nil {
		in, room = store.Memory(), 16<<20
	}
	records, err := executionsBucket(in, room, opts.keep())
	if err != nil {
		return nil, err
	}
	h := &History{
		records: records, breaker: opts.Records.Breaker(), opts: opts, Durable: opts.Records != nil, handover: newHandover(opts),
		pending: map[string]*pending{}, queue: make(chan *pending, maxPending), recovered: make(chan struct{}), quit: make(chan struct{}), unrecorded: map[string]string{},
	}
	h.Root = opts.Journals
	if h.Root == "" && opts.DataDir != "" {
		h.Root = filepath.Join(opts.DataDir, "executions")
	}
	if h.Root != "" {
		h.Copies, err = shared.Open(opts.Records, max(opts.Settings.Load().Journal.Keep, minCopied), opts.Logger)
	}
	return h, err
}

// Start starts the background work.
func (h *History) Start() {
	h.work.Go(h.run)
	if !h.opts.EstimateTokens {
		h.work.Go(func() { untilClosed(h, func(ctx context.Context) { h.briefs.load(ctx, h.records) }) })
	}
	if h.Copies != nil {
		h.work.Go(takeover{h}.run)
	}
}

// Close stores the pending records and waits for that. It is idempotent.
func (h *History) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.quit)
		close(h.queue)
	}
	h.mu.Unlock()
	h.work.Wait()
}

// run recovers the records of earlier processes, then stores records from the queue until it is closed.
func (h *History) run() {
	h.sweep()
	close(h.recovered)
	rebuildDamaged(h)
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case p, ok := <-h.queue:
			if !ok {
				return
			}
			h.finalize(p)
		case <-ticker.C:
			h.sweep()
		}
	}
}

// rebuildDamaged rebuilds damaged records, until Close.
func rebuildDamaged(h *History) {
	if h.rebuild != nil {
		untilClosed(h, h.rebuild)
	}
}

// untilClosed calls f with a context that ends with Close.
func untilClosed(h *History, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-h.quit:
			cancel()
		case <-ended:
		}
	}()
	f(ctx)
}

// sweep recovers the journals of processes that are gone, takes over the records of others, and removes what is beyond the limits.
func (h *History) sweep() {
	if h.Root == "" {
		return
	}
	if h.Durable {
		recovery{h}.all()
		h.takeOver(context.Background())
	} else {
		h.handover.prune(h.opts.keep())
	}
	limits := h.opts.Settings.Load().Journal
	journal.Sweep(h.Root, time.Now().Add(-max(limits.Keep, time.Minute)), int64(limits.Size))
}

// put stores a record: immediately, or soon if it is already in a journal. Its tokens are estimates until it is in the
// store.
func (h *History) put(ctx context.Context, record Record, run *toolcall.Execution, cost *execution.Cost, fault *bridge.Fault) error {
	err := h.persist(ctx, record, run.Journal, fault)
	if errors.Is(err, journal.ErrTaken) {
		return errors.Join(err, run.Journal.Close())
	}
	h.opts.onRecord(record)
	if err != nil && run.Journal == nil {
		return err
	}
	p := &pending{record: record, root: run.Root, journal: run.Journal, cost: cost, done: make(chan struct{})}
	h.mu.Lock()
	h.pending[record.ID] = p
	queued := false
	if err == nil && !h.closed {
		select {
		case h.queue <- p:
			queued = true
		default:
		}
	}
	h.mu.Unlock()
	if !queued {
		h.finalize(p)
	}
	return err
}

// persist writes a record to its journal, or without a journal to a durable store.
func (h *History) persist(ctx context.Context, record Record, w *journal.Writer, fault *bridge.Fault) error {
	switch {
	case w == nil && h.Durable:
		return h.write(ctx, record)
	case w == nil:
		return nil // a store in memory is not safer
	}
	data, err := json.Marshal(newEnd(record, fault))
	if err != nil {
		return err
	}
	err = w.EndProgram(data)
	if errors.Is(err, store.ErrUnreachable) {
		h.opts.Logger.WarnContext(ctx, "other gateways do not know yet that an execution has ended", "execution", record.ID, "error", err)
		return nil // the file has it
	}
	return err
}

// withTokens returns the record with its tokens, which stay estimates if the queue is long.
func (h *History) withTokens(p *pending) Record {
	record := p.record
	if p.cost == nil {
		return record
	}
	record.Tokens, record.TokensRead = p.cost.Tokens(!h.opts.EstimateTokens && len(h.queue) <= maxPending/2)
	return record
}

// removable reports whether the journal of an execution can be removed: the execution succeeded, does not belong to a
// workflow (which may not know its end yet), and its journal is not kept as a draft of a workflow.
func (h *History) removable(record Record, root string) bool {
	if record.Status != sandbox.OK || ofRun(root) {
		return false
	}
	limits := h.opts.Settings.Load().Journal
	return !limits.Successes || limits.Keep == 0 || record.Made == 0
}

// finalize stores a record, and removes its journal if it is needless.
func (h *History) finalize(p *pending) {
	record := h.withTokens(p)
	err := h.write(context.Background(), record)
	if err == nil && !h.Durable {
		err = h.handover.put(record)
	}
	if err != nil {
		h.opts.Logger.Error("execution is not recorded", "execution", record.ID, "error", err)
	}
	h.opts.OnTokens(record.Tokens, record.TokensRead)
	if p.journal != nil {
		h.release(p, err)
	}
	h.mu.Lock()
	delete(h.pending, p.record.ID)
	if err != nil && p.journal != nil && h.Copies != nil {
		h.unrecorded[p.record.ID] = workspace.Folder(p.record.Principal)
	}
	h.mu.Unlock()
	close(p.done)
}

// release closes or removes a journal after an attempt to store its record.
func (h *History) release(p *pending, err error) {
	end := p.journal.Close
	switch {
	case err == nil && h.removable(p.record, p.root):
		end = p.journal.Remove
	case err == nil && h.isKept() && p.record.Status == sandbox.OK:
		end = p.journal.SettleSuccess
	case err == nil && h.isKept():
		end = p.journal.Settle
	}
	if failed := end(); failed != nil {
		h.opts.Logger.Error("journal is not closed", "execution", p.record.ID, "error", failed)
	}
}

// write puts a record into the store.
func (h *History) write(ctx context.Context, record Record) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return h.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := h.records.Put(ctx, KeyOf(record.Principal, record.ID), data)
		return err
	})
}

// pendingRecords returns the pending records of a principal, or with all of everybody, the oldest first.
func (h *History) pendingRecords(principal string, all bool) []Record {
	h.mu.Lock()
	pending := slices.Collect(maps.Values(h.pending))
	h.mu.Unlock()
	var list []Record
	for _, p := range pending {
		if all || p.record.Principal == principal {
			list = append(list, h.withTokens(p))
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Started.Compare(b.Started) })
	return list
}

// Flush waits until the record of an execution is stored; "" is all executions. It first waits for the recovery of journals
// of earlier processes, which locks them.
func (h *History) Flush(ctx context.Context, id string) {
	if h.awaitRecovery(ctx); ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	var list []*pending
	for _, p := range h.pending {
		if id == "" || p.record.ID == id {
			list = append(list, p)
		}
	}
	h.mu.Unlock()
	for _, p := range list {
		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}
	}
}

// awaitRecovery waits until the executions that earlier processes left are on record: without them, a client that has lost an answer
// would conclude that its program never ran.
func (h *History) awaitRecovery(ctx context.Context) {
	select {
	case <-h.recovered:
	case <-ctx.Done():
	}
}

// Folder returns the directory of a principal's journals.
func (h *History) Folder(principal string) string {
	return filepath.Join(h.Root, workspace.Folder(principal))
}

// find returns the record of an execution of the caller, or of any principal for an operator.
func (h *History) find(ctx context.Context, id string) (Record, error) {
	operator := tool.Operator(ctx) != ""
	h.mu.Lock()
	p := h.pending[id]
	h.mu.Unlock()
	if p != nil && (operator || p.record.Principal == tool.Principal(ctx)) {
		return h.withTokens(p), nil
	}
	h.takeOver(ctx)
	record, err := h.load(ctx, id, operator)
	if errors.Is(err, store.ErrNotFound) {
		if left, ok := fromJournal(h, tool.Principal(ctx), id, operator); ok {
			return left, nil
		}
		h.awaitRecovery(ctx) // which locks journals
		record, err = h.load(ctx, id, operator)
	}
	return record, err
}

// load returns the record with an id from the store.
func (h *History) load(ctx context.Context, id string, operator bool) (Record, error) {
	if !operator {
		entry, err := h.records.Get(ctx, KeyOf(tool.Principal(ctx), id))
		if err != nil {
			return Record{}, err
		}
		return recordOf(entry)
	}
	key, err := h.briefs.keyOf(ctx, h.records, id)
	if err != nil {
		return Record{}, err
	}
	entry, err := h.records.Get(ctx, key)
	if err != nil {
		return Record{}, err
	}
	return recordOf(entry)
}

func recordOf(entry store.Entry) (record Record, err error) {
	err = json.Unmarshal(entry.Value, &record)
	return record, err
}
