package skills

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/skill"
	"sallyport/internal/sleep"
)

// background brings skills to a store that gateways share, and keeps it tidy. The zero value does nothing.
type background struct {
	stop context.CancelFunc
	work sync.WaitGroup
}

// The intervals of the work in the background.
const (
	takeoverRetry = 15 * time.Second
	tidyInterval  = time.Hour
)

func (b *background) start(in *skill.Store, log *slog.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.work.Go(func() {
		begin := func() error { return errors.Join(in.TakeOver(ctx), in.Fetch(ctx)) }
		for err := begin(); err != nil; err = begin() {
			if ctx.Err() == nil {
				log.Warn("skills are not in the store yet", "error", err)
			}
			if sleep.For(ctx, takeoverRetry) != nil {
				return
			}
		}
		for sleep.For(ctx, tidyInterval) == nil {
			if err := in.Tidy(ctx); err != nil && ctx.Err() == nil {
				log.Warn("unused contents of skills are not removed", "error", err)
			}
		}
	})
}

// end ends the work, and waits for it.
func (b *background) end() {
	if b.stop != nil {
		b.stop()
		b.work.Wait()
	}
}
