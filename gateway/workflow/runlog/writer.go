package runlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/store"
)

// Writer appends to the log of one run. It owns the run until another engine claims it and writes: then Append
// is a [store.ErrConflict]. All methods are safe for concurrent use.
type Writer struct {
	log *store.Log
	key store.Key
	// sem is a semaphore, held while writing.
	sem chan struct{}

	mu   sync.Mutex
	next *batch // the next write; nil is none
	// These are guarded by turn.
	last   uint64 // revision of the last record
	broken error  // the error that ended writing
}

// batch is the content of one write.
type batch struct {
	groups [][]byte      // the lines of one Append each
	done   chan struct{} // closed when err is known
	err    error
}

func newWriter(log *store.Log, key store.Key, after uint64) *Writer {
	return &Writer{log: log, key: key, sem: make(chan struct{}, 1), last: after}
}

// writeTimeout is the timeout of one write, after which its outcome is unknown.
const writeTimeout = 30 * time.Second

// Append writes events in order, and returns when they are on disk. Events of concurrent calls are written together
// in the next write. The events of one call are written atomically if they take less than 1 MiB together.
//
// An event that cannot be written ([store.ErrInvalid]) changes nothing. After any other error of the store ([store.ErrConflict],
// [store.ErrFull]) the writer writes nothing more: the engine that claims the run again sees what was written. After an error
// of ctx, the events may or may not be written.
func (w *Writer) Append(ctx context.Context, events ...Event) error {
	if len(events) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	groups, err := w.encode(events)
	if err != nil {
		return err
	}
	mine := w.enqueue(groups)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case w.sem <- struct{}{}:
	}
	defer func() { <-w.sem }()
	select {
	case <-mine.done:
	default:
		w.flush(context.WithoutCancel(ctx)) // with the events of concurrent calls
	}
	return mine.err
}

// encode returns events as lines: in one group, or in one group for each event if it would be too large.
func (w *Writer) encode(events []Event) (groups [][]byte, err error) {
	size := 0
	for _, e := range events {
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		line, err := encode(e)
		if err != nil {
			return nil, fmt.Errorf("record run %s: %w", w.key[0], err)
		}
		groups = append(groups, line)
		size += len(line)
	}
	if size <= maxRecord {
		groups = [][]byte{concat(groups)}
	}
	return groups, nil
}

func concat(all [][]byte) []byte {
	if len(all) == 1 {
		return all[0]
	}
	var together []byte
	for _, one := range all {
		together = append(together, one...)
	}
	return together
}

// enqueue adds lines to the next write.
func (w *Writer) enqueue(groups [][]byte) *batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = &batch{done: make(chan struct{})}
	}
	w.next.groups = append(w.next.groups, groups...)
	return w.next
}

// flush writes the next batch. The caller must hold turn.
func (w *Writer) flush(ctx context.Context) {
	w.mu.Lock()
	b := w.next
	w.next = nil
	w.mu.Unlock()
	defer close(b.done)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for _, record := range records(b.groups) {
		if b.err = w.write(ctx, record); b.err != nil {
			return
		}
	}
}

// write writes one record.
func (w *Writer) write(ctx context.Context, record []byte) error {
	if w.broken != nil {
		return w.broken
	}
	revision, err := w.log.AppendAfter(ctx, w.key, w.last, record)
	if err != nil {
		w.broken = fmt.Errorf("record run %s: %w", w.key[0], err)
		return w.broken
	}
	w.last = revision
	return nil
}
