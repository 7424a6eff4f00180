package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/sleep"
)

// subscribePause is the pause after an error of the store.
const subscribePause = 2 * time.Second

// Subscribe calls do with each record, and then with each new one, from one goroutine, until end is called, which waits for it.
// After an error of the store it continues with the records that do has not seen. Deletions are left out.
func (b *Bucket) Subscribe(log *slog.Logger, do func(Entry)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		next := uint64(0)
		for ctx.Err() == nil {
			err := b.Follow(ctx, next, func(e Entry) error {
				do(e)
				next = e.Revision + 1
				return nil
			})
			if ctx.Err() == nil && !errors.Is(err, ErrUnreachable) {
				log.Warn("records of other gateways cannot be read, retrying", "records", b.name, "error", err)
			}
			_ = sleep.For(ctx, subscribePause)
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}
