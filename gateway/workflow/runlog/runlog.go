// Package runlog stores runs of workflows: a log of events for each run, fenced so that of two engines that
// continue the same run one gets an error, and a summary of each run for lists. Its main types are [Logs] and [Writer].
// Events that Append has acknowledged survive a kill of the process and a loss of power.
package runlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"sallyport/internal/store"
)

// Logs are the logs and summaries of runs in a store. All methods are safe for concurrent use.
type Logs struct {
	store     *store.Store
	log       *store.Log
	index     *store.Bucket
	cache     *Results
	once      *Results
	retention time.Duration
	marks     marks
}

// The limits of all runs together. Unfinished runs are never removed: see Prune.
const (
	maxRuns    = 10_000
	logBytes   = 512 << 20
	indexBytes = 64 << 20
)

// Open returns the runs of a store. It does not read or create anything yet.
func Open(s *store.Store) (*Logs, error) { return open(s, maxRuns, logBytes) }

func open(s *store.Store, runs int, size int64) (*Logs, error) {
	log, err := s.Log("runs", store.Limits{Records: 10_000_000, Bytes: size, Record: pieceSize + 1, Keep: true})
	index, err2 := s.Bucket("run_index", store.Limits{Records: runs, Bytes: indexBytes, Record: maxSummary, Keep: true})
	cache, err3 := openResults(s, "step_cache", false)
	once, err4 := openResults(s, "step_once", true)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	return &Logs{store: s, log: log, index: index, cache: cache, once: once, retention: defaultRetention}, nil
}

// SetRetention sets how long finished runs are stored; the default is 30 days. It must be called before any other method.
func (l *Logs) SetRetention(d time.Duration) { l.retention = d }

// NewID returns the id of a run: the same for the same key, a random one for "".
func NewID(key string) string {
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return "r-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
}

// Create creates the log of a run with its first events, and returns its writer. An existing run
// is a [store.ErrConflict]. Too little space for the unfinished runs is a [store.ErrFull].
func (l *Logs) Create(ctx context.Context, run Run, first ...Event) (*Writer, error) {
	if err := l.makeRoom(ctx); err != nil {
		return nil, err
	}
	// The summary goes first: a run that has a log has one, so that summaries are a complete list of runs.
	if err := l.addSummary(ctx, run); err != nil {
		return nil, fmt.Errorf("begin run %s: %w", run.ID, err)
	}
	w := newWriter(l.log, store.Key{run.ID}, 0)
	err := w.Append(ctx, first...)
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrInvalid) { // after other errors it may have been written, which Take checks
		err = errors.Join(err, l.index.Remove(ctx, store.Key{run.ID}))
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// OpenWriter calls fold with all events of a run, and returns its writer: what it appends directly follows these events,
// else Append is a [store.ErrConflict]. Possibly damaged events are a [store.ErrCorrupt]. A run without events is a [store.ErrNotFound], and its summary is removed. Take stops at the first error of fold.
func (l *Logs) OpenWriter(ctx context.Context, id string, fold func(Event) error) (*Writer, error) {
	if err := l.Verify(ctx, id); err != nil {
		return nil, err
	}
	last, events, err := l.read(ctx, id, fold)
	if err == nil && events == 0 {
		err = errors.Join(store.ErrNotFound, l.index.Remove(ctx, store.Key{id}))
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", id, err)
	}
	return newWriter(l.log, store.Key{id}, last), nil
}

// read calls do with each event, and returns the revision of the last record.
func (l *Logs) read(ctx context.Context, id string, do func(Event) error) (revision uint64, events int, err error) {
	var d decoder
	for record, err := range l.log.Read(ctx, store.Key{id}, 0) {
		if err != nil {
			return 0, d.seen, err
		}
		if err := d.add(record.Value, do); err != nil {
			return 0, d.seen, err
		}
		revision = record.Revision
	}
	return revision, d.seen, nil
}

var (
	// errEnough stops reading when the consumer stops iterating.
	errEnough = errors.New("enough")
	// errOtherLog is returned if a mark is not of this log.
	errOtherLog = errors.New("another log")
)

// Read iterates over the events of a run with N above after, with one record at a time in memory. It skips earlier
// events by marks, or counts them. An unknown run has no events.
func (l *Logs) Read(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := l.readFromMark(id, after, func(r *reader) error {
			for record, err := range l.log.Read(ctx, store.Key{id}, r.from.revision) {
				if err == nil {
					err = r.next(record, func(e Event) error {
						if !yield(e, nil) {
							return errEnough
						}
						return nil
					})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Event{}, fmt.Errorf("read run %s: %w", id, err))
		}
	}
}

// Follow calls do with the events that Read yields, and then with each new event, until ctx ends or do
// returns an error. It returns that error.
func (l *Logs) Follow(ctx context.Context, id string, after int, do func(Event) error) error {
	return l.readFromMark(id, after, func(r *reader) error {
		return l.log.Follow(ctx, store.Key{id}, r.from.revision, func(record store.Entry) error { return r.next(record, do) })
	})
}

// readFromMark calls read with a reader at the last mark before an event, or again from the start if the mark is of another log.
func (l *Logs) readFromMark(id string, after int, read func(*reader) error) error {
	err := read(l.reader(id, after))
	if errors.Is(err, errOtherLog) {
		l.marks.forget(id)
		err = read(l.reader(id, after))
	}
	return err
}

// Last returns the newest event of a run, or [store.ErrNotFound].
func (l *Logs) Last(ctx context.Context, id string) (last Event, err error) {
	record, err := l.log.Last(ctx, store.Key{id})
	if err != nil {
		return Event{}, fmt.Errorf("read run %s: %w", id, err)
	}
	if len(record.Value) > 0 && record.Value[0] == lines {
		var d decoder
		err = d.add(record.Value, func(e Event) error { last = e; return nil })
		last.N = 0
		return last, err
	}
	for e, err := range l.Read(ctx, id, 0) { // the event is split
		if err != nil {
			return Event{}, err
		}
		last = e
	}
	return last, nil
}

// Remove removes a run. An unknown run is not an error.
func (l *Logs) Remove(ctx context.Context, id string) error {
	l.marks.forget(id)
	if err := l.log.Remove(ctx, store.Key{id}); err != nil { // the summary last, so that the log can be found after an error
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	return l.index.Remove(ctx, store.Key{id})
}
