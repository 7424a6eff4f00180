package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/natsconn"
)

// Order is what a gateway's credentials can tell a worker. It is sent as a link is asked for, so that it needs no other rights.
type Order string

const (
	// Drain is the order to take no more programs. Those that run go on.
	Drain Order = "drain"
	// Resume is the order to take programs again.
	Resume Order = "resume"
)

// orderTime is how long workers may take to follow an order.
const orderTime = 10 * time.Second

// UnknownError is the error for a worker that has not joined.
type UnknownError struct {
	Name  string
	Known []string // those that have
}

// Error implements error.
func (e *UnknownError) Error() string { return fmt.Sprintf("no worker %q has joined", e.Name) }

// Command gives an order to all processes of a worker that answer within a time, and returns them when they follow it. With idle it waits until
// they also run no program, as long as that takes. A process that starts later takes programs.
func Command(ctx context.Context, server natsconn.Server, prefix, name string, order Order, idle bool, within time.Duration) ([]Worker, error) {
	r, err := askWorkers(ctx, server, prefix, within)
	if err != nil {
		return nil, err
	}
	defer r.conn.Close()
	mine := r.named(name)
	if len(mine) == 0 {
		return nil, &UnknownError{name, r.names()}
	}
	for _, w := range mine {
		if err := r.conn.Publish(r.subjects.dial(name, w.Instance), []byte(order)); err != nil {
			return nil, err
		}
	}
	following := func(w Worker) bool { return w.Draining == (order == Drain) }
	if err := r.await(ctx, name, orderTime, following); err != nil || !idle {
		return r.named(name), err
	}
	return r.named(name), r.await(ctx, name, 0, func(w Worker) bool { return w.Busy == 0 || !following(w) })
}

// named returns the processes of a worker.
func (r *registry) named(name string) []Worker {
	return slices.DeleteFunc(r.list(), func(w Worker) bool { return w.Name != name })
}

// names returns the names of all workers.
func (r *registry) names() (names []string) {
	for _, w := range r.list() {
		names = append(names, w.Name)
	}
	return slices.Compact(names) // they are sorted
}

// await waits until all processes of a worker are as wanted, or gone; at most for a time, 0 for as long as it takes.
func (r *registry) await(ctx context.Context, name string, within time.Duration, wanted func(Worker) bool) error {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	var late <-chan time.Time
	if within > 0 {
		late = time.After(within)
	}
	for {
		changed := r.next()
		if !slices.ContainsFunc(r.named(name), func(w Worker) bool { return !wanted(w) }) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-late:
			return fmt.Errorf("the worker %s did not follow within %s: it ends, it hangs, or its sallyport is older", name, within)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
