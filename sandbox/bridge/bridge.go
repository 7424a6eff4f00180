// Package bridge is the host's side of the only connection out of a sandbox: a
// websocket over a Unix socket that is mounted into that one sandbox. The socket
// identifies the sandbox, so no frame names an execution, a session or a
// principal. docs/reference/bridge.md describes the frames.
//
// The guest is untrusted: frames are bounded, calls are counted and limited,
// a second connection is refused, and an invalid frame ends the bridge.
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

// The path, the maximum header size in bytes and the time limit of the guest's HTTP upgrade request.
const (
	endpoint      = "/v1"
	headerLimit   = 4 << 10
	headerTimeout = 10 * time.Second
)

// writeBuffer is the requested size of the socket's send buffer, in bytes.
const writeBuffer = 256 << 10

// ErrClosed means that the guest disconnected without reporting the end of its program.
var ErrClosed = errors.New("bridge closed by the guest")

// Options configure a bridge.
type Options struct {
	// Logger receives protocol errors of the guest; nil discards.
	Logger *slog.Logger
}

// Bridge listens on one socket for one guest, or is attached to a [Relay]. Close and Wait may be called at
// any time; Ping and Run must not be called concurrently.
type Bridge struct {
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	accepted atomic.Bool
	served   sync.WaitGroup
	replica  replica // the guest's copy of a workspace; used by the goroutine in Run

	mu        sync.Mutex // guards conn and the closing of the channels
	conn      conn
	connected chan struct{} // closed when the guest is connected, or was refused: conn is nil then
	closed    chan struct{}
}

// Listen opens the socket at path with access for all users: the permissions of its
// directory restrict who can connect.
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
	if b.accepted.Swap(true) {
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
	_ = b.listener.Close() // only one connection: a program cannot connect again
	if socket, ok := conn.NetConn().(*net.UnixConn); ok {
		_ = socket.SetWriteBuffer(writeBuffer) // fewer writes for a large result; the system may allow less
	}
	b.setConn(websocketConn{conn})
	close(b.connected)
}

// setConn stores the guest's connection, and closes it if Close was called before.
func (b *Bridge) setConn(conn conn) {
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

// Wait returns when the guest is connected. It returns ErrClosed if the guest's handshake
// failed, the cause of ctx if that ends first, and net.ErrClosed if Close is called.
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

// pingLimit is the maximum size in bytes of a frame that a guest sends while it waits for a program.
const pingLimit = 64 << 10

const pingFrame = `{"type":"ping"}`

// Ping returns when the guest has answered that it waits for a program; other frames
// before the answer are dropped. Errors are those of Wait; after an error the bridge must
// be closed. Ping must not be called during Run.
func (b *Bridge) Ping(ctx context.Context) error {
	conn, err := b.wait(ctx)
	if err != nil {
		return err
	}
	conn.SetReadLimit(pingLimit)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = ping(conn)
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

func ping(conn conn) error {
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

// Close stops listening and disconnects the guest; a running Run returns. It is idempotent.
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
	if errors.Is(err, net.ErrClosed) { // accept has closed the listener, and the server has not noticed yet
		return nil
	}
	return err
}
