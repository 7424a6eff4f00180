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
)

// What the guest has to ask for, in how many bytes and how soon.
const (
	endpoint      = "/v1"
	headerLimit   = 4 << 10
	headerTimeout = 10 * time.Second
)

// writeBuffer is what the system is asked to keep for a guest that does not read at once, in bytes.
const writeBuffer = 256 << 10

// ErrClosed says that the guest went away without reporting the end of its program.
var ErrClosed = errors.New("bridge closed by the guest")

// Options configure a bridge.
type Options struct {
	// Logger gets what the guest does wrong; nil discards.
	Logger *slog.Logger
}

// Bridge listens on one socket, for one guest, or is attached to a [Relay]. Close and Wait may be called at
// any time; Ping and Run one at a time.
type Bridge struct {
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	taken    atomic.Bool
	served   sync.WaitGroup
	replica  replica // what the guest has of a workspace; of whoever is in Run

	mu        sync.Mutex // guards conn and the closing of the channels
	conn      conn
	connected chan struct{} // closed when the guest is there, or was refused: conn is nil then
	closed    chan struct{}
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
	opts.Logger = orDiscard(opts.Logger)
	b := &Bridge{log: opts.Logger, listener: listener, connected: make(chan struct{}), closed: make(chan struct{})}
	b.server = &http.Server{Handler: http.HandlerFunc(b.accept), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerLimit, ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug)}
	b.served.Go(func() { _ = b.server.Serve(listener) })
	return b, nil
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

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
		b.log.Warn("guest did not speak websocket")
		close(b.connected)
		return
	}
	_ = b.listener.Close() // one guest, one connection: a program finds nothing to connect to
	if socket, ok := conn.NetConn().(*net.UnixConn); ok {
		_ = socket.SetWriteBuffer(writeBuffer) // a large result takes fewer turns; the system may allow less
	}
	b.keep(socket{conn})
	close(b.connected)
}

// keep remembers the guest's connection for Close, which may have come first.
func (b *Bridge) keep(conn conn) {
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

// Wait returns when the guest is connected. It is an error if it did not speak as it should
// (ErrClosed), if ctx ends first (its cause), or if Close is called (net.ErrClosed).
func (b *Bridge) Wait(ctx context.Context) error {
	_, err := b.wait(ctx)
	return err
}

func (b *Bridge) wait(ctx context.Context) (conn, error) {
	select {
	case <-b.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case <-b.connected:
		if b.conn == nil {
			return nil, ErrClosed
		}
		return b.conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// pingLimit bounds, in bytes, each frame that a guest may send while it waits for a program.
const pingLimit = 64 << 10

const pingFrame = `{"type":"ping"}`

// Ping returns when the guest has said that it waits for a program; what else it
// says until then is dropped. Errors are those of Wait, and after one the bridge cannot be used:
// Close it. Ping may be called while no Run continues.
func (b *Bridge) Ping(ctx context.Context) error {
	conn, err := b.wait(ctx)
	if err != nil {
		return err
	}
	conn.SetReadLimit(pingLimit)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = pinged(conn)
	if stop() && err == nil {
		return nil
	}
	_ = conn.Close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.isClosed():
		return net.ErrClosed
	}
	return err
}

func pinged(conn conn) error {
	if err := conn.WriteMessage(websocket.TextMessage, []byte(pingFrame)); err != nil {
		return ErrClosed
	}
	for {
		frame, err := read(conn)
		if err != nil || frame.Type == "pong" {
			return err
		}
	}
}

// Close stops listening and cuts off the guest; a Run that continues returns. It is idempotent.
func (b *Bridge) Close() error {
	b.mu.Lock()
	if !b.isClosed() {
		close(b.closed)
	}
	if b.conn != nil {
		_ = b.conn.Close()
	}
	b.mu.Unlock()
	if b.server == nil { // attached
		return nil
	}
	err := b.server.Close()
	b.served.Wait()
	if errors.Is(err, net.ErrClosed) { // the guest has come in, and the server has not noticed yet that nobody else can
		return nil
	}
	return err
}
