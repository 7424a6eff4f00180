package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// exchangeKey and headersKey are what a request over HTTP carries in its context.
type (
	exchangeKey struct{}
	headersKey  struct{}
)

// repeatArguments sets the headers that repeat arguments of a call.
func repeatArguments(ctx context.Context, header http.Header) {
	headers, _ := ctx.Value(headersKey{}).(map[string]string)
	for name, value := range headers {
		header.Set(name, value)
	}
}

// tap looks at a stream of events before the SDK does. What is no message is
// left out, as the SDK would take it for the end of the session. What else the
// server says in the answer to a call with a peer is taken out, so that it is
// known to belong to the call. Other responses are returned as they are.
func tap(req *http.Request, resp *http.Response, limit int64) {
	t, _ := req.Context().Value(exchangeKey{}).(*tapped)
	if t == nil && req.Method != http.MethodPost || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return // a GET opens a stream that answers nothing, unless it resumes one
	}
	resp.Body = &tappedBody{tapped: t, Closer: resp.Body, in: bufio.NewReader(resp.Body), limit: limit}
}

// tapped is a call under way over HTTP.
type tapped struct {
	wire  *wire
	owner *exchange
}

// tappedBody is a stream of events; tapped is nil for a call without a peer.
type tappedBody struct {
	*tapped
	io.Closer
	in    *bufio.Reader
	limit int64
	ready []byte // an event, or what is left of it
	ended error
	// through is set once an event was too long: from there on nothing is looked at.
	through bool
}

func (t *tappedBody) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		switch {
		case t.ended != nil:
			return 0, t.ended
		case t.through:
			return t.in.Read(p)
		}
		t.next()
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// next reads one event, up to the empty line after it.
func (t *tappedBody) next() {
	var event, data, rest []byte
	for {
		line, err := t.in.ReadSlice('\n')
		event = append(event, line...)
		if int64(len(event)) > t.limit {
			t.ready, t.through = event, true // the SDK has the same limit and says so
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // the rest of the line
		}
		if err != nil {
			t.ended = err
			break
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 && endsEvent(event) {
			break
		}
	}
	for line := range bytes.Lines(event) {
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, value...)
		} else {
			rest = append(rest, line...)
		}
	}
	t.ready = event
	if len(data) == 0 {
		return
	}
	switch msg := parseMessage(bytes.TrimSpace(data)).(type) {
	case nil:
		t.ready = rest // the id of the event, if it has one
	case *jsonrpc.Request:
		if t.tapped != nil {
			t.ready = rest
			t.wire.acceptFrom(msg, t.owner)
		}
	}
}

// endsEvent reports whether the last line is empty, and not only the end of a long one.
func endsEvent(event []byte) bool {
	event = bytes.TrimSuffix(bytes.TrimSuffix(event, []byte("\n")), []byte("\r"))
	return len(event) == 0 || event[len(event)-1] == '\n'
}
