// Package bridge is the host's side of the only way out of a sandbox: a
// websocket over a Unix socket that is mounted into that one sandbox. Who
// speaks on it is known by the socket, so no frame names an execution, a
// session or a principal. docs/bridge.md describes the frames.
//
// The guest is untrusted: frames are bounded, calls are counted and limited,
// a second connection is refused, and whatever is not a frame ends the bridge.
package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	return l
}

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
	served   sync.WaitGroup
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
	b := &Bridge{opts: opts, listener: listener, guest: make(chan *websocket.Conn, 1)}
	b.server = &http.Server{Handler: http.HandlerFunc(b.accept), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 4 << 10, ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug)}
	b.served.Go(func() { _ = b.server.Serve(listener) })
	return b, nil
}

// Calls returns how many tool calls the guest has made.
func (b *Bridge) Calls() int { return int(b.calls.Load()) }

// Started reports whether the guest has got its program.
func (b *Bridge) Started() bool { return b.started.Load() }

func (b *Bridge) accept(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1" {
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
	b.guest <- conn
}

// Run waits for the guest, hands it the program and answers its calls until it
// reports the program's end (Done), goes away (ErrClosed) or ctx ends. Calls
// still running then are cancelled, and Run returns after they have ended.
// started is called when the guest has got the program. Run may be called once.
func (b *Bridge) Run(ctx context.Context, program Program, started func()) (Done, error) {
	conn, err := b.wait(ctx)
	if err != nil {
		return Done{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // unblocks the reader
	s := &session{bridge: b, conn: conn, slots: make(chan struct{}, b.opts.Limits.Concurrency)}
	defer func() {
		cancel()
		s.calls.Wait()
		stop()
		_ = conn.Close()
	}()
	if err := s.send(run{Type: "run", Program: program}); err != nil {
		return Done{}, ErrClosed
	}
	b.started.Store(true)
	started()
	return s.serve(ctx)
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
	}
}

// Close stops listening and cuts off the guest. It is idempotent.
func (b *Bridge) Close() error {
	err := b.server.Close()
	b.served.Wait()
	if !b.taken.Swap(true) {
		return err
	}
	select {
	case conn, ok := <-b.guest:
		if ok {
			_ = conn.Close()
		}
	default:
	}
	return err
}

// session is one guest while its program runs.
type session struct {
	bridge *Bridge
	conn   *websocket.Conn
	write  sync.Mutex
	slots  chan struct{}
	calls  sync.WaitGroup
}

func (s *session) serve(ctx context.Context) (Done, error) {
	for {
		var frame incoming
		if err := s.read(&frame); err != nil {
			if ctx.Err() != nil {
				return Done{}, context.Cause(ctx)
			}
			return Done{}, err
		}
		switch frame.Type {
		case "call":
			s.admit(ctx, frame)
		case "done":
			return frame.Done, nil
		}
	}
}

func (s *session) read(frame *incoming) error {
	kind, reader, err := s.conn.NextReader()
	if err != nil {
		return closedBy(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return closedBy(err)
	}
	if kind != websocket.TextMessage || json.Unmarshal(data, frame) != nil {
		s.bridge.opts.Logger.Warn("guest sent no frame", "execution", s.bridge.opts.Execution, "bytes", len(data))
		return fmt.Errorf("%w: it sent what is no frame", ErrClosed)
	}
	return nil
}

func closedBy(err error) error {
	if errors.Is(err, websocket.ErrReadLimit) {
		return fmt.Errorf("%w: its frame was too large", ErrClosed)
	}
	return ErrClosed
}

// admit starts a call within the limits. The reader waits for a free slot, so
// a flood of calls stops in the guest's own socket buffer.
func (s *session) admit(ctx context.Context, frame incoming) {
	limits := s.bridge.opts.Limits
	if n := s.bridge.calls.Add(1); n > int64(limits.Calls) {
		s.bridge.calls.Add(-1)
		s.fail(frame.ID, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("this program has used up its %d tool calls", limits.Calls), Hint: "fetch more per call, or split the work over several programs"})
		return
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.calls.Go(func() {
		defer func() { <-s.slots }()
		s.call(ctx, frame)
	})
}

func (s *session) call(ctx context.Context, frame incoming) {
	id, err := tool.ParseID(frame.Tool)
	if err != nil {
		s.fail(frame.ID, err)
		return
	}
	result, err := s.bridge.opts.Caller.Call(ctx, tool.Call{Tool: id, Args: frame.Args, Execution: s.bridge.opts.Execution})
	switch {
	case err != nil:
		s.fail(frame.ID, err)
	case result.IsError:
		s.fail(frame.ID, &tool.Error{Kind: tool.Failed, Message: failureText(result)})
	default:
		if s.send(answer{Type: "result", ID: frame.ID, Value: result.Value()}) != nil {
			s.fail(frame.ID, &tool.Error{Kind: tool.Upstream, Message: "the result could not be sent"})
		}
	}
}

func failureText(result tool.Result) string {
	if text := result.Text(); text != "" {
		return text
	}
	return "the tool reported an error without a message"
}

func (s *session) fail(id int64, err error) {
	e := tool.AsError(err)
	_ = s.send(failure{Type: "error", ID: id, Error: reason{Kind: e.Kind, Message: e.Message, Hint: e.Hint}})
}

// writeLimit is how long a guest that does not read may hold up its own answers.
const writeLimit = 30 * time.Second

func (s *session) send(frame any) error {
	data, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	return s.conn.WriteMessage(websocket.TextMessage, data)
}
