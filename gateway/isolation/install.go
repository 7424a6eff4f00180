package isolation

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// installs are installations in progress, by what they install. The zero value has none.
type installs[T any] struct {
	mu    sync.Mutex
	byKey map[string]*install[T]
}

// install is an installation, in progress or finished.
type install[T any] struct {
	done   chan struct{}
	result T // valid once done is closed
	err    error
}

// installMargin is the time before the end of an attempt to connect at which it stops to wait for an installation.
const installMargin = time.Second

// get returns the result of an installation, which it starts unless it is in progress. It continues when ctx ends, for the next attempt.
func (i *installs[T]) get(ctx context.Context, l *Launcher, key, what string, run func() (T, error)) (T, error) {
	one := i.start(l, key, run)
	limit := ctx.Done()
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithDeadline(ctx, deadline.Add(-installMargin))
		defer cancel()
		limit = limited.Done()
	}
	select {
	case <-one.done:
		return one.result, one.err
	case <-limit:
		var none T
		return none, fmt.Errorf("%s is being installed; try again in a minute", what)
	}
}

func (i *installs[T]) start(l *Launcher, key string, run func() (T, error)) *install[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	if one := i.byKey[key]; one != nil {
		return one
	}
	one := &install[T]{done: make(chan struct{})}
	if i.byKey == nil {
		i.byKey = map[string]*install[T]{}
	}
	i.byKey[key] = one
	l.work.Go(func() {
		one.result, one.err = run()
		i.mu.Lock()
		delete(i.byKey, key) // the installer knows the result, and a failure can be repeated
		i.mu.Unlock()
		close(one.done)
	})
	return one
}
