package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/tool"
)

const (
	// progressInterval is the minimum interval between progress frames of a call. Of the
	// notifications in between, only the last is sent.
	progressInterval = 100 * time.Millisecond
	// maxNotification is the maximum size of a notification in bytes; longer ones are dropped.
	maxNotification = 64 << 10
	// maxProgressMessage bounds the text in a frame, in bytes.
	maxProgressMessage = 1 << 10
)

// peer represents a program to the upstream during one call: it receives progress if
// the program asked for it, and refuses all server requests.
type peer struct {
	send func(p progress)
	wake chan struct{} // capacity 1; nil if the program did not ask for progress

	mu      sync.Mutex // guards the rest
	latest  json.RawMessage
	refused string
}

// progress is the progress of a call, for its program.
type progress struct {
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Notify stores the latest progress for the program. It is cheap and may be called at
// any rate.
func (p *peer) Notify(method string, params json.RawMessage) {
	if p.wake == nil || method != "notifications/progress" || len(params) > maxNotification {
		return
	}
	p.mu.Lock()
	p.latest = params
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Ask refuses: a program has no user.
func (p *peer) Ask(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	what := "something"
	switch method {
	case "elicitation/create":
		what = "a person's answer"
	case "sampling/createMessage":
		what = "a model's answer"
	case "roots/list":
		what = "the client's folders"
	}
	p.mu.Lock()
	p.refused = what
	p.mu.Unlock()
	return nil, &tool.Error{Kind: tool.Denied, Message: "the upstream asks for " + what + ", and a program cannot give it"}
}

// callWithProgress makes a call and forwards its progress until the call has ended. The last
// progress is sent before during returns.
func (p *peer) callWithProgress(call func() (tool.Result, error)) (tool.Result, error) {
	if p.wake == nil {
		return call()
	}
	ended := make(chan struct{})
	var pump sync.WaitGroup
	pump.Go(func() { p.forwardProgress(ended) })
	defer pump.Wait()
	defer close(ended)
	return call()
}

func (p *peer) forwardProgress(ended <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ended:
			p.flush()
			return
		}
		select {
		case <-p.wake:
			p.flush()
			pause.Reset(progressInterval)
		case <-ended:
			p.flush()
			return
		}
	}
}

// flush sends the latest progress if it was not sent yet. Invalid progress is dropped.
func (p *peer) flush() {
	p.mu.Lock()
	params := p.latest
	p.latest = nil
	p.mu.Unlock()
	var told progress
	if params == nil || json.Unmarshal(params, &told) != nil {
		return
	}
	told.Message = cutBytes(told.Message, maxProgressMessage)
	p.send(told)
}

// explain adds a hint to an error if the upstream sent a request that a program cannot answer.
func (p *peer) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := tool.AsError(err)
	if p.refused == "" || e.Hint != "" {
		return e
	}
	explained := *e
	explained.Hint = fmt.Sprintf("during the call the upstream asked for %s, which a program cannot give; if the tool has parameters for it, set them", p.refused)
	return &explained
}
