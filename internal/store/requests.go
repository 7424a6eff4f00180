package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/internal/sleep"
)

const (
	// requestAge is how long a request is kept at most; a caller waits for less.
	requestAge = time.Minute
	// askInterval is how often a caller checks whether its request was done.
	askInterval = 100 * time.Millisecond
	// withdrawTimeout bounds the removal of a request that was not done.
	withdrawTimeout = 2 * time.Second
)

// Requests are requests to whichever of the processes that share a store can do them, such as to cancel what it runs. A request may be
// done more than once. It is safe for concurrent use.
type Requests struct{ bucket *Bucket }

// Requests returns the requests of a name.
func (s *Store) Requests(name string) (*Requests, error) {
	bucket, err := s.Bucket("requests_"+name, Limits{Records: 10_000, Age: requestAge, Bytes: 8 << 20, Record: 4 << 10})
	if err != nil {
		return nil, err
	}
	return &Requests{bucket}, nil
}

// Ask sends a request, and returns when a process has done it. If none does before ctx ends, the request is withdrawn and the error is
// that of ctx.
func (r *Requests) Ask(ctx context.Context, key Key, value []byte) error {
	revision, err := r.bucket.Put(ctx, key, value)
	if err != nil {
		return err
	}
	for sleep.For(ctx, askInterval) == nil {
		if _, err := r.bucket.Get(ctx, key); errors.Is(err, ErrNotFound) {
			return nil
		}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	_ = r.bucket.Delete(limited, key, revision) // it expires anyway
	return context.Cause(ctx)
}

// Serve calls do with each request, from one goroutine, until end is called. do reports whether it did the request; then it is removed.
func (r *Requests) Serve(log *slog.Logger, do func(key Key, value []byte) bool) (end func()) {
	return r.bucket.Subscribe(log, func(e Entry) {
		if !do(e.Key, e.Value) {
			return
		}
		limited, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
		defer cancel()
		if err := r.bucket.Delete(limited, e.Key, e.Revision); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			log.Warn("a request that was done is not removed", "requests", r.bucket.name, "error", err)
		}
	})
}
