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
	// progressEvery is how long after a frame about a call's progress the next one
	// may follow; of what an upstream says in between, the last is kept.
	progressEvery = 100 * time.Millisecond
	// maxNotification is the longest notification that is looked at, in bytes.
	maxNotification = 64 << 10
	// maxProgressMessage bounds the text in a frame, in bytes.
	maxProgressMessage = 1 << 10
)

// peer is a program as an upstream sees it during one call: it may hear how far
// the call is, and answers no questions.
type peer struct {
	send func(p progress)
	wake chan struct{} // holds one; nil where the program does not listen

	mu     sync.Mutex // guards the rest
	latest json.RawMessage
	asked  string
}

// progress is the progress of a call, for its program.
type progress struct {
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Notify keeps the newest progress for the program. It costs next to nothing
// however often it is called.
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
	p.asked = what
	p.mu.Unlock()
	return nil, &tool.Error{Kind: tool.Denied, Message: "the upstream asks for " + what + ", and a program cannot give it"}
}

// during makes a call and passes on its progress until it has ended. The last of
// it is passed on before during returns.
func (p *peer) during(call func() (tool.Result, error)) (tool.Result, error) {
	if p.wake == nil {
		return call()
	}
	ended := make(chan struct{})
	var pump sync.WaitGroup
	pump.Go(func() { p.pump(ended) })
	defer pump.Wait()
	defer close(ended)
	return call()
}

func (p *peer) pump(ended <-chan struct{}) {
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
			pause.Reset(progressEvery)
		case <-ended:
			p.flush()
			return
		}
	}
}

// flush sends the newest progress that was not sent yet. What is no progress is dropped.
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

// explain adds to an error that the upstream had asked what a program cannot answer.
func (p *peer) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := tool.AsError(err)
	if p.asked == "" || e.Hint != "" {
		return e
	}
	explained := *e
	explained.Hint = fmt.Sprintf("during the call the upstream asked for %s, which a program cannot give; if the tool has parameters for it, set them", p.asked)
	return &explained
}
