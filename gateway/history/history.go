// Package history records executions: what ran, how it ended, and the journals of their calls.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// History keeps a record of each execution. The record of one with a journal is in the journal at once, and goes into the store
// after the answer. It is safe for concurrent use.
type History struct {
	records *store.Bucket
	Durable bool   // the store outlives the process
	Root    string // of the journals, "" for none
	opts    Options
	breaker store.Breaker
	briefs  briefs
	rebuild func(ctx context.Context) // makes damaged records again; nil does nothing

	tidied chan struct{} // closed when what earlier processes have left is taken over
	quit   chan struct{} // closed by close
	work   sync.WaitGroup

	mu      sync.Mutex
	pending map[string]*pending
	queue   chan *pending
	closed  bool
}

// pending is a record on its way into the store.
type pending struct {
	record  Record
	root    string
	journal *journal.Writer // nil for none
	tally   *execution.Cost
	done    chan struct{} // closed when it is there, and its journal can be read
}

const (
	// maxPending is how many records may be on their way; of more than that the answer waits.
	maxPending = 64
	// sweepEvery is how often expired journals are removed.
	sweepEvery = 10 * time.Minute
	// maxExecutionBytes is how much of the disk the records may take.
	maxExecutionBytes = 256 << 20
)

// Options say where executions are recorded.
type Options struct {
	// DataDir is the data directory, "" for none.
	DataDir string
	// Journals is where journals are; "" is below DataDir.
	Journals string
	// Records keeps records; nil keeps them in memory.
	Records *store.Store
	// Settings are the settings in force.
	Settings config.Source
	// Hasty says that the process ends soon: tokens are estimated.
	Hasty  bool
	Logger *slog.Logger
	// Meter counts tokens.
	Meter *execution.Meter
	// Spent is called with the tokens of each execution.
	Spent func(answered, read int)
	// Resources returns lines about what the caller uses now, for [History.Stats].
	Resources func(ctx context.Context) []string
}

// Open opens the records of executions. Start it, and close it.
func Open(opts Options) (*History, error) {
	in, room := opts.Records, int64(maxExecutionBytes)
	if in == nil {
		in, room = store.Memory(), 16<<20
	}
	records, err := executionsBucket(in, room)
	if err != nil {
		return nil, err
	}
	h := &History{
		records: records, opts: opts, Durable: opts.Records != nil,
		pending: map[string]*pending{}, queue: make(chan *pending, maxPending), tidied: make(chan struct{}), quit: make(chan struct{}),
	}
	h.Root = opts.Journals
	if h.Root == "" && opts.DataDir != "" {
		h.Root = filepath.Join(opts.DataDir, "executions")
	}
	return h, nil
}

// Start begins the recorder's own work.
func (h *History) Start() { h.work.Go(h.follow) }

// Close writes what is on its way, and waits for that. It is idempotent.
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

// follow writes records as they come, after those that an earlier process has left.
func (h *History) follow() {
	h.tidy()
	close(h.tidied)
	h.mend()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case p, ok := <-h.queue:
			if !ok {
				return
			}
			h.settle(p)
		case <-ticker.C:
			h.tidy()
		}
	}
}

// mend makes damaged records again, until close.
func (h *History) mend() {
	if h.rebuild == nil {
		return
	}
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
	h.rebuild(ctx)
}

// tidy takes over what processes have left that are gone, and removes what is too old or too much.
func (h *History) tidy() {
	if h.Root == "" {
		return
	}
	if h.Durable {
		h.recover()
	}
	limits := h.opts.Settings.Load().Journal
	journal.Sweep(h.Root, time.Now().Add(-max(limits.Keep, time.Minute)), int64(limits.Size))
}

// put keeps a record: at once, or where it is in a journal already, soon.
//
// Its tokens are estimates until it is in the store.
func (h *History) put(ctx context.Context, record Record, run *toolcall.Execution, cost *execution.Cost, fault *bridge.Fault) error {
	err := h.note(ctx, record, run.Journal, fault)
	if err != nil && run.Journal == nil {
		return err
	}
	p := &pending{record: record, root: run.Root, journal: run.Journal, tally: cost, done: make(chan struct{})}
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
		h.settle(p)
	}
	return err
}

