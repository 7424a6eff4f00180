package sharedrecords

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/seal"
	"sallyport/internal/store"
)

// ErrKey is the error of a gateway with another key than the others of its store.
var ErrKey = errors.New("store.key is not the key of the other gateways of this store: all need the same file")

const checkName = "key_check"

func checkLimits() store.Limits { return store.Limits{Records: 10, Bytes: 1 << 20, Keep: true} }

// CheckKey checks that the key of a store is that of the other gateways: the first one leaves a record. The error is [ErrKey], or that of a
// store that does not answer. Without a key it does nothing.
func CheckKey(ctx context.Context, in *store.Store) error {
	r, err := OpenSealed(in, checkName, checkLimits())
	if r == nil || err != nil {
		return err
	}
	_, revision, err := r.Get(ctx, true, "check")
	switch {
	case errors.Is(err, seal.ErrOtherKey):
		return ErrKey
	case err != nil:
		return err
	case revision > 0:
		_, err = r.Reseal(ctx)
		return err
	}
	if _, err := r.Put(ctx, []byte("check"), 0, "check"); err != nil { // another gateway may be first
		return err
	}
	_, _, err = r.Get(ctx, true, "check")
	if errors.Is(err, seal.ErrOtherKey) {
		return ErrKey
	}
	return err
}

// Reseal seals the records that are sealed with an older key of the store with the first one, and returns their number.
func (r *Records) Reseal(ctx context.Context) (n int, err error) {
	for e, err := range r.bucket.List(ctx, nil) {
		if err != nil {
			return n, err
		}
		if r.key.Sealed(e.Value) {
			continue
		}
		data, err := r.open(e.Value, e.Key)
		if err != nil {
			return n, fmt.Errorf("record %.100q: %w", e.Key, err)
		}
		ok, err := r.Put(ctx, data, e.Revision, e.Key...)
		if err != nil {
			return n, err
		}
		if ok { // else it was written, and sealed, in the meantime
			n++
		}
	}
	return n, nil
}
