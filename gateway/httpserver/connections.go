package httpserver

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxConnections is the maximum number of concurrent connections.
	maxConnections = 2000
	// maxRejections is how many excess connections get a response at the same time; more are only closed.
	maxRejections = 64
	// rejectTimeout is the timeout of that response.
	rejectTimeout = time.Second
)

// busy is the response to an excess connection.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" +
	`{"title":"Service Unavailable","status":503,"detail":"too many connections","kind":"limit"}` + "\n"

// limitedListener is a listener with a bounded number of connections.
type limitedListener struct {
	net.Listener
	slots, rejectSlots chan struct{}
	rejecting          sync.WaitGroup
}

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, most), rejectSlots: make(chan struct{}, maxRejections)}
}

// Accept implements [net.Listener].
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &countedConn{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			l.reject(conn)
		}
	}
}

// Close implements [net.Listener].
func (l *limitedListener) Close() error {
	defer l.rejecting.Wait()
	return l.Listener.Close()
}

// reject sends the busy response and closes the connection, or only closes it if too many responses are being sent.
func (l *limitedListener) reject(conn net.Conn) {
	select {
	case l.rejectSlots <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	l.rejecting.Go(func() {
		defer func() { <-l.rejectSlots }()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(rejectTimeout))
		_, _ = io.WriteString(conn, busy)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, conn, 64<<10) // closing with unread data would reset the connection before the response is read
		}
	})
}

// countedConn is a connection that frees its slot when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

// Close implements [net.Conn].
func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite lets the client read the whole response.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// withWriteDeadline disconnects clients that do not read their responses.
func withWriteDeadline(patience time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &deadlineWriter{w, http.NewResponseController(w), patience}
		p.extend()
		next.ServeHTTP(p, r)
		p.extend() // for buffered data
	})
}

// deadlineWriter is a response writer with a deadline for each part.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// extend extends the deadline for the next part. A recorder in a test has no deadlines.
func (p *deadlineWriter) extend() { _ = p.control.SetWriteDeadline(time.Now().Add(p.timeout)) }

// maxPart is the maximum size of a part with one deadline, in bytes, so that slow clients can get large responses.
const maxPart = 64 << 10

// Write implements [http.ResponseWriter].
func (p *deadlineWriter) Write(data []byte) (written int, err error) {
	for err == nil {
		p.extend()
		var n int
		n, err = p.ResponseWriter.Write(data[:min(len(data), maxPart)])
		written, data = written+n, data[n:]
		if len(data) == 0 {
			break
		}
	}
	return written, err
}

// Flush implements [http.Flusher].
func (p *deadlineWriter) Flush() {
	p.extend()
	_ = p.control.Flush()
}

// FlushError is for [http.ResponseController].
func (p *deadlineWriter) FlushError() error {
	p.extend()
	return p.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
