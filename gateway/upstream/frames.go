package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/jsontext"
	"sallyport/gateway/upstream/process"
)

const (
	// defaultMaxMessage bounds one message of an upstream, in bytes.
	defaultMaxMessage = 64 << 20
	// maxJunkLogged is how many invalid lines of one process are logged.
	maxJunkLogged = 10
)

var _ mcp.Connection = (*stdioConn)(nil)

// tooLargeError is the error for a message of an upstream above this limit, in bytes.
type tooLargeError int64

func (n tooLargeError) Error() string {
	if n >= 1<<20 {
		return fmt.Sprintf("sent a message of more than %d MiB", n>>20)
	}
	return fmt.Sprintf("sent a message of more than %d bytes", int64(n))
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[tooLargeError](err)
	return ok
}

// stdioConn is the connection to a process: one JSON-RPC message per line, both ways.
// mcp.IOTransport is not used because it closes the connection on a line that is
// not a message, such as a greeting or a log line on stdout.
type stdioConn struct {
	process *process.Process
	frames  *framer
	queue   []jsonrpc.Message // read, but not returned yet
	out     chan []byte
	closed  chan struct{}
	once    sync.Once
	written chan struct{} // closed when the first message has been written
	sender  sync.WaitGroup
	// ended is true when closed was closed because the output of the process ended.
	ended atomic.Bool
}

func newStdioConn(p *process.Process, most int64, room *budget.Budget, log *slog.Logger, v redactor) *stdioConn {
	c := &stdioConn{
		process: p,
		out:     make(chan []byte, 16),
		closed:  make(chan struct{}),
		written: make(chan struct{}),
	}
	seen := 0
	c.frames = &framer{in: bufio.NewReaderSize(p.Stdout, 64<<10), max: int(most), buffer: budget.Buffer{Budget: room, Done: c.closed}, junk: func(line []byte) {
		if seen++; seen <= maxJunkLogged {
			log.Warn("skip line on stdout that is not a message", "line", v.line(string(line), 200))
		}
	}}
	c.sender.Go(c.send)
	return c
}

// send writes the queued messages. A process that does not read its input blocks
// this goroutine, not a caller with a deadline.
func (c *stdioConn) send() {
	var first sync.Once
	for {
		select {
		case frame := <-c.out:
			if _, err := c.process.Stdin.Write(frame); err != nil {
				return // the output ends too, or calls time out
			}
			first.Do(func() { close(c.written) })
		case <-c.closed:
			return
		}
	}
}

// Read implements mcp.Connection.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		msgs, err := c.frames.next()
		if err != nil {
			return nil, c.endError(err)
		}
		c.queue = msgs
	}
	msg := c.queue[0]
	c.queue[0] = nil // it can be large, and the next one may come late
	c.queue = c.queue[1:]
	return msg, nil
}

// endError returns why the output ended.
func (c *stdioConn) endError(err error) error {
	if isTooLarge(err) {
		return err
	}
	c.once.Do(func() {
		c.ended.Store(true)
		close(c.closed)
	})
	close(c.process.Drained)
	return c.process.ExitError()
}

// Write implements mcp.Connection.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case <-c.closed:
		return c.closeError()
	default:
	}
	select {
	case c.out <- append(data, '\n'):
		return nil
	case <-c.closed:
		return c.closeError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeError returns why closed was closed.
func (c *stdioConn) closeError() error {
	if c.ended.Load() {
		return c.process.ExitError()
	}
	return errClosed
}

// begun implements [readObserver].
func (c *stdioConn) begun() bool {
	select {
	case <-c.written:
		return c.process.HasReadInput()
	default:
		return false
	}
}

// Close implements mcp.Connection: it closes the input of the process.
func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	err := c.process.Stdin.Close()
	c.sender.Wait()
	return err
}

// SessionID implements mcp.Connection.
func (c *stdioConn) SessionID() string { return "" }

// framer reads JSON-RPC messages, one per line, and passes every other line to junk.
type framer struct {
	in     *bufio.Reader
	max    int
	junk   func(line []byte)
	buffer budget.Buffer // a line that does not fit into the reader's buffer
	// oversized is the error response in place of one that was too long, nil for none.
	oversized *jsonrpc.Response
}

