// Package workers runs programs on machines that have joined a cluster. [Work] makes this machine a worker; [Pool] replaces
// a [sandbox.Host] on a gateway, and runs each program on one of the workers.
//
// Both connect to NATS servers. Workers report their state in heartbeats ("beats"). A gateway asks a worker for a link, which is a stream of
// bytes over two subjects that only these two use, and speaks the protocol of package remote on it. docs/how-to/workers.md
// describes the subjects.
package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/natsstream"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/remote"
)

// Options configure a pool.
type Options struct {
	Server natsconn.Server
	// Prefix is that of the gateways' store.
	Prefix string
	// Remote configures the sandboxes on all workers; Name is not used.
	Remote remote.Options
	// Placement returns the labels that a worker must have to run programs, each KEY=VALUE; nil means that all may.
	Placement func() []string
	// Logger is required.
	Logger *slog.Logger

	times natsstream.Times
}

// Pool runs programs on the workers of a cluster. It is safe for concurrent use. The caller must Close it.
type Pool struct {
	opts     Options
	log      *slog.Logger
	registry *registry
	opened   time.Time
	quit     context.Context //nolint:containedctx // ends with the pool
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu       sync.Mutex
	members  map[string]*member         // by instance
	troubles map[string]trouble         // by name
	counts   map[string][verdicts]int64 // of programs that have ended, by name
	served   map[string]time.Time       // when a service was started last, by name of the worker
	sessions map[string]place           // of interpreters that outlive their programs
	files    map[string][]byte
	jobs     []sandbox.Job // to warm new workers
	closed   bool
}

// member is a worker that this gateway uses.
type member struct {
	Worker

	client  *remote.Client
	running int // programs of this gateway
	// added are the environments with added packages that it has made for this gateway.
	added map[string]bool
}

// place is where a session is.
type place struct {
	instance string
	used     time.Time
}

const (
	// joinTimeout is how long a new pool waits for the first worker.
	joinTimeout = 5 * time.Second
	// dialTimeout is how long a worker may take to accept a link.
	dialTimeout = 5 * time.Second
	// retryAfter is how long others are preferred to a worker that did not start or lost a program. It doubles up to
	// maxRetryAfter while no program ends there.
	retryAfter    = 5 * time.Second
	maxRetryAfter = 5 * time.Minute
	// maxTries bounds the workers that are tried for one program.
	maxTries = 3
	// maxSessions bounds the sessions with a known worker.
	maxSessions = 10_000
)

// Open returns a pool of the workers that join and have joined. Servers that do not answer are no error.
func Open(opts Options) (*Pool, error) {
	r, err := openRegistry(opts.Server, opts.Prefix, opts.Logger)
	if err != nil {
		return nil, fmt.Errorf("open workers: %w", err)
	}
	p := &Pool{opts: opts, log: opts.Logger, registry: r, opened: time.Now(), members: map[string]*member{}, troubles: map[string]trouble{}, counts: map[string][verdicts]int64{}, served: map[string]time.Time{}, sessions: map[string]place{}}
	p.quit, p.stop = context.WithCancel(context.Background())
	p.work.Go(p.follow)
	return p, nil
}

// Close ends what runs for this gateway on all workers. It is idempotent.
func (p *Pool) Close() error {
	p.stop()
	p.mu.Lock()
	p.closed = true
	members := p.members
	p.members = nil
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() { _ = m.client.Close() }) // an error of a link that this side ends is expected
	}
	all.Wait()
	p.work.Wait()
	p.registry.conn.Close()
	return nil
}

// follow follows the beats until the pool is closed.
func (p *Pool) follow() {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		changed := p.registry.next()
		p.update(p.registry.list())
		select {
		case <-changed:
		case <-tick.C:
		case <-p.quit.Done():
			return
		}
	}
}

// update takes new workers in, and drops those that are gone and run nothing.
func (p *Pool) update(workers []Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	seen := map[string]bool{}
	for _, w := range workers {
		seen[w.Instance] = true
		if m := p.members[w.Instance]; m != nil {
			m.Beat, m.Seen = w.Beat, w.Seen // the rest does not change, and is read without mu
		} else if err := p.add(w); err != nil {
			p.log.Warn("a worker cannot be used", "worker", w.Name, "error", err)
		}
	}
	p.forgetTroubles()
	for instance, m := range p.members {
		if !seen[instance] && m.running == 0 {
			delete(p.members, instance)
			p.log.Info("a worker has left", "worker", m.Name)
			p.work.Go(func() { _ = m.client.Close() })
		} else if !seen[instance] {
			m.Left = true
		}
	}
}

