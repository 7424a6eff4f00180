package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/natsstream"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// WorkerOptions configure a worker.
type WorkerOptions struct {
	Server natsconn.Server
	// Prefix is that of the gateways' store.
	Prefix string
	// Name is the one that the credentials permit.
	Name   string
	Seats  int
	Labels map[string]string
	// Lacks are interpreters that this machine does not have.
	Lacks []sandbox.Interpreter
	// Remote configures the sandboxes.
	Remote remote.WorkerOptions
	Logger *slog.Logger

	times natsstream.Times
}

// maxLinks bounds the links of a worker; each gateway has one.
const maxLinks = 64

// overcommit is how many programs a worker runs per seat at most: programs that wait for a person or for programs that they have
// started keep their sandboxes, and gateways do not count them.
const overcommit = 16

// worker is a worker process.
type worker struct {
	opts     WorkerOptions
	log      *slog.Logger
	subjects subjects
	instance string
	since    time.Time
	conn     *nats.Conn
	changed  chan struct{} // capacity 1: a beat is due
	links    sync.WaitGroup

	mu       sync.Mutex
	open     map[string]*natsstream.Stream
	busy     int
	draining time.Time // since when it drains to end; zero if it does not
	held     bool      // it takes no programs until an order to resume
}

// Work joins a cluster and runs programs of its gateways. When ctx ends, it takes no more programs, and returns when those that
// run have ended. The error is of servers that refuse this worker.
func Work(ctx context.Context, opts WorkerOptions) error {
	w := &worker{opts: opts, log: opts.Logger, subjects: newSubjects(opts.Prefix), instance: natsstream.NewID(), since: time.Now().UTC(), changed: make(chan struct{}, 1), open: map[string]*natsstream.Stream{}}
	w.opts.Remote.Begin = w.begin
	if err := checkEnvironments(environmentsOf(opts.Remote.Host)); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	conn, unanswered, err := opts.Server.Connect(
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			w.log.Warn("the servers report an error", "error", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				w.log.Warn("the connection to the cluster is lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			w.log.Info("the connection to the cluster is restored", "server", c.ConnectedServerName())
			w.beatSoon()
		}),
	)
	if err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	defer conn.Close()
	if unanswered != nil {
		w.log.Warn("the servers do not answer yet", "url", opts.Server.URL, "error", unanswered)
	}
	w.conn = conn
	if err := w.subscribe(); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	w.log.Info("joined", "name", opts.Name, "seats", opts.Seats, "instance", w.instance)
	w.beatUntilDrained(ctx)
	return w.end()
}

func (w *worker) subscribe() error {
	_, err := w.conn.Subscribe(w.subjects.ask(), func(*nats.Msg) { w.beatSoon() })
	_, err2 := w.conn.Subscribe(w.subjects.dial(w.opts.Name, w.instance), func(m *nats.Msg) { w.hear(string(m.Data)) })
	return errors.Join(err, err2)
}

// beatSoon makes a beat due. Many of them at once are one.
func (w *worker) beatSoon() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// minBeat is the shortest time between two beats.
const minBeat = 50 * time.Millisecond

// beatUntilDrained sends beats until ctx has ended and no program runs.
func (w *worker) beatUntilDrained(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	quit := ctx.Done()
	for {
		if w.beat(false) {
			return
		}
		time.Sleep(minBeat)
		select {
		case <-tick.C:
		case <-w.changed:
		case <-quit:
			quit = nil
			tick.Reset(drainGrace / 4)
			w.drain()
		}
	}
}

// drainGrace is how long a worker at least refuses programs of gateways that do not know yet that it drains.
const drainGrace = 2 * time.Second

// drain takes no more programs.
func (w *worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining = time.Now()
	w.beatSoon()
	w.log.Info("draining: no new programs", "running", w.busy)
}

// hear handles what a gateway asks for: a link, or what an [Order] says.
func (w *worker) hear(text string) {
	switch o := Order(text); o {
	case Drain, Resume:
		w.mu.Lock()
		w.held = o == Drain
		w.mu.Unlock()
		w.log.Info("an operator has told this worker whether it takes programs", "order", text)
		w.beatSoon()
	default:
		w.accept(text)
	}
}

// beat sends a beat, and reports whether the worker is drained.
func (w *worker) beat(left bool) (drained bool) {
	w.mu.Lock()
	b := Beat{Version: w.opts.Remote.Version, Speaks: remote.Here(), Seats: w.opts.Seats, Busy: w.busy, Labels: w.opts.Labels, Lacks: w.opts.Lacks, Services: slices.Sorted(maps.Keys(w.opts.Remote.Services)), Environments: environmentsOf(w.opts.Remote.Host), Since: w.since, Draining: w.held || !w.draining.IsZero(), Left: left}
	drained = !w.draining.IsZero() && b.Busy == 0 && time.Since(w.draining) > drainGrace
	w.mu.Unlock()
	data, err := json.Marshal(b)
	if err == nil {
		err = w.conn.Publish(w.subjects.beat(w.opts.Name, w.instance), data)
	}
	if err != nil {
		w.log.Debug("no beat could be sent", "error", err)
	}
	return drained
}

// end ends all links and says that this worker has left.
func (w *worker) end() error {
	w.beat(true)
	w.mu.Lock()
	for _, s := range w.open {
		_ = s.Close() // never an error
	}
	w.mu.Unlock()
	w.links.Wait()
	w.log.Info("left")
	return nil
}

var (
	errDraining = errors.New("the worker is draining: it takes no more programs")
	errFull     = errors.New("the worker runs as many programs as it may")
)

// begin counts a program that begins, and refuses one that must not.
func (w *worker) begin() (end func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.held || !w.draining.IsZero():
		return nil, errDraining
	case w.busy >= (1+overcommit)*w.opts.Seats:
		return nil, errFull
	}
	w.busy++
	w.beatSoon()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy--
		w.beatSoon()
	}, nil
}

// accept serves a gateway that has asked for a link.
func (w *worker) accept(link string) {
	if !natsstream.IsID(link) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.subjects.toGateway(w.opts.Name, w.instance, link)
	switch {
	case w.open[link] != nil: // a message that was repeated
		return
	case !w.draining.IsZero():
		natsstream.Refuse(w.conn, to, errDraining)
		return
	case len(w.open) >= maxLinks:
		natsstream.Refuse(w.conn, to, errors.New("the worker serves as many gateways as it may"))
		return
	}
	s, err := natsstream.Open(w.conn, to, w.subjects.toWorker(w.opts.Name, w.instance, link), w.opts.times)
	if err != nil {
		natsstream.Refuse(w.conn, to, err)
		return
	}
	w.open[link] = s
	w.links.Go(func() { w.serve(link, s) })
}

// serve serves a gateway until its link ends.
func (w *worker) serve(link string, s *natsstream.Stream) {
	if err := remote.ServeWorker(context.Background(), s, w.opts.Remote); err != nil {
		w.log.Warn("a link to a gateway has ended", "error", err)
	}
	_ = s.Close() // never an error
	<-s.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, link)
}