// next returns the messages of the next line that has any, at least one.
func (f *framer) next() ([]jsonrpc.Message, error) {
	for {
		line, err := f.line()
		if spoiled := f.oversized; spoiled != nil {
			f.oversized = nil
			return []jsonrpc.Message{spoiled}, nil
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			msgs, rest := parseFrame(line)
			for _, bad := range rest {
				f.junk(bad)
			}
			if len(msgs) > 0 {
				return msgs, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// line returns a copy of the next line. Of a long line that cannot be a message
// it returns only the beginning.
func (f *framer) line() ([]byte, error) {
	part, err := f.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.Clone(part), err // messages keep parts of it
	}
	f.buffer.Drop()
	f.buffer.Add(part)
	message := mayContainMessage(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = f.in.ReadSlice('\n')
		switch {
		case message && f.buffer.Size+len(part) > f.max:
			return f.skipOversized(part, err)
		case message:
			f.buffer.Add(part)
		}
	}
	return f.buffer.Take(), err
}

// maxSkipped is how many bytes of a line beyond the limit are skipped before the link is closed.
const maxSkipped = 128 << 20

// skipOversized skips the rest of a message that is too long, so that only the call fails that it
// responds to. It returns an error, which closes the link, if the ID is unknown or the line has no end.
func (f *framer) skipOversized(part []byte, err error) ([]byte, error) {
	var env envelope
	env.scan(f.buffer.Parts[0])
	size, tail := f.buffer.Size+len(part), bytes.Clone(part)
	f.buffer.Drop()
	for errors.Is(err, bufio.ErrBufferFull) {
		if size > f.max+maxSkipped {
			return nil, tooLargeError(f.max)
		}
		part, err = f.in.ReadSlice('\n')
		size += len(part)
		tail = append(tail[max(0, len(tail)-maxTail):], part...)
	}
	if found := lastID.FindSubmatch(tail); env.ID == nil && found != nil {
		env.ID = found[1]
	}
	id, ok := parseID(env.ID)
	if !ok || !id.IsValid() {
		return nil, tooLargeError(f.max)
	}
	f.oversized = &jsonrpc.Response{ID: id, Error: tooLargeError(f.max)}
	return nil, err
}

// lastID matches the end of a message with the ID after its result: one brace, so that it is not an ID within the result.
var lastID = regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// maxTail is how many bytes before the last part of a skipped line are kept.
const maxTail = 256

func mayBeMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}

// mayContainMessage reports whether a line that begins with line may contain a message, also after other text.
func mayContainMessage(line []byte) bool { return mayBeMessage(line) || messageStart.Match(line) }

// parseFrame parses a line with one message or, as revision 2025-03-26 allowed,
// an array of them. Anything else is returned as junk.
func parseFrame(line []byte) (msgs []jsonrpc.Message, junk [][]byte) {
	line, deep := jsontext.Prune(line)
	frames := []json.RawMessage{line}
	if line[0] == '[' && json.Unmarshal(line, &frames) != nil {
		if msgs = recoverResponses(line); len(msgs) == 0 {
			junk = [][]byte{line}
		}
		return msgs, junk
	}
	for _, frame := range frames {
		msg := parseEnvelope(frame)
		if deep && bytes.Contains(frame, []byte(jsontext.Pruned)) {
			msg = jsontext.WithoutPruned(msg)
		}
		switch resp, ok := msg.(*jsonrpc.Response); {
		case msg == nil, ok && isMalformed(resp.Error):
			found := recoverResponses(frame)
			msgs = append(msgs, found...)
			if len(found) == 0 {
				junk = append(junk, frame)
			}
		default:
			msgs = append(msgs, msg)
		}
	}
	return msgs, junk
}

// parseMessage parses a JSON-RPC message; it returns nil for anything else. It replaces
// jsonrpc.DecodeMessage, which allocates 32 KiB each time. A response that is nested
// too deep has the error [jsontext.DepthError].
func parseMessage(data []byte) jsonrpc.Message {
	data, deep := jsontext.Prune(data)
	msg := parseEnvelope(data)
	if deep {
		return jsontext.WithoutPruned(msg)
	}
	return msg
}

// parseID parses an ID: a number, a string, or none; ok is false for anything else.
func parseID(raw json.RawMessage) (id jsonrpc.ID, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return id, true
	}
	var value any
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		value = float64(n)
	} else if json.Unmarshal(raw, &value) != nil {
		return id, false
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}
