// Package bridge is the host's side of the only way out of a sandbox: a
// websocket over a Unix socket that is mounted into that one sandbox. Who
// speaks on it is known by the socket, so no frame names an execution, a
// session or a principal. docs/bridge.md describes the frames.
//
// The guest is untrusted: frames are bounded, calls are counted and limited,
// a second connection is refused, and whatever is not a frame ends the bridge.
package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"sallyport/internal/tool"
)

// Caller answers the guest's calls; Gateway.Call does.
type Caller interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
}

// Limits meter one bridge. A zero field means the default that it names.
type Limits struct {
	// Calls is how many tool calls may be made in all; 0 is 1000.
	Calls int
	// Concurrency is how many may run at once, more wait; 0 is 16.
	Concurrency int
	// Frame is the size in bytes of the largest frame accepted; 0 is 16 MiB.
	Frame int64
	// Write is how long a guest that does not read may hold up its answers; 0 is 30 s.
	Write time.Duration
	// Emits is how many things a program may emit; 0 is 32.
	Emits int
	// Emit is the size in bytes of the largest of them; 0 is 4 MiB.
	Emit int
	// Emitted is how many bytes they may have together; 0 is 8 MiB.
	Emitted int
}

func (l Limits) withDefaults() Limits {
	if l.Calls == 0 {
		l.Calls = 1000
	}
	if l.Concurrency == 0 {
		l.Concurrency = 16
	}
	if l.Frame == 0 {
		l.Frame = 16 << 20
	}
	if l.Write == 0 {
		l.Write = 30 * time.Second
	}
	l.Emits, l.Emit, l.Emitted = cmp.Or(l.Emits, 32), cmp.Or(l.Emit, 4<<20), cmp.Or(l.Emitted, 8<<20)
	return l
}

// What the guest has to ask for, in how many bytes and how soon.
const (
	endpoint      = "/v1"
	headerLimit   = 4 << 10
	headerTimeout = 10 * time.Second
)

// ErrClosed says that the guest went away without reporting the end of its program.
var ErrClosed = errors.New("bridge closed by the guest")

// Options are what a bridge needs to know beside its socket.
type Options struct {
	// Execution is put into every call that comes over this bridge.
	Execution string
	Caller    Caller
	Limits    Limits
	// Logger gets what the guest does wrong; nil discards.
	Logger *slog.Logger
}

// Bridge listens on one socket, for one guest, for one program.
type Bridge struct {
	opts     Options
	listener net.Listener
	server   *http.Server
	guest    chan *websocket.Conn
	taken    atomic.Bool
	started  atomic.Bool
	calls    atomic.Int64
	emitted  emitted
	served   sync.WaitGroup

	mu     sync.Mutex // guards conn and the closing of closed
	conn   *websocket.Conn
	closed chan struct{}
}

// Listen opens the socket at path, which any user may then connect to: the
// directory above it decides who can.
func Listen(path string, opts Options) (*Bridge, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the guest: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // the guest's user is nobody; the directory is closed to others
		_ = listener.Close()
		return nil, fmt.Errorf("open the bridge's socket: %w", err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Limits = opts.Limits.withDefaults()
	b := &Bridge{opts: opts, listener: listener, guest: make(chan *websocket.Conn, 1), closed: make(chan struct{})}
	b.server = &http.Server{Handler: http.HandlerFunc(b.accept), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerLimit, ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug)}
	b.served.Go(func() { _ = b.server.Serve(listener) })
	return b, nil
}

// Calls returns how many tool calls the guest has made.
func (b *Bridge) Calls() int { return int(b.calls.Load()) }

// Started reports whether the guest has got its program.
func (b *Bridge) Started() bool { return b.started.Load() }

func (b *Bridge) accept(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != endpoint {
		http.NotFound(w, r)
		return
	}
	if b.taken.Swap(true) {
		http.Error(w, "this bridge is taken", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10, CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		b.opts.Logger.Warn("guest did not speak websocket", "execution", b.opts.Execution)
		close(b.guest)
		return
	}
	_ = b.listener.Close() // one guest, one connection: a program finds nothing to connect to
	conn.SetReadLimit(b.opts.Limits.Frame)
	b.keep(conn)
	b.guest <- conn
}

// keep remembers the guest's connection for Close, which may have come first.
func (b *Bridge) keep(conn *websocket.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	if b.isClosed() {
		_ = conn.Close()
	}
}

func (b *Bridge) isClosed() bool {
	select {
	case <-b.closed:
		return true
	default:
		return false
	}
}

// Run waits for the guest, hands it the program and answers its calls until it
// reports the program's end (Done), goes away (ErrClosed), ctx ends (its cause)
// or Close is called (net.ErrClosed). Calls still running then are cancelled,
// and Run returns after they have ended. started is called when the guest has
// got the program. Run may be called once.
func (b *Bridge) Run(ctx context.Context, program Program, started func()) (Done, error) {
	conn, err := b.wait(ctx)
	if err != nil {
		return Done{}, err
	}
	done, err := b.serve(ctx, conn, program, started)
	switch {
	case err == nil:
		return done, nil
	case ctx.Err() != nil:
		return Done{}, context.Cause(ctx)
	case b.isClosed():
		return Done{}, net.ErrClosed
	}
	return Done{}, err
}

func (b *Bridge) wait(ctx context.Context) (*websocket.Conn, error) {
	select {
	case conn, ok := <-b.guest:
		if !ok {
			return nil, ErrClosed
		}
		return conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// serve speaks with one guest from its program's start to its end.
func (b *Bridge) serve(ctx context.Context, conn *websocket.Conn, program Program, started func()) (Done, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // unblocks the reader
	s := &session{bridge: b, conn: conn, valueLimit: program.ValueLimit, slots: make(chan struct{}, b.opts.Limits.Concurrency)}
	defer func() {
		cancel()
		s.calls.Wait()
		stop()
		_ = conn.Close()
	}()
	frame, err := appendRun(nil, program)
	if err != nil {
		return Done{}, err
	}
	if err := s.send(frame); err != nil {
		return Done{}, ErrClosed
	}
	b.started.Store(true)
	started()
	return s.serve(ctx)
}

// Close stops listening and cuts off the guest; a Run that goes on returns. It is idempotent.
func (b *Bridge) Close() error {
	b.mu.Lock()
	if !b.isClosed() {
		close(b.closed)
	}
	if b.conn != nil {
		_ = b.conn.Close()
	}
	b.mu.Unlock()
	err := b.server.Close()
	b.served.Wait()
	if errors.Is(err, net.ErrClosed) { // the guest has come in, and the server has not noticed yet that nobody else can
		return nil
	}
	return err
}
