package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"sallyport/internal/policy"
	"sallyport/internal/store"
)

const (
	// countsKept is how long a count is in the store after its last change: a limit per day needs two days.
	countsKept = 3 * 24 * time.Hour
	// maxTakes bounds the attempts to change a count that other gateways change, too.
	maxTakes = 50
)

// sharedCounts keeps the counts of limits in the store, for all gateways. Each change is a compare-and-swap, so the gateways
// together never allow more than the limit. It implements [policy.SharedCounts].
type sharedCounts struct {
	bucket  *store.Bucket
	breaker store.Breaker
	log     *slog.Logger
}

// openCounts returns the counts of all gateways of a store, nil if no other gateway shares it.
func openCounts(in *store.Store, log *slog.Logger) (policy.SharedCounts, error) {
	if !in.Shared() {
		return nil, nil
	}
	bucket, err := in.Bucket("limits", store.Limits{Records: 200_000, Age: countsKept, Bytes: 64 << 20, Record: 4 << 10})
	if err != nil {
		return nil, err
	}
	return &sharedCounts{bucket: bucket, log: log}, nil
}

// Change implements [policy.SharedCounts].
func (s *sharedCounts) Change(ctx context.Context, key string, change func(c *policy.Count) bool) (done bool, err error) {
	sum := sha256.Sum256([]byte(key))
	at := store.Key{hex.EncodeToString(sum[:16])}
	for range maxTakes {
		done, err = s.try(ctx, at, change)
		if !errors.Is(err, store.ErrConflict) {
			break
		}
		select { // several gateways that count the same do not stay in step
		case <-time.After(time.Duration(rand.Int64N(int64(5 * time.Millisecond)))):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	if err != nil {
		s.log.ErrorContext(ctx, "a limit of the policy cannot be counted: the call is refused", "error", err)
	}
	return done, err
}

// try changes a count once; the error is store.ErrConflict if another gateway has changed it.
func (s *sharedCounts) try(ctx context.Context, at store.Key, change func(c *policy.Count) bool) (done bool, err error) {
	err = s.breaker.Do(ctx, func(ctx context.Context) error {
		var c policy.Count
		entry, err := s.bucket.Get(ctx, at)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := json.Unmarshal(entry.Value, &c); err != nil {
				return err
			}
		}
		if done = change(&c); !done {
			return nil
		}
		data, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if entry.Revision == 0 {
			_, err = s.bucket.Create(ctx, at, data)
		} else {
			_, err = s.bucket.Update(ctx, at, data, entry.Revision)
		}
		return err
	})
	return done && err == nil, err
}
