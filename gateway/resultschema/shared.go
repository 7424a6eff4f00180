package resultschema

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"sallyport/internal/store"
)

// maxShared bounds the entries of one upstream in a store, in bytes.
const maxShared = 6 << 20

// Shared is a [Storage] in a store that several gateways share, with one record per upstream.
type Shared struct {
	bucket  *store.Bucket
	breaker store.Breaker // callers do not wait long: what is learned can be stored later
}

var _ Storage = (*Shared)(nil)

// NewShared returns the shapes in a store.
func NewShared(in *store.Store) (*Shared, error) {
	bucket, err := in.Bucket("shapes", store.Limits{Records: 2000, Bytes: 64 << 20, Record: maxShared + 1<<20})
	if err != nil {
		return nil, err
	}
	return &Shared{bucket: bucket}, nil
}

// Load reads the entries of an upstream.
func (s *Shared) Load(upstream string) (Entries, error) {
	known := Entries{}
	err := s.breaker.Do(context.Background(), func(ctx context.Context) error {
		entry, err := s.bucket.Get(ctx, store.Key{upstream})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		known, err = decode(entry.Value)
		return err
	})
	return known, err
}

// Merge adds learned to the stored entries, and returns all. It replaces an invalid record.
func (s *Shared) Merge(upstream string, learned Entries) (all Entries, err error) {
	err = s.breaker.Do(context.Background(), func(ctx context.Context) error {
		_, err := s.bucket.Change(ctx, store.Key{upstream}, func(before store.Entry) ([]byte, error) {
			all, _ = decode(before.Value) // Load has reported the error
			all.Merge(learned)
			return encode(all, maxShared)
		})
		return err
	})
	return all, err
}

// Subscribe calls changed with each upstream with entries, and again when a gateway stores more, until end is called.
func (s *Shared) Subscribe(log *slog.Logger, changed func(upstream string)) (end func()) {
	return s.bucket.Subscribe(log, func(e store.Entry) { changed(e.Key[0]) })
}

// decode returns the entries in a record; they are never nil, also after an error.
func decode(data []byte) (Entries, error) {
	if len(data) == 0 {
		return Entries{}, nil
	}
	known := Entries{}
	if err := json.Unmarshal(data, &known); err != nil || known == nil {
		return Entries{}, errDamaged
	}
	return known, nil
}
