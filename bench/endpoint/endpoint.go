// Package endpoint has models behind HTTP work on tasks. It speaks what
// OpenAI-compatible servers do, and Anthropic's messages.
//
// An [Endpoint] is one model at one address. Each task is a [Conversation] of its
// own, whose requests are made again from the transcript, each one beginning as the
// one before it ended, so that an endpoint's cache finds what it has read already.
// What the endpoint says is not trusted: it is bounded, and cleaned where it is shown.
package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Settings say which model is asked, and where.
type Settings struct {
	// URL is the API's base, as people write it: with or without /v1, and with or without the path of the request.
	URL string
	// API is the API of the endpoint; "" means the result of [APIOf] for the URL.
	API API
	// Key is sent with each request, if there is one, and shown nowhere.
	Key string
	// Model is the model's name there; "" is the only one.
	Model string
	// Answer bounds an answer, in tokens, where the API wants a bound; 0 is 8192.
	Answer int
	// Backoff is the first wait before another try, doubled each time, where the endpoint names none; 0 is 1 s.
	Backoff time.Duration
	// Listing bounds how long the endpoint may take to say which models it has; 0 is 15 s.
	Listing time.Duration
}

// Endpoint is a model at an address.
type Endpoint struct {
	wire    *wire
	api     API
	model   string
	dialect dialect
}

// dialect is the format of one API.
type dialect interface {
	// request is the body that asks for the next turn; said has one for each turn that there was.
	request(model string, t *tokencount.Transcript, said []turn) ([]byte, error)
	// answer reads the turn number at. Its error is [unreadable] where that is no answer of the API.
	answer(data []byte, at int) (reply, error)
}

// turn is a turn in the endpoint's own format, in which it is sent back, and the ids of its calls.
type turn struct {
	raw json.RawMessage
	ids []string
}

// reply is an answer.
type reply struct {
	turn
	move  agent.Move
	model string
}

// Open finds the model. It asks the endpoint only where no name is given.
func Open(ctx context.Context, s Settings) (*Endpoint, error) {
	if s.API == "" {
		s.API = APIOf(s.URL)
	}
	where, err := locate(s.URL, s.API)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{wire: newWire(where, s), api: s.API, model: s.Model}
	switch s.API {
	case OpenAI:
		e.dialect = openAI{}
	case Anthropic:
		e.dialect = anthropic{tokens: cmp.Or(s.Answer, 8192)}
	default:
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown API %.40q", string(s.API)), Hint: "use openai or anthropic"}
	}
	if e.model == "" {
		e.model, err = e.wire.onlyModel(ctx)
	}
	return e, err
}

// Close lets connections go.
func (e *Endpoint) Close() { e.wire.http.CloseIdleConnections() }

// API is how the endpoint is spoken with.
func (e *Endpoint) API() API { return e.api }

// Host is the endpoint's host, with its port.
func (e *Endpoint) Host() string { return e.wire.Host }

// Model is the name that the model is asked for by.
func (e *Endpoint) Model() string { return e.model }

// Hide puts [key] in the place of the key, for what the endpoint's model says is shown as well.
func (e *Endpoint) Hide(text string) string { return e.wire.hide(text) }

// Begin begins a task.
func (e *Endpoint) Begin() *Conversation { return &Conversation{endpoint: e} }

// Conversation is a model at work on one task.
type Conversation struct {
	endpoint *Endpoint
	history  []turn
	// Served is the model's name as the last answer has it, in one line.
	Served string
	// Turns is how many answers were billed, those among them that were cut.
	Turns int
	// Fault is the error of the last try, nil if it was answered.
	Fault *tool.Error
	// Used is what was billed for all answers, including unusable ones.
	Used agent.Usage
	// Waited is how long the endpoint asked to wait, or was unable to answer.
	Waited time.Duration
}

// Next asks for the next turn. Its error is a [tool.Error] with what would be right, or wraps the context's.
func (c *Conversation) Next(ctx context.Context, t *tokencount.Transcript) (agent.Move, error) {
	if len(c.history) != len(t.Turns) {
		return agent.Move{}, fmt.Errorf("ask model: %d turns in the transcript, and %d were asked for", len(t.Turns), len(c.history))
	}
	body, err := c.endpoint.dialect.request(c.endpoint.model, t, c.history)
	if err != nil {
		return agent.Move{}, fmt.Errorf("ask model: %w", err)
	}
	data, waited, err := c.endpoint.wire.ask(ctx, body)
	c.Waited += waited
	if err != nil {
		c.Fault, _ = errors.AsType[*tool.Error](err)
		return agent.Move{}, err
	}
	r, err := c.endpoint.dialect.answer(data, len(t.Turns))
	missing, strange := errors.AsType[unreadable](err)
	if strange {
		err = c.endpoint.wire.unexpectedResponse(data, missing)
	}
	if !strange || r.move.Usage != (agent.Usage{}) {
		c.Turns++
	}
	if r.model != "" {
		c.Served = sanitize.Line(c.endpoint.Hide(r.model), maxName)
	}
	c.Used = sum(c.Used, r.move.Usage)
	c.history = append(c.history, r.turn)
	return r.move, err
}

// toolNamePattern matches tool names that all APIs accept.
var toolNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tools are all that were defined so far: those of the first turn, and behind them what results have shown.
func tools(t *tokencount.Transcript) ([]tokencount.Definition, error) {
	var all []tokencount.Definition
	seen := map[string]bool{}
	add := func(some []tokencount.Definition) {
		for _, d := range some {
			if !seen[d.Name] {
				seen[d.Name] = true
				d.InputSchema = Schema(d.InputSchema)
				all = append(all, d)
			}
		}
	}
	add(t.Definitions)
	for _, turn := range t.Turns {
		for _, r := range turn.Results {
			add(r.Shows)
		}
	}
	for _, d := range all {
		if !toolNamePattern.MatchString(d.Name) {
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("no endpoint takes a tool by the name of %.80q", d.Name), Hint: "letters, digits, _ and -, at most 64 of them"}
		}
	}
	return all, nil
}

func sum(a, b agent.Usage) agent.Usage {
	return agent.Usage{Input: a.Input + b.Input, Cached: a.Cached + b.Cached, Stored: a.Stored + b.Stored, Output: a.Output + b.Output}
}

// callID returns an id for the next call: the endpoint's, or a generated one if that is missing or a duplicate.
func (t *turn) callID(id string, at int) string {
	if id == "" || slices.Contains(t.ids, id) {
		id = generatedID(at, len(t.ids))
	}
	t.ids = append(t.ids, id)
	return id
}

// generatedID returns an id for a call without a usable one. Some endpoints accept only nine letters and digits.
func generatedID(turn, call int) string { return fmt.Sprintf("t%04dc%03d", turn%10000, call%1000) }
