package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sallyport/sandbox"
)

// Options configure a client and its worker.
type Options struct {
	// Version is this side's, for messages.
	Version string
	// Guest holds the guest's files. The worker gets them if it has others.
	Guest fs.FS
	// Name names the worker's machine in messages and logs; "" is "the worker".
	Name string
	// Parallel, Pool, SessionIdle, Masked and Reuse are those of [sandbox.Options], on the worker.
	Parallel    int
	Pool        sandbox.Pool
	SessionIdle time.Duration
	Masked      []string
	Reuse       bool
	// Logger receives connects and disconnects; nil discards.
	Logger *slog.Logger
}

// Client runs programs on a worker's machine. It connects on first use, and reconnects
// with exponential backoff. It is safe for concurrent use. The caller must Close it.
type Client struct {
	dial  Dial
	name  string
	hello greeting
	guest fs.FS
	log   *slog.Logger
	sem   chan struct{}   // capacity 1: a semaphore for connecting and publishing
	quit  context.Context //nolint:containedctx // ends with the client: Close cancels what still runs
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu    sync.Mutex // guards the rest, and orders the end of quit and work.Add
	link  *link
	tree  *tree // the last publish
	retry retryState
}

// retryState counts failed connection attempts since the last successful one.
type retryState struct {
	failed int
	last   error
	next   time.Time
}

// The pause between two attempts begins with minPause and doubles up to maxPause.
const minPause, maxPause = time.Second, 30 * time.Second

// New returns a client of the worker that dial reaches. It does not connect yet.
func New(dial Dial, opts *Options) (*Client, error) {
	if opts == nil || opts.Guest == nil {
		return nil, errors.New("open worker: the guest's files are missing")
	}
	guest, err := digest(opts.Guest)
	if err != nil {
		return nil, fmt.Errorf("open worker: %w", err)
	}
	c := &Client{dial: dial, guest: opts.Guest, name: opts.Name, log: opts.Logger, sem: make(chan struct{}, 1), tree: newTree(nil)}
	if c.name == "" {
		c.name = "the worker"
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	host := &hostOptions{Parallel: opts.Parallel, Pool: opts.Pool, SessionIdle: opts.SessionIdle, Masked: opts.Masked, Reuse: opts.Reuse}
	c.hello = greeting{Sallyport: "gateway", Compat: Here(), Version: opts.Version, Guest: guest, Settings: host}
	c.quit, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close ends what runs on the worker and waits for it. It is idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		_ = c.link.close() // an error of an ssh that we end is expected
		c.link = nil
	}
	return nil
}

var errClosed = errors.New("the gateway closes")

// beginUse registers a user that Close waits for. It returns a context that also ends with the client, and a function
// that the user must call at its end.
func (c *Client) beginUse(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quit.Err() != nil {
		return nil, nil, errClosed
	}
	c.work.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.quit, cancel)
	return ctx, func() {
		stop()
		cancel()
		c.work.Done()
	}, nil
}

// readyLink returns a connection to a worker that has the newest tree.
func (c *Client) readyLink(ctx context.Context) (*link, error) {
	select {
	case c.sem <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.sem }()
	l, err := c.ensureLink(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	newest := c.tree
	c.mu.Unlock()
	if l.published == newest {
		return l, nil
	}
	if err := l.publish(ctx, newest); err != nil {
		return nil, fmt.Errorf("send wrappers to %s: %w", c.name, err)
	}
	l.published = newest
	return l, nil
}

// ensureLink returns the live connection, or a new one. It is called with turn held.
func (c *Client) ensureLink(ctx context.Context) (*link, error) {
	c.mu.Lock()
	old, tried := c.link, c.retry
	c.mu.Unlock()
	if old != nil && old.alive() {
		return old, nil
	}
	if old != nil {
		err := old.close()
		c.log.WarnContext(ctx, "the connection to the worker broke", "worker", c.name, "error", err)
		c.setLink(nil, retryState{})
	}
	if pause := time.Until(tried.next); pause > 0 {
		return nil, fmt.Errorf("connect to %s: %w (next try in %s)", c.name, tried.last, pause.Round(time.Second))
	}
	l, err := connect(ctx, c.dial, c.hello, c.guest)
	if err != nil {
		if ctx.Err() == nil {
			tried.failed++
			tried.last, tried.next = err, time.Now().Add(min(maxPause, minPause<<min(tried.failed-1, 10)))
			c.setLink(nil, tried)
		}
		return nil, fmt.Errorf("connect to %s: %w", c.name, err)
	}
	c.log.InfoContext(ctx, "connected to a worker", "worker", c.name, "version", l.worker.Version)
	c.setLink(l, retryState{})
	return l, nil
}

func (c *Client) setLink(l *link, t retryState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.retry = l, t
}

// Publish makes files (by slash-separated path) the content of /servers for every program that
// starts from now on. The differences are sent in the background, or with the next
// connection.
func (c *Client) Publish(files map[string][]byte) error {
	newest, err := parseTree(files)
	if err != nil {
		return fmt.Errorf("publish wrappers: %w", err)
	}
	c.mu.Lock()
	c.tree = newest
	standing := c.link != nil
	c.mu.Unlock()
	if standing {
		c.background("send wrappers", func(ctx context.Context) error {
			_, err := c.readyLink(ctx)
			return err
		})
	}
	return nil
}

// Warm announces future jobs to the worker. It returns at once.
func (c *Client) Warm(jobs ...sandbox.Job) {
	c.background("warm the worker", func(ctx context.Context) error {
		l, err := c.readyLink(ctx)
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(slices.Clone(jobs), func(job sandbox.Job) bool { return !l.worker.hasEnvironment(job.Environment) })
		return l.request(ctx, pathWarm, known, nil)
	})
}

func (c *Client) background(what string, do func(ctx context.Context) error) {
	ctx, leave, err := c.beginUse(context.Background())
	if err != nil {
		return
	}
	go func() { // Close waits for it: enter counted it
		defer leave()
		if err := do(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, what, "worker", c.name, "error", err)
		}
	}()
}

// waitingLimit is the time limit of a Waiting request.
const waitingLimit = 2 * time.Second

// Waiting returns the number of the worker's idle sandboxes of an interpreter; full reports
// that no more are being made. It does not connect: without a connection it returns 0.
func (c *Client) Waiting(interpreter sandbox.Interpreter) (n int, full bool) {
	ctx, leave, err := c.beginUse(context.Background())
	if err != nil {
		return 0, true
	}
	defer leave()
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, waitingLimit)
	defer cancel()
	var reply waitingReply
	if err := l.request(ctx, pathWaiting, interpreter, &reply); err != nil {
		return 0, false
	}
	return reply.Count, reply.Full
}

// Checks runs [sandbox.Checks] on the worker's machine, over the same connection as programs.
func (c *Client) Checks(ctx context.Context) ([]sandbox.Check, error) {
	var found []sandbox.Check
	err := c.query(ctx, pathChecks, nil, &found)
	return sanitizeChecks(found), err
}

// WorkerVersion returns the version of the worker's sallyport, from its greeting.
func (c *Client) WorkerVersion(ctx context.Context) (version string, err error) {
	ctx, leave, err := c.beginUse(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	l, err := c.readyLink(ctx)
	if err != nil {
		return "", err
	}
	return l.worker.Version, nil
}

func (c *Client) query(ctx context.Context, path string, question, reply any) error {
	ctx, leave, err := c.beginUse(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.readyLink(ctx)
	if err != nil {
		return err
	}
	if err := l.request(ctx, path, question, reply); err != nil {
		return fmt.Errorf("ask %s: %w", c.name, err)
	}
	return nil
}
