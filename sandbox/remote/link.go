package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox/bridge"
)

const (
	// connectLimit is the time limit of the login and the start of the worker.
	connectLimit = 30 * time.Second
	// pingTimeout is the idle time after which a side sends a ping, and the time limit of its
	// answer.
	pingTimeout = 15 * time.Second
	// maxWindow is the receive buffer of one execution, in bytes.
	maxWindow = 1 << 20
)

// link is one connection to a worker.
type link struct {
	wire   *wire
	http   *http.ClientConn
	worker greeting
	// published is the tree that the worker has; guarded by the client's turn.
	published *tree
}

// connect opens a stream, exchanges greetings, sends the files of guests if those of the worker differ, and waits until it is ready.
func connect(ctx context.Context, dial Dial, here greeting, guest fs.FS) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	stream, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{wire: newWire(bufio.NewReaderSize(stream, maxHello), stream)}
	stop := context.AfterFunc(ctx, func() { _ = l.wire.Close() })
	err = l.greet(here, guest)
	if err == nil {
		err = l.startHTTP(ctx)
	}
	if stop() && err == nil {
		return l, nil
	}
	closeErr := l.wire.Close()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %s", connectLimit)
	case errors.Is(err, io.EOF) && closeErr != nil: // ssh's error message
		return nil, closeErr
	case errors.Is(err, io.EOF):
		return nil, errors.New("the connection was closed before the worker said anything")
	}
	return nil, err
}

func (l *link) greet(here greeting, guest fs.FS) error {
	ahead, ok := l.wire.Reader.(*bufio.Reader)
	if !ok {
		return errors.New("the wire cannot be read ahead")
	}
	if err := readLine(ahead, workerLine, &l.worker); err != nil {
		return err
	}
	send, err := here.agree(l.worker)
	if err == nil {
		err = writeLine(l.wire, here)
	}
	if err == nil && send {
		err = writeGuest(l.wire, guest)
	}
	if err != nil {
		return err
	}
	var ready readiness
	if err := readLine(ahead, "{", &ready); err != nil {
		return err
	}
	if ready.Error != "" {
		return errors.New("the worker has no sandboxes: " + sanitize.Line(ready.Error, 300))
	}
	return nil
}

// startHTTP starts HTTP/2 on the wire.
func (l *link) startHTTP(ctx context.Context) (err error) {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, MaxResponseHeaderBytes: maxHello, DisableCompression: true,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: maxWindow},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return l.wire, nil },
	}
	l.http, err = transport.NewClientConn(ctx, "http", "worker:80")
	return err
}

// alive reports whether the connection is not known to be broken.
func (l *link) alive() bool {
	select {
	case <-l.wire.closed:
		return false
	default:
		return l.http.Err() == nil
	}
}

// close ends the connection; the worker stops everything that runs for it.
func (l *link) close() error {
	return errors.Join(l.http.Close(), l.wire.Close())
}

// exchange is one HTTP request with open bodies, as a stream.
type exchange struct {
	net.Conn // what goes out
	cancel   context.CancelFunc
	answered chan struct{}
	work     sync.WaitGroup
	// body and err are valid after answered is closed.
	body io.ReadCloser
	err  error
}

// open starts a request. It does not wait for the response.
func (l *link) open(path string) (*exchange, error) {
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+path, far)
	if err != nil {
		cancel()
		return nil, err
	}
	x := &exchange{Conn: near, cancel: cancel, answered: make(chan struct{})}
	x.work.Go(func() {
		defer close(x.answered)
		response, err := l.http.RoundTrip(req) //nolint:bodyclose // Close closes it
		switch {
		case err != nil:
			x.err = err
			_ = far.Close() // unblock the writer
		case response.StatusCode != http.StatusOK:
			x.body, x.err = response.Body, fmt.Errorf("the worker answered %d", response.StatusCode)
		default:
			x.body = response.Body
		}
	})
	return x, nil
}

// Read reads the response.
func (x *exchange) Read(p []byte) (int, error) {
	<-x.answered
	if x.err != nil {
		return 0, x.err
	}
	return x.body.Read(p)
}

// Close closes both directions, and cancels the worker's handling of the request.
func (x *exchange) Close() error {
	x.cancel()
	_ = x.Conn.Close()
	x.work.Wait()
	if x.body != nil {
		_ = x.body.Close()
	}
	return nil
}

// request sends a short JSON request, and decodes the response into reply unless that is nil.
func (l *link) request(ctx context.Context, path string, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := l.http.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxSmall+1))
	switch {
	case err != nil:
		return err
	case len(answer) > maxSmall:
		return errors.New("the worker's answer is too long")
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the worker: %s", sanitize.Line(string(answer), 300))
	case reply == nil:
		return nil
	}
	return json.Unmarshal(answer, reply)
}

// messages returns the messages of an exchange.
func (x *exchange) messages(aside func(kind byte, data []byte) error) *bridge.Messages {
	return bridge.NewMessages(x, aside)
}
