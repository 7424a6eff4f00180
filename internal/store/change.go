package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sallyport/internal/sleep"
)

const (
	// maxChanges bounds the attempts of Change, changePause the pause after one.
	maxChanges  = 100
	changePause = 5 * time.Millisecond
)

// Change replaces the value of a key by what change makes of it, and returns the new value. It calls change again if another
// writer was faster, with the value of that one; a key without a value has the zero Entry. If change returns nil, nothing is
// written. The error is that of change, or ErrConflict if others write all the time.
func (b *Bucket) Change(ctx context.Context, key Key, change func(before Entry) (after []byte, err error)) (Entry, error) {
	for range maxChanges {
		now, err := b.changeOnce(ctx, key, change)
		if !errors.Is(err, ErrConflict) {
			return now, err
		}
		if err := sleep.For(ctx, rand.N(changePause)); err != nil { // writers do not stay in step
			return Entry{}, err
		}
	}
	return Entry{}, ErrConflict
}

func (b *Bucket) changeOnce(ctx context.Context, key Key, change func(before Entry) ([]byte, error)) (Entry, error) {
	before, err := b.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Entry{}, err
	}
	after, err := change(before)
	if err != nil || after == nil {
		return before, err
	}
	revision, err := uint64(0), error(nil)
	if before.Revision == 0 {
		revision, err = b.Create(ctx, key, after)
	} else {
		revision, err = b.Update(ctx, key, after, before.Revision)
	}
	return Entry{Key: key, Value: after, Revision: revision, Time: time.Now()}, err
}
