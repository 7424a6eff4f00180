package guard

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"log/slog"
	"time"

	"sallyport/internal/policy"
	"sallyport/internal/store"
)

// countsKept is how long a count is in the store after its last change: a limit per day needs two days.
const countsKept = 3 * 24 * time.Hour

// sharedCounts keeps the counts of limits in the store, for all gateways. Each change is a compare-and-swap, so the gateways
// together never allow more than the limit. It implements [policy.SharedCounts].
type sharedCounts struct {
	bucket  *store.Bucket
	breaker *store.Breaker
	log     *slog.Logger
	// turns has a place for the change of one count at a time: many calls at once would make each other's changes fail, and take
	// longer than the store may. Several counts share one.
	turns [64]chan struct{}
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
	s := &sharedCounts{bucket: bucket, breaker: in.Breaker(), log: log}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s, nil
}

// Change implements [policy.SharedCounts].
func (s *sharedCounts) Change(ctx context.Context, key string, change func(c *policy.Count) bool) (done bool, err error) {
	at := hashedKey(key)
	turn := s.turns[crc32.ChecksumIEEE([]byte(at[0]))%uint32(len(s.turns))]
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-turn }()
	err = s.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, at, func(before store.Entry) ([]byte, error) {
			var c policy.Count
			if before.Revision > 0 {
				if err := json.Unmarshal(before.Value, &c); err != nil {
					return nil, err
				}
			}
			if done = change(&c); !done {
				return nil, nil
			}
			return json.Marshal(c)
		})
		return err
	})
	if err != nil {
		s.log.ErrorContext(ctx, "a limit of the policy cannot be counted: the call is refused", "error", err)
	}
	return done && err == nil, err
}
