package mcpserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/tool"
)

// A ticket is the requestState that a client gets for a call that waits. It is signed, good for once, for the same
// principal, session and request, and for a while. What waits is here, not in the ticket.

const (
	// ticketPrefix marks a requestState as ours.
	ticketPrefix = "sallyport."
	// maxParked is how many calls may wait for an answer of their client, of
	// one principal; parkedTime is how long.
	maxParked  = 64
	parkedTime = 5 * time.Minute
	// ticketTime is how long a ticket says how to go on, when what it is for has ended.
	ticketTime = 24 * time.Hour
)

// parking holds the calls that wait for their client.
type parking struct {
	key    []byte // of the tickets
	mu     sync.Mutex
	spots  map[string]*spot
	count  map[string]int // by principal
	closed bool
}

type spot struct {
	talk      *talk
	principal string
	expire    *time.Timer
}

func newParking(key []byte) *parking {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &parking{key: key, spots: map[string]*spot{}, count: map[string]int{}}
}

// park keeps a call and returns the ticket for it, which is good for once.
func (p *parking) park(t *talk, principal string, bound []byte) (ticket string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errStopping
	}
	if p.count[principal] >= maxParked {
		return "", &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d calls wait for an answer already", maxParked), Hint: "answer one of them first"}
	}
	id := rand.Text()
	p.count[principal]++
	p.spots[id] = &spot{t, principal, time.AfterFunc(parkedTime, func() { p.expired(id) })}
	return p.sign(stub{ID: id, Bound: bound, Expires: time.Now().Add(ticketTime).Unix(), Execution: t.execution()}), nil
}

// resume returns the call that a ticket is for, nil if the state is not one of
// our tickets. A ticket that is used up, or not for this request, is refused.
func (p *parking) resume(ticket string, bound []byte) (*talk, error) {
	if !isTicket(ticket) {
		return nil, nil //nolint:nilnil // there is nothing to resume, and nothing wrong
	}
	of, ok := p.read(ticket)
	if !ok || !hmac.Equal(of.Bound, bound) || time.Now().Unix() >= of.Expires {
		return nil, errTicket
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.spots[of.ID]
	switch {
	case s == nil && of.Execution != "":
		return nil, &goneError{of.Execution}
	case s == nil:
		return nil, errTicket
	}
	p.remove(of.ID, s)
	return s.talk, nil
}

func isTicket(state string) bool { return strings.HasPrefix(state, ticketPrefix) }

var errTicket = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: it is over, or of another request"}

// goneError is the error for a ticket when its program no longer waits: it was answered
// already, or its time was over, or the gateway has been restarted.
type goneError struct{ execution string }

// Error tells a model how to go on.
func (e *goneError) Error() string {
	return fmt.Sprintf("the program does not wait for this answer any more. Go on with execute_code(code=\"\", resume=%q): calls that were made are not made again.", e.execution)
}

// stub is what a ticket says, to us alone: clients can neither make one nor change it.
type stub struct {
	ID string `json:"i"`
	// Bound is what the client has to come back with, see binding.
	Bound   []byte `json:"b"`
	Expires int64  `json:"e"` // seconds since 1970
	// Execution is the program that waits, "" for none.
	Execution string `json:"x,omitempty"`
}

func (p *parking) sign(s stub) string {
	body := base64.RawURLEncoding.EncodeToString(encode(s))
	return ticketPrefix + body + "." + base64.RawURLEncoding.EncodeToString(p.mac(body))
}

func (p *parking) mac(body string) []byte {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(ticketPrefix + body))
	return mac.Sum(nil)
}

// maxTicket is the largest size of a ticket, in bytes.
const maxTicket = 1 << 10

// read returns what a ticket says, if it is one that we made.
func (p *parking) read(ticket string) (s stub, ok bool) {
	body, sum, found := strings.Cut(strings.TrimPrefix(ticket, ticketPrefix), ".")
	if !found || len(ticket) > maxTicket {
		return stub{}, false
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil || !hmac.Equal(mac, p.mac(body)) {
		return stub{}, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || json.Unmarshal(data, &s) != nil {
		return stub{}, false
	}
	return s, true
}

// remove is called with mu held.
func (p *parking) remove(id string, s *spot) {
	s.expire.Stop()
	delete(p.spots, id)
	if p.count[s.principal]--; p.count[s.principal] == 0 {
		delete(p.count, s.principal)
	}
}

var errNoAnswer = errors.New("the client did not answer")

func (p *parking) expired(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.spots[id]; s != nil {
		p.remove(id, s)
		s.talk.end(errNoAnswer)
	}
}

// close ends all calls that wait, and lets none wait any more.
func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id, s := range p.spots {
		p.remove(id, s)
		s.talk.end(errStopping)
	}
}
