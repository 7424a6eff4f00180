package executor

import (
	"context"
	"slices"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// FollowRunning calls seen with an active execution of the caller: at once, whenever it has changed (at most ten times a second),
// and once more with over set when it has ended. It returns after that, when ctx ends, or with the error of seen. Its other errors
// are *tool.Error.
func (ex *Executor) FollowRunning(ctx context.Context, id string, seen func(now Live, over bool) error) error {
	wake := make(chan struct{}, 1)
	defer ex.WatchRunning(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	x := ex.active.find(ctx, id)
	if x == nil {
		if _, err := ex.opts.History.Record(ctx, id); err != nil {
			return err
		}
		return &tool.Error{Kind: tool.Failed, Message: sanitize.Line(id, 60) + " has ended already"}
	}
	for {
		over := !ex.active.has(x)
		if err := seen(x.snapshot(), over); err != nil || over {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// has reports whether an execution is active.
func (l *activeSet) has(x *active) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.list, x)
}
