// Package typecheck checks the types of programs while they run, against the
// wrappers that they import. Its main type is [Checker]: it speaks the Language
// Server Protocol with pyright or TypeScript, one server per language, which is
// started for the first program, kept warm, and stopped when it is idle.
//
// The server reads programs that a model wrote, so it is untrusted, too: the caller
// starts it in a sandbox, and this package bounds and sanitizes its output.
package typecheck

import (
	"bytes"
	"context"
	"embed"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Language is what a program is written in.
type Language string

// The languages that can be checked.
const (
	Python     Language = "python"
	TypeScript Language = "typescript"
)

// Dir is the folder that a server must find its Files in, and Folder the one that Install.Folder must be mounted at.
// The wrappers must be at /servers, the guest's module for Python at /opt/sallyport.
const (
	Dir    = "/check"
	Folder = "/opt/checker"
)

//go:embed files
var files embed.FS

// Warning is a probable mistake in a program.
type Warning struct {
	// Line counts from 1.
	Line int
	// Message is one short line without invisible characters.
	Message string
	// Certain says that the program is wrong in that line also if it succeeds.
	Certain bool
}

// Change is a changed file of the servers tree.
type Change struct {
	// Path is slash-separated, below the tree: "github/create_issue.py".
	Path string
	// Data is its content now, nil if it is gone.
	Data []byte
	// Added says that it is new.
	Added bool
}

// Options of a Checker; nil means all defaults.
type Options struct {
	// Logger gets failures of servers; nil discards.
	Logger *slog.Logger
	// Idle is how long a server may be without a program before it is stopped; 0 is 10 minutes.
	Idle time.Duration
	// Backoff is how long after its end a server is started again, doubled each time; 0 is 1 s.
	Backoff time.Duration
	// Persistent is for servers on machines that come and go: failures delay the next start, but no number of them prevents it.
	Persistent bool
}

// The bounds of a check.
const (
	maxCode      = 128 << 10 // of a program, in bytes; larger ones are not checked
	maxQueue     = 8         // waiting checks; further ones are dropped
	maxTries     = 5         // failed starts in a row, after which no server is started
	startTimeout = time.Minute
	checkTimeout = 10 * time.Second
)

// Checker checks programs in one language. Its methods are safe for concurrent use,
// and for a nil Checker, which finds nothing.
type Checker struct {
	dialect dialect
	start   func(ctx context.Context) (io.ReadWriteCloser, error)
	opts    Options
	log     *slog.Logger
	queue   chan *Check
	wake    chan struct{}
	close   func()

	unavailable atomic.Bool // the last start failed with ErrUnavailable

	mu      sync.Mutex // guards changes
	changes []Change
}

// New returns a Checker that starts servers with start when they are needed. A
// server's Read and Write are its standard output and input; Close kills it and
// unblocks both. The context bounds the start only. Close the Checker.
func New(language Language, start func(ctx context.Context) (io.ReadWriteCloser, error), opts *Options) *Checker {
	c := &Checker{dialect: dialects()[language], start: start, queue: make(chan *Check, maxQueue), wake: make(chan struct{}, 1)}
	if opts != nil {
		c.opts = *opts
	}
	if c.log = c.opts.Logger; c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.opts.Idle == 0 {
		c.opts.Idle = 10 * time.Minute
	}
	if c.opts.Backoff == 0 {
		c.opts.Backoff = time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { (&supervisor{Checker: c}).run(ctx) })
	c.close = sync.OnceFunc(func() { cancel(); running.Wait() })
	return c
}

// Close stops the server and waits for its end. Waiting checks find nothing. It is idempotent.
func (c *Checker) Close() {
	if c != nil {
		c.close()
	}
}

// Check is the check of one program. A nil one finds nothing.
type Check struct {
	code     string
	dropped  atomic.Bool
	done     chan struct{}
	warnings []Warning
	made     bool // a server has answered
}

// Check starts to check a program. It does not block.
func (c *Checker) Check(code string) *Check {
	if c == nil || len(code) > maxCode {
		return nil
	}
	check := &Check{code: code, done: make(chan struct{})}
	select {
	case c.queue <- check:
		return check
	default:
		return nil
	}
}

// Warnings waits for the end of the check and returns its warnings, nil if ctx ends first. It returns those of a check that has
// ended also for a ctx that has ended.
func (k *Check) Warnings(ctx context.Context) []Warning {
	if k == nil {
		return nil
	}
	select {
	case <-k.done:
		return k.warnings
	default:
	}
	select {
	case <-k.done:
		return k.warnings
	case <-ctx.Done():
		return nil
	}
}

// Drop discards the warnings: a check that has not begun is skipped.
func (k *Check) Drop() {
	if k != nil {
		k.dropped.Store(true)
	}
}

// Dropped reports whether the warnings were discarded.
func (k *Check) Dropped() bool { return k != nil && k.dropped.Load() }

// Made reports whether the check has ended, and a server has made it. Another one says nothing about the program.
func (k *Check) Made() bool {
	if k == nil {
		return false
	}
	select {
	case <-k.done:
		return k.made
	default:
		return false
	}
}

func (k *Check) finish(warnings []Warning, made bool) {
	k.warnings, k.made = warnings, made
	close(k.done)
}

// Unavailable reports whether no machine had the checker when it was last needed.
func (c *Checker) Unavailable() bool { return c != nil && c.unavailable.Load() }

// NotifyChanges reports changes of the servers tree. A running server gets them before the next check.
func (c *Checker) NotifyChanges(changes []Change) {
	if c == nil || len(changes) == 0 {
		return
	}
	c.mu.Lock()
	c.changes = append(c.changes, changes...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Checker) takeChanges() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := c.changes
	c.changes = nil
	return changes
}

// Changes returns the differences between two states of the servers tree. It does not modify them.
func Changes(before, after map[string][]byte) []Change {
	var changes []Change
	for path, data := range after {
		if old, known := before[path]; !known || !bytes.Equal(old, data) {
			changes = append(changes, Change{Path: path, Data: data, Added: !known})
		}
	}
	for path := range before {
		if _, still := after[path]; !still {
			changes = append(changes, Change{Path: path})
		}
	}
	return changes
}