// note keeps a record where it is soonest safe.
func (h *History) note(ctx context.Context, record Record, w *journal.Writer, fault *bridge.Fault) error {
	switch {
	case w == nil && h.Durable:
		return h.write(ctx, record)
	case w == nil:
		return nil // it is no safer in the store's memory
	}
	data, err := json.Marshal(overOf(record, fault))
	if err != nil {
		return err
	}
	return w.Over(data)
}

// counted is the record with its tokens. Where there is much to do they stay estimates.
func (h *History) counted(p *pending) Record {
	record := p.record
	if p.tally == nil {
		return record
	}
	record.Tokens, record.TokensRead = p.tally.Tokens(!h.opts.Hasty && len(h.queue) <= maxPending/2)
	return record
}

// needless reports whether the journal of an execution can go: the execution succeeded, is of no workflow, which may not
// know of its end, and is not kept as a draft of a workflow.
func (h *History) needless(record Record, root string) bool {
	if record.Status != sandbox.OK || root != "" && !strings.HasPrefix(root, "e-") {
		return false
	}
	limits := h.opts.Settings.Load().Journal
	return !limits.Successes || limits.Keep == 0 || record.Made == 0
}

// settle stores a record, and removes its journal if it is needless.
func (h *History) settle(p *pending) {
	record := h.counted(p)
	err := h.write(context.Background(), record)
	if err != nil {
		h.opts.Logger.Error("execution is not recorded", "execution", record.ID, "error", err)
	}
	h.opts.Spent(record.Tokens, record.TokensRead)
	if p.journal != nil {
		h.release(p, err)
	}
	h.mu.Lock()
	delete(h.pending, p.record.ID)
	h.mu.Unlock()
	close(p.done)
}

// release closes or removes a journal after an attempt to store its record.
func (h *History) release(p *pending, err error) {
	end := p.journal.Close
	switch {
	case err == nil && h.needless(p.record, p.root):
		end = p.journal.Remove
	case err == nil && h.Durable && p.record.Status == sandbox.OK:
		end = p.journal.Well
	case err == nil && h.Durable:
		end = p.journal.Kept
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

// waiting are the records of a principal that are on their way, of everybody for all; the oldest first.
func (h *History) waiting(principal string, all bool) []Record {
	h.mu.Lock()
	pending := slices.Collect(maps.Values(h.pending))
	h.mu.Unlock()
	var list []Record
	for _, p := range pending {
		if all || p.record.Principal == principal {
			list = append(list, h.counted(p))
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Started.Compare(b.Started) })
	return list
}

// Flush waits until the record of an execution is where it is kept; "" is all of them. What an earlier process has left
// is taken over first: until then this process has its journals locked.
func (h *History) Flush(ctx context.Context, id string) {
	select {
	case <-h.tidied:
	case <-ctx.Done():
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

// Folder is where the journals of a principal are.
func (h *History) Folder(principal string) string {
	return filepath.Join(h.Root, workspace.Folder(principal))
}

// find returns what is kept under an id of the caller, or any for an operator.
func (h *History) find(ctx context.Context, id string) (Record, error) {
	operator := tool.Operator(ctx) != ""
	h.mu.Lock()
	p := h.pending[id]
	h.mu.Unlock()
	if p != nil && (operator || p.record.Principal == tool.Principal(ctx)) {
		return h.counted(p), nil
	}
	record, err := h.stored(ctx, id, operator)
	if errors.Is(err, store.ErrNotFound) {
		if left, ok := h.left(tool.Principal(ctx), id, operator); ok {
			return left, nil
		}
	}
	return record, err
}

// stored returns what the store has under an id.
func (h *History) stored(ctx context.Context, id string, operator bool) (Record, error) {
	if !operator {
		entry, err := h.records.Get(ctx, KeyOf(tool.Principal(ctx), id))
		if err != nil {
			return Record{}, err
		}
		return recordOf(entry)
	}
	for entry, err := range h.records.List(ctx, nil) {
		if err != nil {
			return Record{}, err
		}
		if entry.Key[len(entry.Key)-1] == id {
			return recordOf(entry)
		}
	}
	return Record{}, store.ErrNotFound
}

func recordOf(entry store.Entry) (record Record, err error) {
	err = json.Unmarshal(entry.Value, &record)
	return record, err
}
