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

// A ticket is the requestState that a client gets for a pending call. It is signed, expires, and can be used once, by the
// same principal in the same session for the same request. The call itself is kept here, not in the ticket.

const (
	// ticketPrefix marks a requestState as one of the gateway.
	ticketPrefix = "sallyport."
	// maxParked is how many calls of one principal may wait for their client;
	// parkedTime is how long.
	maxParked  = 64
	parkedTime = 5 * time.Minute
	// ticketTime is how long a ticket tells how to resume a program whose call is no longer pending.
	ticketTime = 24 * time.Hour
)

// parking holds the calls that wait for their client. It is safe for concurrent use.
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

// park stores a call and returns its ticket, which can be used once.
func (p *parking) park(t *talk, principal string, bound []byte) (ticket string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errStopping
	}
	if p.count[principal] >= maxParked {
		return "", &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d calls already wait for an answer", maxParked), Hint: "answer one of them first"}
	}
	id := rand.Text()
	p.count[principal]++
	p.spots[id] = &spot{t, principal, time.AfterFunc(parkedTime, func() { p.expired(id) })}
	return p.sign(stub{ID: id, Bound: bound, Expires: time.Now().Add(ticketTime).Unix(), Execution: t.execution()}), nil
}

// resume returns the call that a ticket is for and removes it, nil if the state is not a
// ticket. A ticket that was used, has expired or is for another request is an error.
func (p *parking) resume(ticket string, bound []byte) (*talk, error) {
	if !isTicket(ticket) {
		return nil, nil //nolint:nilnil // a new call, which is not an error
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

var errTicket = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: used, expired, or of another request"}

// goneError is the error for a ticket whose program no longer waits: the ticket was used or
// expired, or the gateway was restarted.
type goneError struct{ execution string }

// Error tells a model how to resume the program.
func (e *goneError) Error() string {
	return fmt.Sprintf("the program no longer waits for this answer. Resume it with execute_code(code=\"\", resume=%q): completed calls are not repeated.", e.execution)
}

// stub is the signed content of a ticket.
type stub struct {
	ID string `json:"i"`
	// Bound is the digest of the request and its caller that must match.
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

// read returns the content of a ticket, if its signature is valid.
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

// close cancels all pending calls and rejects further ones.
func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id, s := range p.spots {
		p.remove(id, s)
		s.talk.end(errStopping)
	}
}
