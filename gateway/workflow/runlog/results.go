package runlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/store"
)

// Results stores outputs of steps for later runs. All methods are safe for concurrent use.
type Results struct{ bucket *store.Bucket }

// maxResultAge limits the lifetime of a result.
const maxResultAge = 30 * 24 * time.Hour

func openResults(s *store.Store, name string, keep bool) (*Results, error) {
	bucket, err := s.Bucket(name, store.Limits{Records: 50_000, Age: maxResultAge, Bytes: 96 << 20, Record: 7 << 20, Keep: keep})
	return &Results{bucket}, err
}

// Cache returns the store of cached results: the oldest are evicted when it is full.
func (l *Logs) Cache() *Results { return l.cache }

// Once returns the store of results by idempotency key: none is evicted before its time; a full store is a [store.ErrFull].
func (l *Logs) Once() *Results { return l.once }

// savedResult is a stored result.
type savedResult struct {
	Until time.Time       `json:"until"`
	Value json.RawMessage `json:"value"`
}

// Save stores a JSON value of up to 7 MiB under a key, until a time at most 30 days ahead.
func (r *Results) Save(ctx context.Context, key string, value json.RawMessage, until time.Time) error {
	data, err := json.Marshal(savedResult{until, value})
	if err == nil {
		_, err = r.bucket.Put(ctx, store.Key{key}, data)
	}
	if err != nil {
		return fmt.Errorf("keep a step's output: %w", err)
	}
	return nil
}

// Load returns the value of a key, or a [store.ErrNotFound].
func (r *Results) Load(ctx context.Context, key string) (json.RawMessage, error) {
	e, err := r.bucket.Get(ctx, store.Key{key})
	if err != nil {
		return nil, err
	}
	var k savedResult
	if err := json.Unmarshal(e.Value, &k); err != nil {
		return nil, errors.Join(store.ErrCorrupt, err)
	}
	if !time.Now().Before(k.Until) {
		return nil, store.ErrNotFound
	}
	return k.Value, nil
}
