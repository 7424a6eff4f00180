package feedback

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"sallyport/internal/store"
)

// Shared is a [Storage] in a store that several gateways share, with one record per principal.
type Shared struct {
	bucket  *store.Bucket
	breaker store.Breaker // callers do not wait long: what is learned can be stored later
}

var _ Storage = (*Shared)(nil)

// NewShared returns the pairs in a store.
func NewShared(in *store.Store) (*Shared, error) {
	bucket, err := in.Bucket("clicks", store.Limits{Records: 10_000, Age: maxUnused, Bytes: 128 << 20, Record: 6 << 20})
	if err != nil {
		return nil, err
	}
	return &Shared{bucket: bucket}, nil
}

// Load reads the pairs of a principal.
func (s *Shared) Load(principal string) (known Pairs, err error) {
	err = s.breaker.Do(context.Background(), func(ctx context.Context) error {
		entry, err := s.bucket.Get(ctx, store.Key{fileName(principal)})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		known, err = decode(entry.Value)
		return err
	})
	if known == nil {
		known = Pairs{}
	}
	return known, err
}

// Merge adds learned to the stored pairs, and returns all. It replaces an invalid record, starting from known.
func (s *Shared) Merge(principal string, known, learned Pairs) (all Pairs, err error) {
	err = s.breaker.Do(context.Background(), func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, store.Key{fileName(principal)}, func(before store.Entry) ([]byte, error) {
			all = Pairs{}
			if before.Revision > 0 {
				var damaged error
				if all, damaged = decode(before.Value); damaged != nil {
					all = maps.Clone(known)
				}
			}
			all.Merge(learned)
			return json.Marshal(all)
		})
		return err
	})
	return all, err
}

// decode returns the pairs in a file or a record; they are never nil, also after an error.
func decode(data []byte) (Pairs, error) {
	var known Pairs
	if err := json.Unmarshal(data, &known); err != nil {
		return Pairs{}, errDamaged
	}
	return known, nil
}
