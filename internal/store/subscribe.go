package store

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/sleep"
)

// subscribePause is the pause after an error of the store.
const subscribePause = 2 * time.Second

// Subscribe calls do with each record, and then with each new one, from one goroutine, until end is called, which waits for it.
// After an error of the store it begins again, so do gets records that it has had. Deletions are left out.
func (b *Bucket) Subscribe(log *slog.Logger, do func(Entry)) (end func()) {
	return subscribe(log, b.name, func(ctx context.Context) error {
		return b.Follow(ctx, 0, func(e Entry) error { do(e); return nil })
	})
}

// Subscribe calls do with each record from a revision on, and then with each new one, as that of a bucket does.
func (l *Log) Subscribe(log *slog.Logger, from uint64, do func(Entry)) (end func()) {
	return subscribe(log, l.name, func(ctx context.Context) error {
		return l.Follow(ctx, nil, from, func(e Entry) error { do(e); return nil })
	})
}

func subscribe(log *slog.Logger, name string, follow func(ctx context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			err := follow(ctx)
			if sleep.For(ctx, subscribePause) == nil {
				log.Warn("records of other gateways cannot be read, retrying", "records", name, "error", err)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}
