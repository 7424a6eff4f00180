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
	return subscribe(log, b.name, 0, do, b.Follow)
}

// Subscribe calls do with each record from a revision on, and then with each new one, as that of a bucket does.
func (l *Log) Subscribe(log *slog.Logger, from uint64, do func(Entry)) (end func()) {
	return subscribe(log, l.name, from, do, func(ctx context.Context, from uint64, do func(Entry) error) error {
		return l.Follow(ctx, nil, from, do)
	})
}

func subscribe(log *slog.Logger, name string, next uint64, do func(Entry), follow func(context.Context, uint64, func(Entry) error) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			err := follow(ctx, next, func(e Entry) error {
				do(e)
				next = e.Revision + 1
				return nil
			})
			if ctx.Err() == nil && !errors.Is(err, ErrUnreachable) {
				log.Warn("records of other gateways cannot be read, retrying", "records", name, "error", err)
			}
			_ = sleep.For(ctx, subscribePause)
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}
