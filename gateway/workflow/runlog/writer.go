package runlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/store"
)

// Writer appends to the log of one run. It owns the run until another engine takes it and writes: then Append
// is a [store.ErrConflict]. All methods are safe for concurrent use.
type Writer struct {
	log *store.Log
	key store.Key
	// turn is held while writing.
	turn chan struct{}

	mu   sync.Mutex
	next *batch // what goes with the next write; nil is nothing
	// These are guarded by turn.
	last   uint64 // revision of the record that the next one follows
	broken error  // why there will be no other write
}

// batch is what goes in one write.
type batch struct {
	groups [][]byte      // the lines of one Append each
	done   chan struct{} // closed when err is known
	err    error
}

func newWriter(log *store.Log, key store.Key, after uint64) *Writer {
	return &Writer{log: log, key: key, turn: make(chan struct{}, 1), last: after}
}

// writeTime is how long one write may take before its outcome is unknown.
const writeTime = 30 * time.Second

// Append writes events, in this order, and returns when they are on the disk. What is given while another write is under way
// goes together in the next one. The events of one call are all written or none if they take less than 1 MiB together.
//
// An event that cannot be written ([store.ErrInvalid]) changes nothing. After any other error of the store ([store.ErrConflict],
// [store.ErrFull]) the writer writes nothing more: the engine that takes the run again sees what was written. An error of ctx leaves
// it open whether the events will be.
func (w *Writer) Append(ctx context.Context, events ...Event) error {
	if len(events) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	groups, err := w.encode(events)
	if err != nil {
		return err
	}
	mine := w.join(groups)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case w.turn <- struct{}{}:
	}
	defer func() { <-w.turn }()
	select {
	case <-mine.done:
	default:
		w.flush(context.WithoutCancel(ctx)) // others ride along
	}
	return mine.err
}

// encode makes lines of events: one group, or as many as there are events where it would be too large.
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

// join adds lines to what is written next.
func (w *Writer) join(groups [][]byte) *batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = &batch{done: make(chan struct{})}
	}
	w.next.groups = append(w.next.groups, groups...)
	return w.next
}

// flush writes what has gathered. It is called with the turn held.
func (w *Writer) flush(ctx context.Context) {
	w.mu.Lock()
	b := w.next
	w.next = nil
	w.mu.Unlock()
	defer close(b.done)
	ctx, cancel := context.WithTimeout(ctx, writeTime)
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
