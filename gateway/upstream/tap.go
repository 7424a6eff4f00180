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

// errNoMessage is why an answer over HTTP is of no use.
var errNoMessage error = &garbled{"the answer is no JSON-RPC message"}

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

// tap looks at an answer before the SDK does. In a stream of events, what is no
// message is left out, as the SDK would take it for the end of the session; what
// else the server says is taken out, so that it is known to belong to the call.
// A response that the SDK could not read is given to who waits for it.
func tap(req *http.Request, resp *http.Response, limit int64, room *budget.Budget) {
	message := budget.Parcel{Budget: room, Done: req.Context().Done()}
	t, _ := req.Context().Value(exchangeKey{}).(*tapped)
	switch {
	case t == nil && req.Method != http.MethodPost:
		// a GET opens a stream that answers nothing, unless it resumes one
	case isStream(resp):
		resp.Body = &tappedBody{tapped: t, Closer: resp.Body, in: bufio.NewReader(resp.Body), limit: limit, event: message}
	case resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		resp.Body = &tappedMessage{tapped: t, Closer: resp.Body, in: resp.Body, message: message}
	}
}

// streamFactor is how many times the limit of one message the events of one answer may have together.
const streamFactor = 4

// tapped is one of our requests in flight over HTTP; owner is nil without a peer.
type tapped struct {
	wire  *wire
	owner *exchange
	id    jsonrpc.ID
}

// spoil ends the request, and only that, with an error. It returns what the SDK gets for an answer.
func (t *tapped) spoil(err error) []byte {
	return t.plainly(&jsonrpc.Response{ID: t.id, Error: err})
}

// plainly returns nil for a response that the SDK reads, or else what is to stand
// in its place. A response to one of our requests is delivered here: the SDK would
// copy it, and does not read all that we do. t may be nil.
func (t *tapped) plainly(resp *jsonrpc.Response) []byte {
	if t != nil {
		if !resp.ID.IsValid() {
			resp.ID = t.id // the body is the answer to this request
		}
		t.wire.veil.message(resp)
		if t.wire.deliver(resp) && resp.Error == nil {
			return encoded(&jsonrpc.Response{ID: resp.ID, Result: json.RawMessage("{}")})
		}
	}
	if resp.Error == nil || !resp.ID.IsValid() {
		return nil
	}
	failure := answered(resp.Error)
	if failure == nil {
		failure = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: resp.Error.Error()}
	}
	return encoded(&jsonrpc.Response{ID: resp.ID, Error: failure})
}

func encoded(resp *jsonrpc.Response) []byte {
	data, err := jsonrpc.EncodeMessage(resp)
	if err != nil { // its data was no JSON after all
		return nil
	}
	return data
}

// tappedMessage is a body that is one message; tapped may be nil.
type tappedMessage struct {
	*tapped
	io.Closer
	in      io.Reader
	message budget.Parcel
	whole   *bytes.Reader // nil until it was read
}

func (t *tappedMessage) Read(p []byte) (int, error) {
	if t.whole == nil {
		_, err := io.Copy(&t.message, t.in)
		data := t.message.Take()
		if err != nil && (t.tapped == nil || !isTooLong(err)) {
			return 0, err // the connection is broken
		}
		t.whole = bytes.NewReader(t.check(data, err))
	}
	return t.whole.Read(p)
}

// check returns what the SDK gets for that body, or for one that could not be read.
func (t *tappedMessage) check(data []byte, err error) []byte {
	if err != nil {
		return t.spoil(err)
	}
	switch msg := parseMessage(data).(type) {
	case nil:
		if t.tapped != nil {
			return t.spoil(errNoMessage)
		}
	case *jsonrpc.Response:
		if plain := t.plainly(msg); plain != nil {
			return plain
		}
	}
	return data
}

// tappedBody is a stream of events; tapped is nil for requests of the SDK.
type tappedBody struct {
	*tapped
	io.Closer
	in    *bufio.Reader
	limit int64
	event budget.Parcel // that is being read
	total int64         // bytes of all events
	ready []byte        // an event, or what is left of it
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

// gather reads one event, up to the empty line after it; ok is false if it was too long.
func (t *tappedBody) gather() (event []byte, ok bool) {
	last := byte('\n') // before the line
	for {
		line, err := t.in.ReadSlice('\n')
		t.event.Add(line)
		if t.total += int64(len(line)); int64(t.event.Size) > t.limit || t.tapped != nil && t.total > streamFactor*t.limit {
			t.overrun(t.event.Take())
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

// dataOf returns the data of an event, and all else that it has.
func dataOf(event []byte) (data, rest []byte) {
	for line := range bytes.Lines(event) {
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case ok && data == nil:
			data = slices.Clip(value) // no copy, as there is one line nearly always
		case ok:
			data = append(data, value...)
		default:
			rest = append(rest, line...)
		}
	}
	return data, rest
}

// next reads one event.
func (t *tappedBody) next() {
	event, ok := t.gather()
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
		t.ready = rest // the id of the event, if it has one
	case *jsonrpc.Request:
		if t.tapped != nil {
			t.ready = rest
			t.wire.acceptFrom(msg, t.owner)
		}
	case *jsonrpc.Response:
		if plain := t.plainly(msg); !msg.ID.IsValid() {
			t.ready = rest
		} else if plain != nil {
			t.ready = slices.Concat([]byte("data: "), plain, []byte("\n"), rest)
		}
	}
}

// overrun is for an event that is too long. The SDK has the same limit, but to it
// such an event is the end of all requests.
func (t *tappedBody) overrun(event []byte) {
	if t.tapped == nil {
		t.ready, t.through = event, true
		return
	}
	t.ready, t.ended = slices.Concat([]byte("data: "), t.spoil(tooLong(t.limit)), []byte("\n\n")), io.EOF
}
