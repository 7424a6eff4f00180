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

// recorder keeps a record of each execution. Of one that has a journal the record is in there at once, and goes from there
// into the store in a goroutine of the recorder's, after the answer.
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
	// sweepEvery is how often journals are looked at that nobody may want any more.
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
	r := &History{
		records: records, opts: opts, Durable: opts.Records != nil,
		pending: map[string]*pending{}, queue: make(chan *pending, maxPending), tidied: make(chan struct{}), quit: make(chan struct{}),
	}
	r.Root = opts.Journals
	if r.Root == "" && opts.DataDir != "" {
		r.Root = filepath.Join(opts.DataDir, "executions")
	}
	return r, nil
}

// Start begins the recorder's own work.
func (r *History) Start() { r.work.Go(r.follow) }

// Close writes what is on its way, and waits for that. It is idempotent.
func (r *History) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.quit)
		close(r.queue)
	}
	r.mu.Unlock()
	r.work.Wait()
}

// follow writes records as they come, after those that an earlier process has left.
func (r *History) follow() {
	r.tidy()
	close(r.tidied)
	r.mend()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case p, ok := <-r.queue:
			if !ok {
				return
			}
			r.settle(p)
		case <-ticker.C:
			r.tidy()
		}
	}
}

// mend makes damaged records again, until close.
func (r *History) mend() {
	if r.rebuild == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-r.quit:
			cancel()
		case <-ended:
		}
	}()
	r.rebuild(ctx)
}

// tidy takes over what processes have left that are gone, and removes what is too old or too much.
func (r *History) tidy() {
	if r.Root == "" {
		return
	}
	if r.Durable {
		r.recover()
	}
	limits := r.opts.Settings.Load().Journal
	journal.Sweep(r.Root, time.Now().Add(-max(limits.Keep, time.Minute)), int64(limits.Size))
}

// put keeps a record: at once, or where it is in a journal already, soon.
//
// Its tokens are estimates until it is in the store.
func (r *History) put(ctx context.Context, record Record, run *toolcall.Execution, cost *execution.Cost, fault *bridge.Fault) error {
	err := r.note(ctx, record, run.Journal, fault)
	if err != nil && run.Journal == nil {
		return err
	}
	p := &pending{record: record, root: run.Root, journal: run.Journal, tally: cost, done: make(chan struct{})}
	r.mu.Lock()
	r.pending[record.ID] = p
	queued := false
	if err == nil && !r.closed {
		select {
		case r.queue <- p:
			queued = true
		default:
		}
	}
	r.mu.Unlock()
	if !queued {
		r.settle(p)
	}
	return err
}

// note keeps a record where it is soonest safe.
func (r *History) note(ctx context.Context, record Record, w *journal.Writer, fault *bridge.Fault) error {
	switch {
	case w == nil && r.Durable:
		return r.write(ctx, record)
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
func (r *History) counted(p *pending) Record {
	record := p.record
	if p.tally == nil {
		return record
	}
	record.Tokens, record.TokensRead = p.tally.Tokens(!r.opts.Hasty && len(r.queue) <= maxPending/2)
	return record
}

// needless reports whether nobody needs the journal of an execution any more: it went well, is of no workflow, which may not
// know of its end, and no workflow is to be made of it.
func (r *History) needless(record Record, root string) bool {
	if record.Status != sandbox.OK || root != "" && !strings.HasPrefix(root, "e-") {
		return false
	}
	limits := r.opts.Settings.Load().Journal
	return !limits.Successes || limits.Keep == 0 || record.Made == 0
}

// settle puts a record where it is kept, and lets go of its journal if nobody needs that.
func (r *History) settle(p *pending) {
	record := r.counted(p)
	err := r.write(context.Background(), record)
	if err != nil {
		r.opts.Logger.Error("execution is not recorded", "execution", record.ID, "error", err)
	}
	r.opts.Spent(record.Tokens, record.TokensRead)
	if p.journal != nil {
		r.release(p, err)
	}
	r.mu.Lock()
	delete(r.pending, p.record.ID)
	r.mu.Unlock()
	close(p.done)
}

// release lets go of a journal whose record was written, or could not be.
func (r *History) release(p *pending, err error) {
	end := p.journal.Close
	switch {
	case err == nil && r.needless(p.record, p.root):
		end = p.journal.Remove
	case err == nil && r.Durable && p.record.Status == sandbox.OK:
		end = p.journal.Well
	case err == nil && r.Durable:
		end = p.journal.Kept
	}
	if failed := end(); failed != nil {
		r.opts.Logger.Error("journal is not closed", "execution", p.record.ID, "error", failed)
	}
}

// write puts a record into the store.
func (r *History) write(ctx context.Context, record Record) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return r.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := r.records.Put(ctx, KeyOf(record.Principal, record.ID), data)
		return err
	})
}

// waiting are the records of a principal that are on their way, of everybody for all; the oldest first.
func (r *History) waiting(principal string, all bool) []Record {
	r.mu.Lock()
	pending := slices.Collect(maps.Values(r.pending))
	r.mu.Unlock()
	var list []Record
	for _, p := range pending {
		if all || p.record.Principal == principal {
			list = append(list, r.counted(p))
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Started.Compare(b.Started) })
	return list
}

// Flush waits until the record of an execution is where it is kept; "" is all of them. What an earlier process has left
// is taken over before: meanwhile its journals are ours, and nobody else's.
func (r *History) Flush(ctx context.Context, id string) {
	select {
	case <-r.tidied:
	case <-ctx.Done():
		return
	}
	r.mu.Lock()
	var list []*pending
	for _, p := range r.pending {
		if id == "" || p.record.ID == id {
			list = append(list, p)
		}
	}
	r.mu.Unlock()
	for _, p := range list {
		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}
	}
}

// Folder is where the journals of a principal are.
func (r *History) Folder(principal string) string {
	return filepath.Join(r.Root, workspace.Folder(principal))
}

// find returns what is kept under an id of whoever asks, of anybody's for an operator.
func (r *History) find(ctx context.Context, id string) (Record, error) {
	operator := tool.Operator(ctx) != ""
	r.mu.Lock()
	p := r.pending[id]
	r.mu.Unlock()
	if p != nil && (operator || p.record.Principal == tool.Principal(ctx)) {
		return r.counted(p), nil
	}
	record, err := r.stored(ctx, id, operator)
	if errors.Is(err, store.ErrNotFound) {
		if left, ok := r.left(tool.Principal(ctx), id, operator); ok {
			return left, nil
		}
	}
	return record, err
}

// stored returns what the store has under an id.
func (r *History) stored(ctx context.Context, id string, operator bool) (Record, error) {
	if !operator {
		entry, err := r.records.Get(ctx, KeyOf(tool.Principal(ctx), id))
		if err != nil {
			return Record{}, err
		}
		return recordOf(entry)
	}
	for entry, err := range r.records.List(ctx, nil) {
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
