// Package models asks language models for text: OpenAI-compatible servers, Azure
// OpenAI and Anthropic. Its main type is [Endpoint], one model at one address.
//
// What a model refuses to take is learned from its refusals: max_tokens or
// max_completion_tokens, a temperature, usage at the end of a stream. What an
// endpoint says is not trusted: it is bounded, cleaned where it is shown, and the
// key is hidden in it.
package models

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// API is the protocol of an endpoint.
type API string

// The APIs.
const (
	// OpenAI is chat completions, which most servers have.
	OpenAI API = "openai"
	// Azure is chat completions at a deployment of Azure OpenAI.
	Azure API = "azure"
	// Anthropic is its messages.
	Anthropic API = "anthropic"
)

// Settings configure an endpoint.
type Settings struct {
	API API
	// URL is the base of the API, with or without /v1 and the path of the request. "" is that of the provider, for OpenAI and Anthropic.
	URL string
	// Model is the model's name; Azure has a Deployment and an APIVersion instead.
	Model, Deployment, APIVersion string
	// Key is sent with each request, and shown nowhere. Headers are sent in addition; their values are secret too.
	Key     string
	Headers map[string]string
	// Answer bounds an answer, in tokens; 0 is 4096.
	Answer int
	// Temperature is sent if the model takes one; nil sends none.
	Temperature *float64
	// Timeout bounds one answer with its retries; 0 is 3 min. Silence bounds a pause in an answer; 0 is 1 min.
	Timeout, Silence time.Duration
	// Backoff is the first wait before a retry, doubled each time, if the endpoint names none; 0 is 1 s.
	Backoff time.Duration
	Price   Price
}

// Price is the price of a million tokens, in any currency.
type Price struct {
	Input, Cached, Output float64
}

// Of returns the price of a usage.
func (p Price) Of(u Usage) float64 {
	return (float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cmp.Or(p.Cached, p.Input) + float64(u.Output)*p.Output) / 1e6
}

// Usage is what an endpoint reports as billed, in tokens.
type Usage struct {
	// Input is all tokens read, Cached the part that was read from a cache.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output"`
	// Estimated says that the endpoint did not report it: four bytes are taken as a token.
	Estimated bool `json:"estimated,omitempty"`
}

// Tokens returns the tokens that were read and written.
func (u Usage) Tokens() int { return u.Input + u.Output }

// plausible returns the usage without negative numbers.
func (u Usage) plausible() Usage {
	u.Input, u.Output = max(u.Input, 0), max(u.Output, 0)
	u.Cached = min(max(u.Cached, 0), u.Input)
	return u
}

// Plus returns the sum of two usages.
func (u Usage) Plus(more Usage) Usage {
	return Usage{Input: u.Input + more.Input, Cached: u.Cached + more.Cached, Output: u.Output + more.Output, Estimated: u.Estimated || more.Estimated}
}

// Message is a text of a conversation.
type Message struct {
	// Assistant says that the model wrote it.
	Assistant bool
	Text      string
}

// Request asks for the next text of a conversation.
type Request struct {
	System   string
	Messages []Message
	// Progress is called with the size of the answer so far, in bytes; nil for none.
	Progress func(bytes int)
}

// Answer is a model's text.
type Answer struct {
	Text  string
	Usage Usage
	// Model is the model's name as the endpoint reports it, in one line.
	Model string
	// Cut says that the bound of tokens ended it.
	Cut bool
	// Waited is the time between tries, which the endpoint asked for or needed.
	Waited time.Duration
}

// Endpoint is one model at one address. It is safe for concurrent use.
type Endpoint struct {
	s       Settings
	wire    *wire
	dialect dialect

	mu      sync.Mutex
	refused map[string]bool // parameters that the model does not take
}

// dialect is the format of one API.
type dialect interface {
	// request returns the body of a request without the refused parameters.
	request(s Settings, r Request, refused map[string]bool) any
	// event adds an event of a stream to an answer, whole a response in one piece.
	event(data []byte, into *Answer) error
	whole(data []byte, into *Answer) error
}

// Open checks the settings and returns the endpoint. It sends nothing.
func Open(s Settings) (*Endpoint, error) {
	s.Answer, s.Timeout, s.Silence = cmp.Or(s.Answer, 4096), cmp.Or(s.Timeout, 3*time.Minute), cmp.Or(s.Silence, time.Minute)
	address, err := s.address()
	if err != nil {
		return nil, err
	}
	e := &Endpoint{s: s, wire: newWire(address, s), dialect: chat{}, refused: map[string]bool{}}
	if s.API == Anthropic {
		e.dialect = messages{}
	}
	return e, nil
}

