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
	// maxTold is how many excess connections get a response at the same time; more are only closed.
	maxTold = 64
	// tellPatience is the timeout of that response.
	tellPatience = time.Second
)

// busy is the response to an excess connection.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" +
	`{"title":"Service Unavailable","status":503,"detail":"too many connections","kind":"limit"}` + "\n"

// limited is a listener with a bounded number of connections.
type limited struct {
	net.Listener
	places, tellers chan struct{}
	telling         sync.WaitGroup
}

func newLimited(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most), tellers: make(chan struct{}, maxTold)}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			l.turnAway(conn)
		}
	}
}

// Close implements [net.Listener].
func (l *limited) Close() error {
	defer l.telling.Wait()
	return l.Listener.Close()
}

// turnAway sends the busy response and closes the connection, or only closes it if too many responses are being sent.
func (l *limited) turnAway(conn net.Conn) {
	select {
	case l.tellers <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	l.telling.Go(func() {
		defer func() { <-l.tellers }()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(tellPatience))
		_, _ = io.WriteString(conn, busy)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, conn, 64<<10) // closing with unread data would reset the connection before the response is read
		}
	})
}

// counted is a connection that frees its slot when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets the client read the whole response.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// prompt disconnects clients that do not read their responses.
func prompt(patience time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &prompting{w, http.NewResponseController(w), patience}
		p.wait()
		next.ServeHTTP(p, r)
		p.wait() // for buffered data
	})
}

// prompting is a response writer with a deadline for each part.
type prompting struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// wait extends the deadline for the next part. A recorder in a test has no deadlines.
func (p *prompting) wait() { _ = p.control.SetWriteDeadline(time.Now().Add(p.patience)) }

// maxPart is the maximum size of a part with one deadline, in bytes, so that slow clients can get large responses.
const maxPart = 64 << 10

// Write implements [http.ResponseWriter].
func (p *prompting) Write(data []byte) (written int, err error) {
	for err == nil {
		p.wait()
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
func (p *prompting) Flush() {
	p.wait()
	_ = p.control.Flush()
}

// FlushError is for [http.ResponseController].
func (p *prompting) FlushError() error {
	p.wait()
	return p.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (p *prompting) Unwrap() http.ResponseWriter { return p.ResponseWriter }
