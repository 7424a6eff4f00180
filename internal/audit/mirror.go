package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"sallyport/internal/store"
)

// Mirror is the copy of a log in the store of records, line by line as the files have it.
type Mirror struct {
	in  *store.Store
	log *store.Log
	key store.Key // of all batches of the copy

	mu       sync.Mutex
	known    bool   // the following are those of the newest batch
	revision uint64 // 0 for none
	seq      uint64 // of its last record
}

// mirrorKey returns the key of the copy of a log: in a store that several gateways share, each has one of its own.
func mirrorKey(in *store.Store, chain string) store.Key {
	if !in.Shared() {
		return store.Key{"records"}
	}
	return store.Key{"records", chain}
}

// Chains returns the names of the chains with a copy in a store that several gateways share; nil for another store.
func Chains(ctx context.Context, in *store.Store) (all []string, err error) {
	m, err := NewMirror(in, "", 0, 0)
	if err != nil || !in.Shared() {
		return nil, err
	}
	keys, err := m.log.Keys(ctx)
	for _, key := range keys {
		if len(key) == 2 && key[0] == "records" {
			all = append(all, key[1])
		}
	}
	slices.Sort(all)
	return all, err
}

// maxMirror bounds the copy in the store, in bytes. It has the newest records.
const maxMirror = 256 << 20

// NewMirror returns the copy of a chain (see [Chain]) in a store. keep bounds the age of its records, size their bytes; 0 is no limit, except that of maxMirror.
func NewMirror(in *store.Store, chain string, keep time.Duration, size int64) (*Mirror, error) {
	if size == 0 || size > maxMirror {
		size = maxMirror
	}
	log, err := in.Log("audit", store.Limits{Records: 1_000_000, Age: keep, Bytes: size})
	if err != nil {
		return nil, err
	}
	return &Mirror{in: in, log: log, key: mirrorKey(in, chain)}, nil
}

// maxConflicts bounds the attempts to copy records while an earlier attempt is being stored.
const maxConflicts = 5

// Send implements [Sink]. It leaves out records that the copy has: an attempt that failed may have stored them.
func (m *Mirror) Send(ctx context.Context, records []Record) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range maxConflicts {
		if err = m.send(ctx, records); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// send is one attempt. It is called with mu held.
func (m *Mirror) send(ctx context.Context, records []Record) error {
	if !m.known {
		if err := m.readLast(ctx); err != nil {
			return err
		}
	}
	var lines [][]byte
	for _, r := range records {
		if r.Seq > m.seq {
			lines = append(lines, r.Line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	revision, err := m.log.AppendAfter(ctx, m.key, m.revision, bytes.Join(lines, []byte("\n")))
	m.known, m.revision, m.seq = err == nil, revision, records[len(records)-1].Seq
	return err
}

// readLast reads which batch is the newest. It is called with mu held.
func (m *Mirror) readLast(ctx context.Context) error {
	last, entry, err := m.last(ctx)
	if err == nil {
		m.known, m.revision, m.seq = true, entry.Revision, last.Seq
	}
	return err
}

// last returns the newest record in the copy and its batch; their zero values if there is none.
func (m *Mirror) last(ctx context.Context) (Record, store.Entry, error) {
	entry, err := m.newest(ctx)
	if err != nil || entry.Revision == 0 {
		return Record{}, store.Entry{}, err
	}
	r, err := decode(entry.Value[bytes.LastIndexByte(entry.Value, '\n')+1:])
	if err != nil {
		return Record{}, store.Entry{}, fmt.Errorf("%w: the copy: %w", ErrDamaged, err)
	}
	return r, entry, nil
}

// newest returns the newest batch in the copy, the zero entry if there is none.
func (m *Mirror) newest(ctx context.Context) (store.Entry, error) {
	entry, err := m.log.Last(ctx, m.key)
	if errors.Is(err, store.ErrNotFound) {
		return store.Entry{}, nil
	}
	return entry, err
}

// Last returns the number and the hash of the newest record in the copy, 0 for none.
func (m *Mirror) Last(ctx context.Context) (seq uint64, hash string, err error) {
	r, _, err := m.last(ctx)
	if err != nil {
		return 0, "", err
	}
	if r.Seq == 0 {
		return 0, noHash, nil
	}
	return r.Seq, r.Hash, nil
}

// Lines yields the lines of the copy, the oldest first.
func (m *Mirror) Lines(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for entry, err := range m.log.Read(ctx, m.key, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.SplitSeq(entry.Value, []byte("\n")) {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}

// Mirror copies all records to the store until ctx ends. First it records a gap if the files lack records that the copy has.
func (l *Log) Mirror(ctx context.Context, m *Mirror) error {
	seq, hash, err := m.Last(ctx)
	if err != nil {
		return fmt.Errorf("copy audit records: %w", err)
	}
	if err := l.recordMissing(end{seq, hash}); err != nil {
		return fmt.Errorf("copy audit records: %w", err)
	}
	sink, err := l.signed(m)
	if err != nil {
		return fmt.Errorf("copy audit records: %w", err)
	}
	d := &delivery{log: l, sink: sink, slog: l.log, state: State{Name: "records", Seq: seq}}
	d.run(ctx)
	return nil
}

// recordMissing records a gap if the log ends before a known record.
func (l *Log) recordMissing(known end) error {
	if known.seq == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withLock(func() error {
		if known.seq <= l.at.seq {
			return nil
		}
		return l.writeGap(known)
	})
}
