package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/tool"
)

// A client of revision 2026-07-28 cannot be asked anything during a call: the
// questions are the call's result, and the client calls again with the answers.
// An upstream of that revision does the same, and its questions go through as
// they are. An older upstream asks in the middle of its call. That call waits
// here, until the client comes back with what it was handed out.

const (
	// ticketPrefix marks a requestState as ours.
	ticketPrefix = "sallyport."
	// maxParked is how many calls may wait for an answer of their client, of
	// one principal; parkedTime is how long.
	maxParked  = 64
	parkedTime = 5 * time.Minute
)

// talk is one call of a modern client, over as many rounds as it takes.
type talk struct {
	client atomic.Pointer[client] // of the round that is under way
	asked  chan *question
	done   chan struct{} // closed when raw and err are there
	raw    json.RawMessage
	err    error
	end    context.CancelCauseFunc
	open   []*question // handed out and not answered
	last   int
}

// question is one that the upstream waits for the answer of.
type question struct {
	key    string
	method string
	params json.RawMessage
	reply  chan json.RawMessage // holds one
}

// Notify implements [tool.Peer].
func (t *talk) Notify(method string, params json.RawMessage) { t.client.Load().Notify(method, params) }

// Ask implements [tool.Peer].
func (t *talk) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := t.client.Load().refuse(method); err != nil {
		return nil, err
	}
	q := &question{method: method, params: orEmpty(params), reply: make(chan json.RawMessage, 1)}
	select {
	case t.asked <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-q.reply:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// talk makes a call for a modern client, or goes on with one that waits.
func (d *Direct) talk(ctx context.Context, c *client, method string, params object, call tool.Call) (json.RawMessage, error) {
	bound := binding(ctx, method, params)
	t, err := d.parked.resume(text1(params["requestState"]), bound)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = d.begin(ctx, c, call)
	} else {
		t.client.Store(c)
		t.answer(params["inputResponses"])
	}
	return d.round(ctx, t, bound)
}

// begin starts a call that outlives the request that it came with.
func (d *Direct) begin(ctx context.Context, c *client, call tool.Call) *talk {
	ctx, end := context.WithCancelCause(tool.Detached(ctx))
	t := &talk{asked: make(chan *question), done: make(chan struct{}), end: end}
	t.client.Store(c)
	call.Peer, call.Rounds = d.asking(t, call), true
	d.work.Go(func() {
		defer close(t.done)
		t.raw, t.err = answer(d.verbs.Call(ctx, call))
		t.raw = d.asked(t.raw, call)
	})
	return t
}

// round waits for what the call comes to, or for its next questions.
func (d *Direct) round(ctx context.Context, t *talk, bound string) (json.RawMessage, error) {
	over, err := t.wait(ctx)
	if over {
		return t.raw, err
	}
	t.more()
	ticket, err := d.parked.park(t, tool.Principal(ctx), bound)
	if err != nil {
		t.end(err)
		<-t.done
		return nil, err
	}
	return t.handOut(ticket), nil
}

// wait waits until the call is over, or there is something to ask.
func (t *talk) wait(ctx context.Context) (over bool, err error) {
	select {
	case <-t.done: // perhaps while its client was thinking
		t.end(nil)
		return true, t.err
	default:
	}
	if len(t.open) > 0 { // not answered: asked again
		return false, nil
	}
	select {
	case <-t.done:
		t.end(nil)
		return true, t.err
	case q := <-t.asked:
		t.hold(q)
		return false, nil
	case <-ctx.Done():
		t.end(context.Cause(ctx))
		<-t.done
		return true, context.Cause(ctx)
	}
}

func (t *talk) hold(q *question) {
	t.last++
	q.key = fmt.Sprint("q", t.last)
	t.open = append(t.open, q)
}

// more takes questions that are asked at the same time.
func (t *talk) more() {
	for {
		select {
		case q := <-t.asked:
			t.hold(q)
		default:
			return
		}
	}
}

// handOut is the result that asks the client.
func (t *talk) handOut(ticket string) json.RawMessage {
	requests := object{}
	for _, q := range t.open {
		requests[q.key] = encode(object{"method": encode(q.method), "params": q.params})
	}
	return encode(object{"resultType": encode("input_required"), "inputRequests": encode(requests), "requestState": encode(ticket)})
}

// answer gives the upstream what the client has answered. What it has not is asked again.
func (t *talk) answer(responses json.RawMessage) {
	var given object
	_ = json.Unmarshal(responses, &given) // none then
	var left []*question
	for _, q := range t.open {
		if reply, ok := given[q.key]; ok {
			q.reply <- reply
		} else {
			left = append(left, q)
		}
	}
	t.open = left
}

// binding is what a client has to come back with besides its ticket: the same
// principal, and the same request.
func binding(ctx context.Context, method string, params object) string {
	same := object{"method": encode(method), "principal": encode(tool.Principal(ctx))}
	for _, name := range []string{"name", "uri", "arguments"} {
		if value, ok := params[name]; ok {
			same[name] = value
		}
	}
	sum := sha256.Sum256(encode(same))
	return string(sum[:])
}

// parking holds the calls that wait for their client.
type parking struct {
	mu     sync.Mutex
	spots  map[string]*spot
	count  map[string]int // by principal
	closed bool
}

type spot struct {
	talk             *talk
	principal, bound string
	expire           *time.Timer
}

func newParking() *parking { return &parking{spots: map[string]*spot{}, count: map[string]int{}} }

// park keeps a call and returns the ticket for it, which is good for once.
func (p *parking) park(t *talk, principal, bound string) (ticket string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errStopping
	}
	if p.count[principal] >= maxParked {
		return "", &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d calls wait for an answer already", maxParked), Hint: "answer one of them first"}
	}
	ticket = ticketPrefix + rand.Text()
	p.count[principal]++
	p.spots[ticket] = &spot{t, principal, bound, time.AfterFunc(parkedTime, func() { p.expired(ticket) })}
	return ticket, nil
}

// resume returns the call that a ticket is for, nil if the state is not one of
// our tickets. A ticket that is used up, or not for this request, is refused.
func (p *parking) resume(ticket, bound string) (*talk, error) {
	if len(ticket) < len(ticketPrefix) || ticket[:len(ticketPrefix)] != ticketPrefix {
		return nil, nil //nolint:nilnil // there is nothing to resume, and nothing wrong
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.spots[ticket]
	if s == nil || s.bound != bound {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: it is over, or of another request"}
	}
	p.remove(ticket, s)
	return s.talk, nil
}

// remove is called with mu held.
func (p *parking) remove(ticket string, s *spot) {
	s.expire.Stop()
	delete(p.spots, ticket)
	if p.count[s.principal]--; p.count[s.principal] == 0 {
		delete(p.count, s.principal)
	}
}

var errNoAnswer = errors.New("the client did not answer")

func (p *parking) expired(ticket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.spots[ticket]; s != nil {
		p.remove(ticket, s)
		s.talk.end(errNoAnswer)
	}
}

// close ends all calls that wait, and lets none wait any more.
func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for ticket, s := range p.spots {
		p.remove(ticket, s)
		s.talk.end(errStopping)
	}
}
