package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/budget"
)

const (
	listenRetryMin = time.Second
	listenRetryMax = 30 * time.Second
)

// listener keeps the stream open on which an HTTP server of a revision before
// 2026-07-28 sends unsolicited notifications, such as changes of its tools. The
// SDK ends the session when a proxy has cut an idle stream a few times; the
// listener reopens the stream.
type listener struct {
	url      string
	client   *http.Client
	wire     *wire
	maxEvent int // bytes of one event
	budget   *budget.Budget
	last     string // id of the last event
}

// run listens until ctx ends or the server does not offer the stream.
func (l *listener) run(ctx context.Context) {
	wait := listenRetryMin
	for {
		begin := time.Now()
		if !l.once(ctx) {
			return
		}
		if wait = min(2*wait, listenRetryMax); time.Since(begin) > listenRetryMax {
			wait = listenRetryMin
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// once opens the stream, reads it to its end and reports whether to retry.
func (l *listener) once(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := l.wire.SessionID(); id != "" {
		req.Header.Set(sessionHeader, id)
	}
	if l.last != "" {
		req.Header.Set("Last-Event-ID", l.last)
	}
	resp, err := l.client.Do(req)
	l.wire.markStreaming()
	if needsLogin(err) {
		l.wire.fail(err)
	}
	if err != nil {
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return true
	}
	if resp.StatusCode != http.StatusOK || !isStream(resp) {
		return false // 405 or another content type: not supported
	}
	if l.last == "" && l.wire.listed.Load() { // a change before the server had the stream was not sent
		l.wire.changed(allParts)
	}
	_ = readEvents(resp.Body, l.maxEvent, budget.Buffer{Budget: l.budget, Done: ctx.Done()}, l.take) // any error ends the stream
	return ctx.Err() == nil
}

// take accepts a request or notification. Responses arrive with their requests, not here.
func (l *listener) take(e event) {
	if e.id != "" {
		l.last = e.id
	}
	if msg, ok := parseMessage(e.data).(*jsonrpc.Request); ok {
		l.wire.accept(msg)
	}
}

// event is one server-sent event; name is "" for a plain message.
type event struct {
	name, id string
	data     []byte
}

// readEvents reads server-sent events until r ends or one is longer than most bytes. line is the buffer of a line.
func readEvents(r io.Reader, most int, line budget.Buffer, take func(event)) error {
	in := bufio.NewReader(r)
	var name, id string
	var data [][]byte
	size := 0
	for {
		text, err := readLine(in, most, &line)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		text = bytes.TrimSuffix(text, []byte("\r"))
		field, value, _ := bytes.Cut(text, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if len(field) > 0 || len(text) == 0 { // comments are not kept
			size += len(text) + 1
		}
		if size > most {
			return tooLargeError(most)
		}
		switch {
		case len(text) == 0:
			take(event{name, id, joinLines(data)})
			name, data, size = "", nil, 0
		case string(field) == "id":
			id = string(value)
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(data, value)
		}
	}
}

// readLine returns a copy of the next line without its end.
func readLine(in *bufio.Reader, most int, line *budget.Buffer) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		if line.Add(part); line.Size > most {
			line.Drop()
			return nil, tooLargeError(most)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			line.Drop()
			return nil, err
		}
		text := line.Take()
		return text[:len(text)-1], nil
	}
}

// joinLines joins the lines of an event; it does not copy a single line, the common case.
func joinLines(lines [][]byte) []byte {
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte("\n"))
}
