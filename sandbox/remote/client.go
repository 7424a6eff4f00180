package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"sallyport/sandbox"
)

// Options say what a client wants of its worker.
type Options struct {
	// Version is this side's, for messages.
	Version string
	// Guest holds the guest's files: both sides must have the same.
	Guest fs.FS
	// Name is the worker's machine in messages and logs; "" is "the worker".
	Name string
	// Parallel, Pool, SessionIdle and Masked are those of [sandbox.Options], on the worker.
	Parallel    int
	Pool        sandbox.Pool
	SessionIdle time.Duration
	Masked      []string
	// Logger gets connections and breaks; nil discards.
	Logger *slog.Logger
}

// Client runs programs on a worker's machine. It connects when something is first
// asked of it, and again, with growing pauses, after a break. It is safe for
// concurrent use. Close it.
type Client struct {
	dial  Dial
	name  string
	hello greeting
	log   *slog.Logger
	turn  chan struct{}   // holds one: whoever has it may connect and publish
	quit  context.Context //nolint:containedctx // ends with the client: Close cancels what still runs
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu    sync.Mutex // guards the rest, and orders the end of quit and the growth of work
	link  *link
	tree  *tree // what was published last
	tries tries
}

// tries are connections that could not be made since the last one that could.
type tries struct {
	failed int
	last   error
	next   time.Time
}

// The pause between two tries begins with minPause and doubles up to maxPause.
const minPause, maxPause = time.Second, 30 * time.Second

// New returns a client of whatever worker dial reaches. It does not connect yet.
func New(dial Dial, opts *Options) (*Client, error) {
	if opts == nil || opts.Guest == nil {
		return nil, errors.New("open worker: the guest's files are missing")
	}
	guest, err := digest(opts.Guest)
	if err != nil {
		return nil, fmt.Errorf("open worker: %w", err)
	}
	c := &Client{dial: dial, name: opts.Name, log: opts.Logger, turn: make(chan struct{}, 1), tree: newTree(nil)}
	if c.name == "" {
		c.name = "the worker"
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	host := &hostOptions{Parallel: opts.Parallel, Pool: opts.Pool, SessionIdle: opts.SessionIdle, Masked: opts.Masked}
	c.hello = greeting{Sallyport: "gateway", Protocol: Protocol, Version: opts.Version, Guest: guest, Host: host}
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
		_ = c.link.close() // how ssh ends when it is ended is no fault
		c.link = nil
	}
	return nil
}

var errClosed = errors.New("the gateway closes")

// enter counts a user that Close waits for, and returns a context that ends with the client too.
func (c *Client) enter(ctx context.Context) (context.Context, func(), error) {
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

// ready returns a connection to a worker that has the newest tree.
func (c *Client) ready(ctx context.Context) (*link, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	l, err := c.connected(ctx)
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

// connected returns the connection that stands, or a new one. Who calls it has the turn.
func (c *Client) connected(ctx context.Context) (*link, error) {
	c.mu.Lock()
	old, tried := c.link, c.tries
	c.mu.Unlock()
	if old != nil && old.alive() {
		return old, nil
	}
	if old != nil {
		err := old.close()
		c.log.WarnContext(ctx, "the connection to the worker broke", "worker", c.name, "error", err)
		c.keep(nil, tries{})
	}
	if pause := time.Until(tried.next); pause > 0 {
		return nil, fmt.Errorf("connect to %s: %w (next try in %s)", c.name, tried.last, pause.Round(time.Second))
	}
	l, err := connect(ctx, c.dial, c.hello)
	if err != nil {
		if ctx.Err() == nil {
			tried.failed++
			tried.last, tried.next = err, time.Now().Add(min(maxPause, minPause<<min(tried.failed-1, 10)))
			c.keep(nil, tried)
		}
		return nil, fmt.Errorf("connect to %s: %w", c.name, err)
	}
	c.log.InfoContext(ctx, "connected to a worker", "worker", c.name, "version", l.worker.Version)
	c.keep(l, tries{})
	return l, nil
}

func (c *Client) keep(l *link, t tries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.tries = l, t
}

// Publish makes files (by slash-separated path) the content of /servers for every program that
// starts from now on. A worker that is connected gets what differs in the background, one
// that is not when it is.
func (c *Client) Publish(files map[string][]byte) error {
	newest, err := checkedTree(files)
	if err != nil {
		return fmt.Errorf("publish wrappers: %w", err)
	}
	c.mu.Lock()
	c.tree = newest
	standing := c.link != nil
	c.mu.Unlock()
	if standing {
		c.background("send wrappers", func(ctx context.Context) error {
			_, err := c.ready(ctx)
			return err
		})
	}
	return nil
}

// Warm tells the worker what jobs there will be. It returns at once.
func (c *Client) Warm(jobs ...sandbox.Job) {
	c.background("warm the worker", func(ctx context.Context) error {
		l, err := c.ready(ctx)
		if err != nil {
			return err
		}
		return l.ask(ctx, pathWarm, jobs, nil)
	})
}

func (c *Client) background(what string, do func(ctx context.Context) error) {
	ctx, leave, err := c.enter(context.Background())
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

// waitingLimit is how long a worker may take to count.
const waitingLimit = 2 * time.Second

// Waiting counts the worker's sandboxes of an interpreter that wait for programs; full says
// that no more are being made. It does not connect: without a connection none waits.
func (c *Client) Waiting(interpreter sandbox.Interpreter) (n int, full bool) {
	ctx, leave, err := c.enter(context.Background())
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
	var reply waiting
	if err := l.ask(ctx, pathWaiting, interpreter, &reply); err != nil {
		return 0, false
	}
	return reply.Count, reply.Full
}

// Checks looks at the worker's machine as [sandbox.Checks] does, through the connection that programs take.
func (c *Client) Checks(ctx context.Context) ([]sandbox.Check, error) {
	var found []sandbox.Check
	err := c.inquire(ctx, pathChecks, nil, &found)
	return bounded(found), err
}

// Worker returns the version of the worker's sallyport, from its greeting.
func (c *Client) Worker(ctx context.Context) (version string, err error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	l, err := c.ready(ctx)
	if err != nil {
		return "", err
	}
	return l.worker.Version, nil
}

func (c *Client) inquire(ctx context.Context, path string, question, reply any) error {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.ready(ctx)
	if err != nil {
		return err
	}
	if err := l.ask(ctx, path, question, reply); err != nil {
		return fmt.Errorf("ask %s: %w", c.name, err)
	}
	return nil
}