// add takes a worker in. It is called with mu held.
func (p *Pool) add(w Worker) error {
	opts := p.opts.Remote
	opts.Name, opts.Logger = "worker "+w.Name, p.log
	client, err := remote.New(func(ctx context.Context) (io.ReadWriteCloser, error) { return p.dial(ctx, w) }, &opts)
	if err != nil {
		return err
	}
	if p.files != nil {
		if err := client.Publish(p.files); err != nil {
			return errors.Join(err, client.Close())
		}
	}
	p.reportDifferent(w)
	p.log.Info("a worker has joined", "worker", w.Name, "seats", w.Seats, "version", w.Version)
	p.members[w.Instance] = &member{Worker: w, client: client}
	if len(p.jobs) > 0 && p.placeable(w) {
		client.Warm(p.jobs...)
	}
	return nil
}

// dial opens a link to a worker. It has a connection to the servers of its own, so that a worker that floods it harms no other.
func (p *Pool) dial(ctx context.Context, w Worker) (io.ReadWriteCloser, error) {
	conn, unanswered, err := p.opts.Server.Connect(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		p.log.Debug("the servers report an error about a link", "worker", w.Name, "error", err)
	}))
	if err != nil {
		return nil, err
	}
	if unanswered != nil {
		conn.Close()
		return nil, unanswered
	}
	names, link := p.registry.subjects, natsstream.NewID()
	from := names.toGateway(w.Name, w.Instance, link)
	s, err := natsstream.Open(conn, names.toWorker(w.Name, w.Instance, link), from, p.opts.times)
	if err != nil {
		conn.Close()
		return nil, err
	}
	p.work.Go(func() {
		<-s.Done()
		conn.Close()
	})
	if err := conn.PublishRequest(names.dial(w.Name, w.Instance), from, []byte(link)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, s.WaitHeard(ctx, dialTimeout)
}

// Publish makes files (by slash-separated path) the content of /servers for every program that starts from now on.
func (p *Pool) Publish(files map[string][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, m := range p.members {
		errs = append(errs, m.client.Publish(files))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.files = files
	return nil
}

// Warm announces future jobs to all workers that may run them, also to those that join later. It returns at once.
func (p *Pool) Warm(jobs ...sandbox.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = slices.Clone(jobs)
	for _, m := range p.members {
		if p.placeable(m.Worker) {
			m.client.Warm(jobs...)
		}
	}
}

// Waiting returns the number of idle sandboxes of an interpreter on all workers; full reports that no more are being made.
func (p *Pool) Waiting(i sandbox.Interpreter) (n int, full bool) {
	p.mu.Lock()
	var clients []*remote.Client
	for _, m := range p.members {
		clients = append(clients, m.client)
	}
	p.mu.Unlock()
	counts, complete := make([]int, len(clients)), make([]bool, len(clients))
	var all sync.WaitGroup
	for k, c := range clients {
		all.Go(func() { counts[k], complete[k] = c.Waiting(i) })
	}
	all.Wait()
	for _, count := range counts {
		n += count
	}
	return n, !slices.Contains(complete, false)
}

// Run runs one program on a worker, as [sandbox.Host.Run] does. One that a worker did not start is tried on others.
func (p *Pool) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (outcome sandbox.Outcome, err error) {
	var tried []string
	for len(tried) < maxTries {
		m, none := p.take(ctx, job, tried)
		if none != nil && err == nil {
			err = none
		}
		if none != nil {
			break
		}
		outcome, err = m.client.Run(ctx, job, caller)
		p.noteAdded(m, job, err)
		p.release(m, verdictOf(outcome, err))
		if err == nil || ctx.Err() != nil || isFinal(err) {
			break
		}
		p.log.WarnContext(ctx, "a worker did not start a program", "worker", m.Name, "execution", job.ID, "error", err)
		tried = append(tried, m.Instance)
	}
	return outcome, err
}
