// Package remote runs programs in the sandboxes of another machine. [Client]
// replaces a [sandbox.Host] on a gateway of any system. The worker, [ServeWorker],
// has the real host, on Linux, but no upstreams, no catalog and no credentials.
//
// Between them is one byte stream, such as the standard streams of ssh. After a
// greeting in each direction (one line of JSON) it carries HTTP/2, so that concurrent
// executions share it without blocking each other. The gateway is the HTTP client:
// the worker can only answer requests. Each execution is one request with both bodies
// open, which carry the frames of the bridge. So a worker may do what a guest may,
// and the same code checks and counts it. docs/how-to/remote-sandboxes.md describes the protocol.
package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"sallyport/sandbox"
)

// The kinds of messages in addition to those of the bridge.
const (
	// kindJob is the first message of an execution, with the job without its program.
	kindJob = 16 + iota
	// kindCancel asks the worker to stop the program.
	kindCancel
	// kindOutcome, kindStdout and kindStderr carry the outcome, before the bridge's "done".
	kindOutcome
	kindStdout
	kindStderr
	// kindPause tells the worker that the program's clock is paused ("1") or resumed ("0").
	kindPause
	// kindLiveStdout and kindLiveStderr carry output while the program runs, if the gateway asked for it.
	kindLiveStdout
	kindLiveStderr
	// kindOwner tells the worker who owns the program's sandbox from now on: see [sandbox.Job.OwnerAfter].
	kindOwner
)

// The maximum sizes of the greeting lines and of short requests and responses, in bytes.
const (
	maxHello = 64 << 10
	maxSmall = 1 << 20
)

// greeting is the first line of either side. Fields are added, never changed, because it negotiates the version.
type greeting struct {
	// Sallyport is "worker" or "gateway". It must be the first field: the line is recognized by it.
	Sallyport string `json:"sallyport"`
	Compat
	Version string `json:"version"`
	// Guest is the digest of the guest's files, which generated wrappers depend on.
	Guest string `json:"guest"`
	// Services are the names of the services that the worker has.
	Services []string `json:"services,omitempty"`
	// Environments are the names of the environments that the worker has.
	Environments []string `json:"environments,omitempty"`
	// Settings configure the worker's host.
	Settings *hostOptions `json:"host,omitempty"`
}

// hasEnvironment reports whether a worker has an environment of its own; all have "".
func (here greeting) hasEnvironment(name string) bool {
	return name == "" || slices.Contains(here.Environments, name)
}

// hostOptions are the fields of sandbox.Options that the gateway sets.
type hostOptions struct {
	Parallel    int           `json:"parallel,omitempty"`
	Pool        sandbox.Pool  `json:"pool"`
	SessionIdle time.Duration `json:"session_idle"`
	Masked      []string      `json:"masked,omitempty"`
	Reuse       bool          `json:"reuse,omitempty"`
}

// readiness is the worker's line after it has opened its host.
type readiness struct {
	Error string `json:"error,omitempty"`
}

// workerLine is the prefix of a worker's greeting, which distinguishes it from the output of a login.
const workerLine = `{"sallyport":"worker",`

func writeLine(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// readLine decodes the next line with the prefix begin, and drops the lines before it.
func readLine(r *bufio.Reader, begin string, v any) error {
	for left := maxHello; left > 0; {
		line, err := r.ReadSlice('\n')
		left -= len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // not a greeting
		case err != nil:
			return err
		case bytes.HasPrefix(line, []byte(begin)):
			return json.Unmarshal(line, v)
		}
	}
	return errors.New("no greeting received")
}

// wire is a stream as a net.Conn, for net/http. A caller can wait for its end.
type wire struct {
	io.Reader
	io.WriteCloser
	closeOnce func() error
	closed    chan struct{}
}

// newWire returns a wire that reads from ahead, which reads from stream.
func newWire(ahead *bufio.Reader, stream io.ReadWriteCloser) *wire {
	w := &wire{Reader: ahead, WriteCloser: stream, closed: make(chan struct{})}
	w.closeOnce = sync.OnceValue(func() error {
		close(w.closed)
		return stream.Close()
	})
	return w
}

// Close closes the stream, once.
func (w *wire) Close() error { return w.closeOnce() }

// LocalAddr and RemoteAddr are placeholders. Deadlines are ignored: HTTP/2 pings detect a dead peer.
func (w *wire) LocalAddr() net.Addr              { return streamAddr{} }
func (w *wire) RemoteAddr() net.Addr             { return streamAddr{} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

type streamAddr struct{}

func (streamAddr) Network() string { return "stream" }
func (streamAddr) String() string  { return "worker" }
