package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// roomyStream rejects new records of a bucket that is full and must not drop any. Servers with replicas would also reject
// a record that replaces another one, so their own limits are somewhat higher (roomFor).
type roomyStream struct {
	*jet

	limits Limits

	mu      sync.Mutex
	records int   // that fit, as far as this process knows
	bytes   int64 // that fit
}

// spareRecords is the number of records by which the limit of the servers is higher.
const spareRecords = 1000

// roomFor returns the limits of the servers for the limits of a bucket.
func roomFor(l Limits) Limits {
	l.Records += spareRecords
	l.Bytes += 2 * int64(l.Record)
	return l
}

func (r *roomyStream) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	if !r.take(len(m.data)) {
		if err := r.check(ctx, subject, len(m.data)); err != nil {
			return 0, err
		}
	}
	return r.jet.append(ctx, subject, m, after)
}

// take reports whether a record fits for certain.
func (r *roomyStream) take(size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records--
	r.bytes -= int64(size) + 1<<10 // with overhead
	return r.records >= 0 && r.bytes >= 0
}

// check asks the servers whether a record fits, or replaces another one.
func (r *roomyStream) check(ctx context.Context, subject string, size int) error {
	records, bytes, err := r.usage(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.records, r.bytes = r.limits.Records-records, r.limits.Bytes-bytes
	r.mu.Unlock()
	if r.take(size) {
		return nil
	}
	if _, err := r.last(ctx, subject); errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %d records, %d bytes", ErrFull, records, bytes)
	}
	return nil // what it replaces makes room
}
