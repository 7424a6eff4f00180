package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/budget"
)

// errInvalidMessage is the error of an HTTP response that is not a message.
var errInvalidMessage error = &malformedError{"the response is not a JSON-RPC message"}

// exchangeKey and headersKey are the context keys of an HTTP request.
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

// interceptBody processes an HTTP response before the SDK does. From a stream of events it
// removes events that are not messages, on which the SDK would end the session, and
// the server's requests and notifications, which it assigns to the call. A response
// that the SDK could not read is delivered to its waiting request.
func interceptBody(req *http.Request, resp *http.Response, limit int64, room *budget.Budget) {
	message := budget.Buffer{Budget: room, Done: req.Context().Done()}
	t, _ := req.Context().Value(exchangeKey{}).(*httpCall)
	switch {
	case t == nil && req.Method != http.MethodPost:
		// a GET opens a stream without responses, unless it resumes one
	case isStream(resp):
		resp.Body = &eventBody{httpCall: t, Closer: resp.Body, in: bufio.NewReader(resp.Body), limit: limit, event: message}
	case resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		resp.Body = &messageBody{httpCall: t, Closer: resp.Body, in: resp.Body, message: message}
	}
}

// streamFactor times the limit of one message is the limit of all events of one HTTP response.
const streamFactor = 4

// httpCall is an in-flight request over HTTP; owner is nil without a peer.
type httpCall struct {
	wire  *wire
	owner *exchange
	id    jsonrpc.ID
}

// fail fails only this request. It returns the response for the SDK.
func (t *httpCall) fail(err error) []byte {
	return t.replacement(&jsonrpc.Response{ID: t.id, Error: err})
}

// replacement returns nil for a response that the SDK can read, or else its replacement. A
// response to one of our requests is delivered here: the SDK would copy it, and reads
// fewer responses than we do. t may be nil.
func (t *httpCall) replacement(resp *jsonrpc.Response) []byte {
	if t != nil {
		if !resp.ID.IsValid() {
			resp.ID = t.id // the body is the answer to this request
		}
		t.wire.redactor.redactMessage(resp)
		if t.wire.deliver(resp) && resp.Error == nil {
			return encodeResponse(&jsonrpc.Response{ID: resp.ID, Result: json.RawMessage("{}")})
		}
	}
	if resp.Error == nil || !resp.ID.IsValid() {
		return nil
	}
	failure := rpcError(resp.Error)
	if failure == nil {
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: resp.Error.Error()}
	}
	return encodeResponse(&jsonrpc.Response{ID: resp.ID, Error: failure})
}

func encodeResponse(resp *jsonrpc.Response) []byte {
	data, err := jsonrpc.EncodeMessage(resp)
	if err != nil { // its data is invalid JSON
		return nil
	}
	return data
}

// messageBody is a body that is one message; tapped may be nil.
type messageBody struct {
	*httpCall
	io.Closer
	in      io.Reader
	message budget.Buffer
	checked *bytes.Reader // nil until it was read
}

func (t *messageBody) Read(p []byte) (int, error) {
	if t.checked == nil {
		_, err := io.Copy(&t.message, t.in)
		data := t.message.Take()
		if err != nil && (t.httpCall == nil || !isTooLarge(err)) {
			return 0, err // the connection is broken
		}
		t.checked = bytes.NewReader(t.check(data, err))
	}
	return t.checked.Read(p)
}

// check returns the body for the SDK: data, or a replacement, also if reading failed with err.
func (t *messageBody) check(data []byte, err error) []byte {
	if err != nil {
		return t.fail(err)
	}
	switch msg := parseMessage(data).(type) {
	case nil:
		if t.httpCall != nil {
			return t.fail(errInvalidMessage)
		}
	case *jsonrpc.Response:
		if plain := t.replacement(msg); plain != nil {
			return plain
		}
	}
	return data
}

// eventBody is a stream of events; tapped is nil for requests of the SDK.
type eventBody struct {
	*httpCall
	io.Closer
	in    *bufio.Reader
	limit int64
	event budget.Buffer // the one that is being read
	total int64         // bytes of all events
	ready []byte        // an event, or the rest of it
	ended error
	// passThrough is set once an event was too long: the rest is passed through unread.
	passThrough bool
}

func (t *eventBody) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		switch {
		case t.ended != nil:
			return 0, t.ended
		case t.passThrough:
			return t.in.Read(p)
		}
		t.next()
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// readEvent reads one event, up to the empty line after it; ok is false if it was too long.
func (t *eventBody) readEvent() (event []byte, ok bool) {
	last := byte('\n') // before the line
	for {
		line, err := t.in.ReadSlice('\n')
		t.event.Add(line)
		if t.total += int64(len(line)); int64(t.event.Size) > t.limit || t.httpCall != nil && t.total > streamFactor*t.limit {
			t.skipOversized(t.event.Take())
			return nil, false
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			last = line[len(line)-1]
			continue // the rest of the line
		}
		if err != nil {
			t.ended = err
			break
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 && last == '\n' {
			break
		}
		last = '\n'
	}
	return t.event.Take(), true
}

// dataOf splits an event into its data and its other lines.
func dataOf(event []byte) (data, rest []byte) {
	for line := range bytes.Lines(event) {
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case ok && data == nil:
			data = slices.Clip(value) // no copy: there usually is one line
		case ok:
			data = append(data, value...)
		default:
			rest = append(rest, line...)
		}
	}
	return data, rest
}

// next reads one event.
func (t *eventBody) next() {
	event, ok := t.readEvent()
	if !ok {
		return
	}
	data, rest := dataOf(event)
	t.ready = event
	if len(data) == 0 {
		return
	}
	switch msg := parseMessage(bytes.TrimSpace(data)).(type) {
	case nil:
		t.ready = rest // the ID of the event, if any
	case *jsonrpc.Request:
		if t.httpCall != nil {
			t.ready = rest
			t.wire.acceptFrom(msg, t.owner)
		}
	case *jsonrpc.Response:
		if plain := t.replacement(msg); !msg.ID.IsValid() {
			t.ready = rest
		} else if plain != nil {
			t.ready = slices.Concat([]byte("data: "), plain, []byte("\n"), rest)
		}
	}
}

// skipOversized handles an event that is too long by failing its request. The SDK has the
// same limit, but fails all requests.
func (t *eventBody) skipOversized(event []byte) {
	if t.httpCall == nil {
		t.ready, t.passThrough = event, true
		return
	}
	t.ready, t.ended = slices.Concat([]byte("data: "), t.fail(tooLargeError(t.limit)), []byte("\n\n")), io.EOF
}