// Close closes idle connections.
func (e *Endpoint) Close() { e.wire.http.CloseIdleConnections() }

// Host is the endpoint's host, with its port if it has one.
func (e *Endpoint) Host() string { return e.wire.host }

// Name is the name of the model in requests.
func (e *Endpoint) Name() string { return cmp.Or(e.s.Model, e.s.Deployment) }

// Price is the price in the settings.
func (e *Endpoint) Price() Price { return e.s.Price }

// Ask returns the model's next text. Its error is a *tool.Error, or wraps the context's.
func (e *Endpoint) Ask(ctx context.Context, r Request) (Answer, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, e.s.Timeout, &tool.Error{
		Kind: tool.Timeout, Message: fmt.Sprintf("%s did not finish its answer within %s", e.wire.host, e.s.Timeout), Hint: "the model's timeout is in the settings",
	})
	defer cancel()
	var waited time.Duration
	for {
		refused := e.refusals()
		var a Answer
		paused, err := e.wire.ask(bounded, e.dialect.request(e.s, r, refused), &a, e.dialect, r.Progress)
		waited += paused
		if err != nil && e.learn(err, refused) {
			continue
		}
		if err != nil {
			return Answer{}, e.ended(ctx, bounded, err)
		}
		a.Waited, a.Text, a.Model = waited, e.wire.hide(a.Text), sanitize.Line(e.wire.hide(a.Model), maxName)
		if a.Usage = a.Usage.plausible(); a.Usage == (Usage{}) {
			a.Usage = Estimate(r, a)
		}
		return a, nil
	}
}

// ended returns the cause of the deadline instead of the context's own error.
func (e *Endpoint) ended(ctx, bounded context.Context, err error) error {
	if ctx.Err() == nil && bounded.Err() != nil {
		return context.Cause(bounded)
	}
	return err
}

// Estimate returns the usage of an answer that no endpoint counted: four bytes are taken as a token.
func Estimate(r Request, a Answer) Usage {
	n := len(r.System)
	for _, m := range r.Messages {
		n += len(m.Text)
	}
	return Usage{Input: n/4 + 1, Output: len(a.Text)/4 + 1, Estimated: true}
}

func (e *Endpoint) refusals() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]bool{}
	for name := range e.refused {
		all[name] = true
	}
	return all
}

// optional are the parameters that a model may refuse, in the order in which they are looked for in a refusal. A
// refusal of max_tokens names max_completion_tokens too, as what is right.
var optional = []string{"temperature", "stream_options", "max_tokens", "max_completion_tokens"}

// learn reports whether a refusal names a parameter that was sent and can be omitted. It is then omitted in all later requests.
func (e *Endpoint) learn(err error, sent map[string]bool) bool {
	refusal, ok := err.(*refusedError) //nolint:errorlint // the wire wraps none
	if !ok {
		return false
	}
	for _, name := range optional {
		if sent[name] || !refusal.names(name) || name == "max_completion_tokens" && !sent["max_tokens"] {
			continue
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.refused[name] = true
		return true
	}
	return false
}

// refusedError is a response with status 400 or 422.
type refusedError struct {
	shown       *tool.Error
	param, said string
}

// Error implements error.
func (r *refusedError) Error() string { return r.shown.Error() }

// Unwrap returns the error for the caller.
func (r *refusedError) Unwrap() error { return r.shown }

// names reports whether the refusal is about a parameter: its own field says so, or its text does with a word of refusal.
func (r *refusedError) names(name string) bool {
	if r.param != "" {
		return r.param == name
	}
	said := strings.ToLower(r.said)
	return strings.Contains(said, name) && (strings.Contains(said, "support") || strings.Contains(said, "unknown") ||
		strings.Contains(said, "unrecognized") || strings.Contains(said, "not permitted") || strings.Contains(said, "extra"))
}

// setKey sets the header of the key.
func (s Settings) setKey(h http.Header) {
	switch {
	case s.API == Anthropic:
		h.Set("Anthropic-Version", "2023-06-01")
		if s.Key != "" {
			h.Set("X-Api-Key", s.Key)
		}
	case s.Key == "":
	case s.API == Azure:
		h.Set("Api-Key", s.Key)
	default:
		h.Set("Authorization", "Bearer "+s.Key)
	}
	for name, value := range s.Headers {
		h.Set(name, value)
	}
}
