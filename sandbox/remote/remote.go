// Package remote runs programs in the sandboxes of another machine. Its main
// types are [Client], which stands where a [sandbox.Host] would on a gateway of any
// system, and the worker of [ServeWorker], which has only the real host, on Linux: no
// upstream, no catalog, no credential.
//
// Between them is one stream of bytes, such as the standard streams of ssh. After a
// hello either way (one line of JSON each) it carries HTTP/2, which has many
// executions share it without waiting for each other, with the client as client:
// the worker can answer what it was asked, and ask nothing by itself. Each
// execution is one request with both bodies open; what goes through them
// are the frames of the bridge, so what a worker may do is what a guest may, and is
// checked and counted by the same code. docs/remote.md has the whole of it.
package remote

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// Protocol is the version of what goes over the wire. Both sides must have the same.
const Protocol = 2

// The kinds of messages in addition to those of the bridge.
const (
	// kindJob is the first of an execution, with a job; no content may be in it.
	kindJob = 16 + iota
	// kindCancel asks the worker to stop the program.
	kindCancel
	// kindOutcome, kindStdout and kindStderr tell how it ended, before the bridge's "done".
	kindOutcome
	kindStdout
	kindStderr
	// kindStill tells the worker that the program's clock stands still ("1"), or continues ("0").
	kindStill
	// kindPrintedOut and kindPrintedErr are what a program prints, as it does, for a gateway that asked for that.
	kindPrintedOut
	kindPrintedErr
)

// The bounds of what is read before it is known who speaks, in bytes.
const (
	maxHello = 64 << 10
	maxSmall = 1 << 20
)

// greeting is the line of either side. Fields are added, never changed: it is what tells versions apart.
type greeting struct {
	// Sallyport is "worker" or "gateway". It comes first: the line is known by it.
	Sallyport string `json:"sallyport"`
	Protocol  int    `json:"protocol"`
	Version   string `json:"version"`
	// Guest is the digest of the guest's files, which generated wrappers depend on.
	Guest string `json:"guest"`
	// Host is what the gateway wants of the worker's host.
	Host *hostOptions `json:"host,omitempty"`
}

// hostOptions are those of sandbox.Options that the gateway's settings have.
type hostOptions struct {
	Parallel    int           `json:"parallel,omitempty"`
	Pool        sandbox.Pool  `json:"pool"`
	SessionIdle time.Duration `json:"session_idle"`
	Masked      []string      `json:"masked,omitempty"`
}

// readiness is what the worker says when it has its host.
type readiness struct {
	Error string `json:"error,omitempty"`
}

// workerLine is how every line of a worker begins: what a login prints before does not.
const workerLine = `{"sallyport":"worker",`

func writeLine(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// readLine reads the next line that begins so, and drops those before it.
func readLine(r *bufio.Reader, begin string, v any) error {
	for left := maxHello; left > 0; {
		line, err := r.ReadSlice('\n')
		left -= len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // no line of ours
		case err != nil:
			return err
		case bytes.HasPrefix(line, []byte(begin)):
			return json.Unmarshal(line, v)
		}
	}
	return errors.New("it says what is no greeting")
}

// matches says what to do where the two sides do not fit. here is this side.
func (here greeting) matches(there greeting) error {
	version := sanitize.Line(there.Version, 60)
	switch {
	case there.Protocol < here.Protocol:
		return fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it there", there.name(), version, here.name(), here.Version)
	case there.Protocol > here.Protocol:
		return fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it here", here.name(), here.Version, there.name(), version)
	case there.Guest != here.Guest:
		return fmt.Errorf("sallyport is not the same on both machines (%s at the %s, %s at the %s): install the same build on both", here.Version, here.name(), version, there.name())
	}
	return nil
}

func (here greeting) name() string {
	if here.Sallyport == "gateway" {
		return "gateway"
	}
	return "worker"
}

// digest is that of a guest's files.
func digest(tree fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		fmt.Fprintf(sum, "%d %s %d ", len(path), path, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("digest guest: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// wire is a stream as net/http wants it: a connection that reports its end.
type wire struct {
	io.Reader
	io.WriteCloser
	closing func() error
	closed  chan struct{}
}

// newWire reads what was read ahead first.
func newWire(ahead *bufio.Reader, stream io.ReadWriteCloser) *wire {
	w := &wire{Reader: ahead, WriteCloser: stream, closed: make(chan struct{})}
	w.closing = sync.OnceValue(func() error {
		close(w.closed)
		return stream.Close()
	})
	return w
}

// Close closes the stream, once.
func (w *wire) Close() error { return w.closing() }

// LocalAddr and RemoteAddr are nowhere; there are no deadlines: HTTP/2's pings detect a dead peer.
func (w *wire) LocalAddr() net.Addr              { return nowhere{} }
func (w *wire) RemoteAddr() net.Addr             { return nowhere{} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

type nowhere struct{}

func (nowhere) Network() string { return "stream" }
func (nowhere) String() string  { return "worker" }
