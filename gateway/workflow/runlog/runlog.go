// Package runlog keeps what runs of workflows did: a log of events for each run, fenced so that of two who
// continue with a run one learns that it is not alone, and a summary of each for lists. Its main types are [Logs] and [Writer].
// What an Append has acknowledged survives a kill of the process and a loss of power.
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

// Logs are the runs of a store. All methods are safe for concurrent use.
type Logs struct {
	store *store.Store
	log   *store.Log
	index *store.Bucket
	cache *Results
	once  *Results
	keep  time.Duration
	marks marks
}

// What the runs take at most. Nothing of a run goes before it is over: see Prune.
const (
	maxRuns    = 10_000
	logBytes   = 512 << 20
	indexBytes = 64 << 20
)

// Open returns the runs of a store. It makes and reads nothing yet.
func Open(s *store.Store) (*Logs, error) { return open(s, maxRuns, logBytes) }

func open(s *store.Store, runs int, size int64) (*Logs, error) {
	log, err := s.Log("runs", store.Limits{Records: 10_000_000, Bytes: size, Record: pieceSize + 1, Keep: true})
	index, err2 := s.Bucket("run_index", store.Limits{Records: runs, Bytes: indexBytes, Record: maxSummary, Keep: true})
	cache, err3 := openResults(s, "step_cache", false)
	once, err4 := openResults(s, "step_once", true)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	return &Logs{store: s, log: log, index: index, cache: cache, once: once, keep: keepFor}, nil
}

// KeepFor sets how long a run is kept after its end, in place of 30 days. It is called before anything else is.
func (l *Logs) KeepFor(d time.Duration) { l.keep = d }

// NewID returns the id of a run: the same for the same key, and a new one for "".
func NewID(key string) string {
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return "r-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
}

// Create begins the log of a run with its first events, and returns its writer. A run that exists already
// is a [store.ErrConflict]. Where there is too little room left for those under way it is a [store.ErrFull].
func (l *Logs) Create(ctx context.Context, run Run, first ...Event) (*Writer, error) {
	if err := l.room(ctx); err != nil {
		return nil, err
	}
	// The summary goes first: a run that has a log has one, so that summaries are a complete list of runs.
	if err := l.addSummary(ctx, run); err != nil {
		return nil, fmt.Errorf("begin run %s: %w", run.ID, err)
	}
	w := newWriter(l.log, store.Key{run.ID}, 0)
	err := w.Append(ctx, first...)
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrInvalid) { // else it may be there, and Take finds out
		err = errors.Join(err, l.index.Remove(ctx, store.Key{run.ID}))
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Take reads the log of a run to its end, and returns its writer: what that appends follows what fold has seen,
// or is a [store.ErrConflict]. A run with possibly damaged events is a [store.ErrCorrupt]. A run without events is a [store.ErrNotFound]; what Create has left of it goes. It ends at the first error of fold.
func (l *Logs) Take(ctx context.Context, id string, fold func(Event) error) (*Writer, error) {
	if err := l.Sound(ctx, id); err != nil {
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
	// errEnough ends a walk when its caller wants no more.
	errEnough = errors.New("enough")
	// errAnother is a log that is not the one that is marked.
	errAnother = errors.New("another log")
)

// Read walks over the events of a run with N above after, one record at a time in memory. Those before are not read where it
// is known where they end, else they are counted. An unknown run has none.
func (l *Logs) Read(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := l.marked(id, after, func(r *reader) error {
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

// Follow calls do with what Read would yield and then with each event as it is written, until ctx ends or do
// returns an error, and returns that.
func (l *Logs) Follow(ctx context.Context, id string, after int, do func(Event) error) error {
	return l.marked(id, after, func(r *reader) error {
		return l.log.Follow(ctx, store.Key{id}, r.from.revision, func(record store.Entry) error { return r.next(record, do) })
	})
}

// marked has a log read from the last mark before an event, or from its start where the mark is not of this log.
func (l *Logs) marked(id string, after int, read func(*reader) error) error {
	err := read(l.reader(id, after))
	if errors.Is(err, errAnother) {
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
	for e, err := range l.Read(ctx, id, 0) { // it is in pieces
		if err != nil {
			return Event{}, err
		}
		last = e
	}
	return last, nil
}

// Remove removes a run. An unknown one is no error.
func (l *Logs) Remove(ctx context.Context, id string) error {
	l.marks.forget(id)
	if err := l.log.Remove(ctx, store.Key{id}); err != nil { // the summary last, or nobody would find the log
		return fmt.Errorf("remove run %s: %w", id, err)
	}
	return l.index.Remove(ctx, store.Key{id})
}
