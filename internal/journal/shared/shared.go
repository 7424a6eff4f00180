// Package shared keeps copies of journals in a store that several gateways use, so that another gateway can take over the executions of
// one that has died. Its main type is [Journals].
package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/journal"
	"sallyport/internal/store"
)

const (
	// maxRecords and maxBytes bound all copies: beyond that, the oldest are dropped.
	maxRecords, maxBytes = 1_000_000, 512 << 20
	// pieceSize is the maximum size of a part of a batch.
	pieceSize = 1 << 20
)

// A batch is one or more records of the log. The first byte of a record says whether it is the first and the last of its batch; a batch
// without its last record does not count.
const (
	isFirst = 1 << iota
	isLast
)

// Journals are the copies of the journals of several gateways. It is safe for concurrent use; nil keeps no copies.
type Journals struct {
	log    *store.Log
	in     *store.Store
	logger *slog.Logger

	mu      sync.Mutex
	settled map[string]bool   // copies that need no gateway
	owners  map[string]string // the gateways that wrote the others
}

// Open returns the copies in a store, each of which is kept for a time; nil for a store of one process.
func Open(in *store.Store, keep time.Duration, logger *slog.Logger) (*Journals, error) {
	if !in.Shared() {
		return nil, nil
	}
	log, err := in.Log("journals", store.Limits{Records: maxRecords, Bytes: maxBytes, Record: pieceSize + 1, Age: keep})
	if err != nil {
		return nil, err
	}
	return &Journals{log: log, in: in, logger: logger, settled: map[string]bool{}, owners: map[string]string{}}, nil
}

// Gateway returns the id of this process among those that share the store, "" for nil.
func (j *Journals) Gateway() string {
	if j == nil {
		return ""
	}
	return j.in.Self()
}

// Alive reports whether a gateway may be alive.
func (j *Journals) Alive(gateway string) bool {
	return j != nil && j.in.Alive(context.Background(), gateway) // the store bounds the time
}

// Copy returns the copy of one journal, by the folder of its principal and its id; nil for nil.
func (j *Journals) Copy(folder, id string) journal.Copy {
	if j == nil {
		return nil
	}
	return &journalCopy{of: j, key: store.Key{folder, id}}
}

// Void makes sure that the gateway of an execution without a copy cannot begin one, so that it makes no call that must not be made twice.
// The error is [journal.ErrRunning] if it has begun one.
func (j *Journals) Void(ctx context.Context, folder string, h journal.Header) error {
	data, err := journal.Void(h)
	if err != nil {
		return err
	}
	key := store.Key{folder, h.ID}
	if _, err = j.append(ctx, key, 0, data); !errors.Is(err, store.ErrConflict) {
		return err
	}
	loaded, _, err := j.load(ctx, key)
	if err != nil {
		return err
	}
	if contents, err := journal.Parse(loaded.Data); err != nil || !contents.Void {
		return journal.ErrRunning
	}
	return nil
}

// append adds a batch after a revision, and returns the new revision.
func (j *Journals) append(ctx context.Context, key store.Key, after uint64, data []byte) (uint64, error) {
	for first := true; first || len(data) > 0; first = false {
		n, mark := min(len(data), pieceSize), byte(0)
		if first {
			mark |= isFirst
		}
		if n == len(data) {
			mark |= isLast
		}
		revision, err := j.log.AppendAfter(ctx, key, after, append([]byte{mark}, data[:n]...))
		if err != nil {
			return after, err
		}
		after, data = revision, data[n:]
	}
	return after, nil
}

// load returns the content of a copy, and its revision.
func (j *Journals) load(ctx context.Context, key store.Key) (loaded journal.Loaded, revision uint64, err error) {
	var batch []byte
	for e, err := range j.log.Read(ctx, key, 0) {
		if err != nil {
			return journal.Loaded{}, 0, err
		}
		revision, loaded.Written = e.Revision, e.Time
		if len(e.Value) == 0 {
			return journal.Loaded{}, 0, fmt.Errorf("%w: an empty record", journal.ErrDamaged)
		}
		if e.Value[0]&isFirst != 0 {
			batch = nil
		}
		batch = append(batch, e.Value[1:]...)
		if e.Value[0]&isLast != 0 {
			loaded.Data, batch = append(loaded.Data, batch...), nil
		}
	}
	return loaded, revision, nil
}

// Left calls take with each copy that needs a gateway: the one that wrote it has died, and its execution is not on record.
func (j *Journals) Left(ctx context.Context, take func(folder, id string)) error {
	keys, err := j.log.Keys(ctx)
	if err != nil {
		return err
	}
	j.forget(keys)
	for _, key := range keys {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if left, err := j.needsGateway(ctx, key); err != nil {
			j.logger.WarnContext(ctx, "the journal of another gateway cannot be read", "key", fmt.Sprintf("%.80q", key), "error", err)
		} else if left {
			take(key[0], key[1])
		}
	}
	return nil
}

// forget drops what is known of copies that are gone.
func (j *Journals) forget(keys []store.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	settled, owners := map[string]bool{}, map[string]string{}
	for _, key := range keys {
		name := nameOf(key)
		if j.settled[name] {
			settled[name] = true
		}
		if owner, known := j.owners[name]; known {
			owners[name] = owner
		}
	}
	j.settled, j.owners = settled, owners
}

func nameOf(key store.Key) string { return fmt.Sprintf("%q", []string(key)) }

func (j *Journals) needsGateway(ctx context.Context, key store.Key) (bool, error) {
	name := nameOf(key)
	j.mu.Lock()
	settled, owner := j.settled[name], j.owners[name]
	j.mu.Unlock()
	if settled || len(key) != 2 || owner != "" && j.in.Alive(ctx, owner) {
		return false, nil
	}
	loaded, _, err := j.load(ctx, key)
	if err != nil || loaded.Data == nil {
		return false, err
	}
	contents, err := journal.Parse(loaded.Data)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.settled[name] = true // it is reported once
		return false, err
	}
	j.settled[name], j.owners[name] = contents.Kept, contents.Gateway
	return !contents.Kept && !j.in.Alive(ctx, contents.Gateway), nil
}

// endsWith reports whether a copy is what had size bytes, and then a batch.
func endsWith(loaded journal.Loaded, size int, batch []byte) bool {
	return len(loaded.Data) == size+len(batch) && bytes.HasSuffix(loaded.Data, batch)
}
