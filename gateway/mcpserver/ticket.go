package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/mcpserver/ticket"
	"sallyport/internal/tool"
)

// A ticket is the requestState that a client gets for a pending call. It is signed, expires, and can be used once, by the
// same principal in the same session for the same request. The call itself is kept here, not in the ticket.

const (
	// maxPending is how many calls of one principal may wait for their client;
	// pendingTimeout is how long.
	maxPending     = 64
	pendingTimeout = 5 * time.Minute
	// ticketLifetime is how long a ticket tells how to resume a program without a pending call.
	ticketLifetime = 24 * time.Hour
)

// pendingStore holds the calls that wait for their client. It is safe for concurrent use.
type pendingStore struct {
	key     ticket.Key
	mu      sync.Mutex
	entries map[string]*pendingEntry
	count   map[string]int // by principal
	closed  bool
}

type pendingEntry struct {
	call      *pendingCall
	principal string
	timer     *time.Timer
}

func newPendingStore(key []byte) *pendingStore {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &pendingStore{key: key, entries: map[string]*pendingEntry{}, count: map[string]int{}}
}

// add stores a call and returns its ticket, which can be used once.
func (p *pendingStore) add(t *pendingCall, principal string, bound []byte) (state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errStopping
	}
	if p.count[principal] >= maxPending {
		return "", &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d calls already wait for an answer", maxPending), Hint: "answer one of them first"}
	}
	id := rand.Text()
	p.count[principal]++
	p.entries[id] = &pendingEntry{t, principal, time.AfterFunc(pendingTimeout, func() { p.expire(id) })}
	return p.key.Sign(ticket.Claims{ID: id, Bound: bound, Expires: time.Now().Add(ticketLifetime).Unix(), Execution: t.execution()})
}

// resume returns the call that a ticket is for and removes it, nil if the state is not a
// ticket. A ticket that was used, has expired or is for another request is an error.
func (p *pendingStore) resume(state string, bound []byte) (*pendingCall, error) {
	if !ticket.Is(state) {
		return nil, nil //nolint:nilnil // a new call, which is not an error
	}
	of, ok := p.key.Read(state)
	if !ok || !of.Fits(bound) {
		return nil, errTicket
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.entries[of.ID]
	switch {
	case s == nil && of.Execution != "":
		return nil, &notPendingError{of.Execution}
	case s == nil:
		return nil, errTicket
	}
	p.remove(of.ID, s)
	return s.call, nil
}

// wrapState marks the requestState of an upstream in a result, if it needs that.
func wrapState(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"requestState"`)) { // results can be large
		return raw
	}
	state := decodeMember(raw, "requestState")
	if now := ticket.Wrap(state); now != state && decodeMember(raw, "resultType") == "input_required" {
		return replaceMember(raw, "requestState", encode(now))
	}
	return raw
}

// unwrapState returns the params of a call with the requestState as the upstream made it.
func unwrapState(params object) object {
	state := decodeString(params["requestState"])
	if theirs := ticket.Unwrap(state); theirs != state {
		params = maps.Clone(params)
		params["requestState"] = encode(theirs)
	}
	return params
}

var errTicket = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: used, expired, or of another request"}

// notPendingError is the error for a ticket whose program no longer waits: the ticket was used or
// expired, or the gateway was restarted.
type notPendingError struct{ execution string }

// Error tells a model how to resume the program.
func (e *notPendingError) Error() string {
	return fmt.Sprintf("the program no longer waits for this answer. Resume it with execute_code(code=\"\", resume=%q): completed calls are not repeated.", e.execution)
}

// remove is called with mu held.
func (p *pendingStore) remove(id string, s *pendingEntry) {
	s.timer.Stop()
	delete(p.entries, id)
	if p.count[s.principal]--; p.count[s.principal] == 0 {
		delete(p.count, s.principal)
	}
}

var errNoAnswer = errors.New("the client did not answer")

func (p *pendingStore) expire(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.entries[id]; s != nil {
		p.remove(id, s)
		s.call.cancel(errNoAnswer)
	}
}

// close cancels all pending calls and rejects further ones.
func (p *pendingStore) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id, s := range p.entries {
		p.remove(id, s)
		s.call.cancel(errStopping)
	}
}
