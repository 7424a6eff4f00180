package privacy

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// tokenNumbers allocates token numbers that are unique per principal, across vaults and processes: a token
// in an old conversation must never get another value. Only the counter is stored.
type tokenNumbers struct {
	bucket  *store.Bucket
	breaker store.Breaker
	log     *slog.Logger
}

// maxNumber is the upper bound of numbers: a token has at most nine digits.
const maxNumber = 900_000_000

// UseStore allocates token numbers from a store, so that processes do not use the same ones; with nil the process
// numbers them itself. If gateways share the store and it has a key, it also has the values of tokens.
func (p *Tokenizer) UseStore(in *store.Store) error {
	if in == nil {
		return nil
	}
	kept, err := in.Bucket("tokens", store.Limits{Records: 100_000, Bytes: 16 << 20})
	if err != nil {
		return err
	}
	n := &tokenNumbers{bucket: kept, log: p.log}
	p.vaults.Lease = n.lease
	return p.shareVaults(in)
}

// lease implements [pii.Lease]. If the store fails, it starts at a random number in the upper half.
func (n *tokenNumbers) lease(principal string, size int) (base int) {
	err := n.breaker.Do(context.Background(), func(ctx context.Context) error {
		const tries = 10
		err := store.ErrConflict
		for range tries {
			if base, err = n.take(ctx, store.Key{workspace.Folder(principal)}, size); !errors.Is(err, store.ErrConflict) {
				break
			}
		}
		return err
	})
	if err == nil {
		return base
	}
	n.log.Warn("numbers of tokens cannot be kept", "error", err)
	return maxNumber/2 + rand.IntN(maxNumber/2-size)
}

// take advances the counter by size and returns its old value.
func (n *tokenNumbers) take(ctx context.Context, key store.Key, size int) (int, error) {
	entry, err := n.bucket.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		_, err = n.bucket.Create(ctx, key, []byte(strconv.Itoa(size)))
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	base, err := strconv.Atoi(string(entry.Value))
	if err != nil {
		return 0, err
	}
	if base >= maxNumber/2 {
		base = 0
	}
	_, err = n.bucket.Update(ctx, key, []byte(strconv.Itoa(base+size)), entry.Revision)
	return base, err
}
