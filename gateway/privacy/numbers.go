package privacy

import (
	"context"
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
	breaker *store.Breaker
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
	n := &tokenNumbers{bucket: kept, breaker: in.Breaker(), log: p.log}
	p.vaults.Lease = n.lease
	return p.shareVaults(in)
}

// lease implements [pii.Lease]. If the store fails, it starts at a random number in the upper half.
func (n *tokenNumbers) lease(principal string, size int) (base int) {
	err := n.breaker.Do(context.Background(), func(ctx context.Context) error {
		_, err := n.bucket.Change(ctx, store.Key{workspace.Folder(principal)}, func(before store.Entry) (after []byte, err error) {
			base = 0
			if before.Revision > 0 {
				if base, err = strconv.Atoi(string(before.Value)); err != nil {
					return nil, err
				}
			}
			if base >= maxNumber/2 {
				base = 0
			}
			return []byte(strconv.Itoa(base + size)), nil
		})
		return err
	})
	if err == nil {
		return base
	}
	n.log.Warn("numbers of tokens cannot be kept", "error", err)
	return maxNumber/2 + rand.IntN(maxNumber/2-size)
}
