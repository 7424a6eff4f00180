package skills

import (
	"context"
	"sync"

	"sallyport/internal/skill"
)

// background brings skills to a store that gateways share, and keeps it tidy. The zero value does nothing.
type background struct {
	stop context.CancelFunc
	work sync.WaitGroup
}

func (b *background) start(in *skill.Store) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.work.Go(func() { in.Maintain(ctx) })
}

// end ends the work, and waits for it.
func (b *background) end() {
	if b.stop != nil {
		b.stop()
		b.work.Wait()
	}
}
