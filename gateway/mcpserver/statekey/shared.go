package statekey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/store"
)

// sharedTime is how long [Shared] waits for the servers.
const sharedTime = 5 * time.Second

// Shared returns the key of all gateways that share a store, so that each reads what another one gave to a client. The first one makes it.
func Shared(ctx context.Context, records *store.Store) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	bucket, err := records.Bucket("state_key", store.Limits{Records: 1, Bytes: 1 << 20, Keep: true})
	if err != nil {
		return nil, fmt.Errorf("open shared key: %w", err)
	}
	name := store.Key{"key"}
	entry, err := bucket.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		fresh := make([]byte, size)
		_, _ = rand.Read(fresh) // never fails
		if _, err := bucket.Create(ctx, name, fresh); err != nil && !errors.Is(err, store.ErrConflict) {
			return nil, fmt.Errorf("store shared key: %w", err)
		}
		entry, err = bucket.Get(ctx, name) // another gateway may have been first
	}
	if err != nil {
		return nil, fmt.Errorf("read shared key: %w", err)
	}
	if len(entry.Value) != size {
		return nil, errors.New("read shared key: it is damaged")
	}
	return entry.Value, nil
}
