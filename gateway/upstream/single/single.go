// Package single runs the process of an upstream with instances: one at one of the gateways that share a store, and connects the
// others to it over NATS. Its main type is [Runner].
package single

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/natsstream"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
)

// Options configure a [Runner]. All are required.
type Options struct {
	// Server are the servers of the store, Prefix is its prefix.
	Server natsconn.Server
	Prefix string
	// Records is a store that gateways share.
	Records *store.Store
	// Serve serves an upstream whose process is here to another gateway, which speaks MCP. It writes one byte first, when the
	// upstream is connected, and returns when the connection or ctx ends. The other gateway gets its error.
	Serve  func(ctx context.Context, id string, conn io.ReadWriteCloser) error
	Logger *slog.Logger
}

const (
	// retryInterval is how often a gateway tries again to reach the one that runs a process, or to take its place.
	retryInterval = 500 * time.Millisecond
	// dialTimeout is how long the other gateway may take to accept a connection.
	dialTimeout = 5 * time.Second
	// watchInterval is how often a gateway checks that it does not count as dead. If it was stopped for maxPause, it may.
	watchInterval = time.Second
	maxPause      = 3 * time.Second
	checkTimeout  = 2 * time.Second
	// maxLinks bounds the connections of other gateways.
	maxLinks = 1024
)

// Runner decides which gateway runs the process of an upstream. The one that is first claims it in the store, until it ends; then
// another does. A gateway that cannot reach the store gives up what it has claimed before the others count it as dead. It is safe
// for concurrent use.
type Runner struct {
	opts     Options
	log      *slog.Logger
	self     string
	subjects subjects
	claims   *store.Claims
	quit     context.Context //nolint:containedctx // ends with the runner
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu    sync.Mutex
	conn  *nats.Conn // nil before the first Join
	held  map[string]*hold
	links map[string]*natsstream.Stream // of other gateways, by id
}

// hold is the process of an upstream that this gateway runs.
type hold struct {
	lost  chan struct{}
	links map[*natsstream.Stream]bool
}

// New returns a runner. It connects to the servers when it is first needed.
func New(opts Options) (*Runner, error) {
	claims, err := opts.Records.Claims("upstreams")
	if err != nil {
		return nil, fmt.Errorf("open claims of upstreams: %w", err)
	}
	r := &Runner{opts: opts, log: opts.Logger, self: opts.Records.Self(), subjects: newSubjects(opts.Prefix), claims: claims, held: map[string]*hold{}, links: map[string]*natsstream.Stream{}}
	r.quit, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Close ends all connections and gives up what this gateway runs. The sessions of upstreams must have ended.
func (r *Runner) Close() error {
	r.stop()
	r.mu.Lock()
	conn, held := r.conn, r.held
	r.held = map[string]*hold{}
	for _, s := range r.links {
		_ = s.Close() // never an error
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	for id := range held {
		r.release(ctx, id)
	}
	r.work.Wait()
	if conn != nil {
		conn.Close()
	}
	return nil
}

// Join returns a connection to the gateway that runs the process of an upstream. It is nil if this gateway does, which must stop
// the process when lost is closed. While the other gateway does not answer, Join waits until its place can be taken.
func (r *Runner) Join(ctx context.Context, id string) (there io.ReadWriteCloser, lost <-chan struct{}, err error) {
	if err := r.open(); err != nil {
		return nil, nil, err
	}
	for {
		lost, err := r.take(ctx, id)
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok {
			return nil, lost, err
		}
		s, err := r.dial(ctx, id, held.By.ID)
		if err == nil {
			return s, nil, nil
		}
		if refused, ok := errors.AsType[*natsstream.ResetError](err); ok && refused.Reason != errNotHere.Error() {
			return nil, nil, fmt.Errorf("the gateway that runs it (%s): %s", held.By, refused.Reason)
		}
		if sleep.For(ctx, retryInterval) != nil {
			return nil, nil, fmt.Errorf("the gateway that runs it (%s) cannot be reached: %w", held.By, err)
		}
	}
}

// Leave gives up an upstream whose process this gateway cannot start, so that another one can.
func (r *Runner) Leave(ctx context.Context, id string) {
	if !r.remove(id) {
		return
	}
	r.log.Warn("the process of an upstream cannot be started at this gateway; another one may run it", "upstream", id)
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r.release(limited, id)
}

// release gives up the claim of an upstream, which ends with this process at the latest.
func (r *Runner) release(ctx context.Context, id string) {
	if err := r.claims.Release(ctx, store.Key{id}); err != nil {
		r.log.Debug("release upstream", "upstream", id, "error", err)
	}
}

// open connects to the servers and begins to accept connections.
func (r *Runner) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil || r.quit.Err() != nil {
		return r.quit.Err()
	}
	conn, unanswered, err := r.opts.Server.Connect(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		r.log.Warn("the servers report an error about upstreams of other gateways; credentials of an older version lack rights for them", "error", err)
	}))
	if err != nil {
		return err
	}
	if unanswered == nil {
		_, unanswered = conn.Subscribe(r.subjects.dial(r.self), r.accept)
	}
	if unanswered == nil {
		unanswered = conn.FlushTimeout(checkTimeout)
	}
	if unanswered != nil {
		conn.Close()
		return unanswered
	}
	r.conn = conn
	r.work.Go(r.watch)
	return nil
}

// take claims an upstream for this gateway.
func (r *Runner) take(ctx context.Context, id string) (<-chan struct{}, error) {
	if err := r.claims.Take(ctx, store.Key{id}); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[id] == nil {
		r.held[id] = &hold{lost: make(chan struct{}), links: map[*natsstream.Stream]bool{}}
		r.log.Info("the process of an upstream runs at this gateway, for all", "upstream", id)
	}
	return r.held[id].lost, nil
}

// watch gives up what this gateway runs while it may count as dead, until the runner ends.
func (r *Runner) watch() {
	for last := time.Now(); sleep.For(r.quit, watchInterval) == nil; last = time.Now() {
		err, paused := r.opts.Records.Available(), time.Since(last) > maxPause
		if err == nil && !paused {
			continue
		}
		r.checkHeld(err)
	}
}

// checkHeld gives up what another gateway runs now, and everything if the store is not available.
func (r *Runner) checkHeld(unavailable error) {
	for _, id := range r.heldIDs() {
		err := unavailable
		if err == nil { // this gateway was stopped for a while, and another one may have claimed the upstream
			ctx, cancel := context.WithTimeout(r.quit, checkTimeout)
			err = r.claims.Take(ctx, store.Key{id})
			cancel()
		}
		if err != nil {
			r.drop(id, err)
		}
	}
}

func (r *Runner) heldIDs() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.held {
		ids = append(ids, id)
	}
	return ids
}

// drop gives up an upstream that another gateway may have claimed.
func (r *Runner) drop(id string, why error) {
	if r.remove(id) {
		r.log.Warn("the process of an upstream is stopped, as another gateway may run it now", "upstream", id, "reason", why)
	}
}

// remove ends what this gateway does for an upstream. It reports whether it did anything.
func (r *Runner) remove(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[id]
	if h == nil {
		return false
	}
	delete(r.held, id)
	close(h.lost)
	for s := range h.links {
		s.Fail(errNotHere)
	}
	return true
}
