package deferred

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/tool"
)

// maxAnswers is how many input requests one task may send.
const maxAnswers = 64

// relatedTask is the member of _meta that names the task of a result.
const relatedTask = "io.modelcontextprotocol/related-task"

// Refusal is the error response of an upstream to a request about a task.
type Refusal struct {
	Text string
	Err  error
}

func (e *Refusal) Error() string { return e.Text }
func (e *Refusal) Unwrap() error { return e.Err }

// Waiter waits for the result of a task.
type Waiter struct {
	// Modern selects the extension's form.
	Modern bool
	// Request sends a request about the task, with inputResponses unless they are nil, and returns the raw result. Its error is a
	// *Refusal if the upstream has refused it.
	Request func(ctx context.Context, method string, inputResponses json.RawMessage) (json.RawMessage, error)
	// Peer handles the input requests of the task in the extension's form, nil for none. In the other form they come as requests.
	Peer tool.Peer
	// Changed gets a value when the task may have another state, nil never.
	Changed <-chan struct{}
	// Started is called with the id of the task before the first poll, Status with each new message. Both may be nil.
	Started, Status func(text string)
	// Abandon is called with the id of a task that may still run when Wait returns an error.
	Abandon func(id string)
}

// Wait returns the result of the call that became the task t. It polls until the task has ended or ctx ends. The error is ctx's,
// that of Request, a *TaskError or an *InputError.
func (w *Waiter) Wait(ctx context.Context, t *Task) (raw json.RawMessage, err error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &poller{Waiter: w, id: t.ID, answered: map[string]bool{}}
	defer func() {
		cancel()
		p.asking.Wait()
		if err != nil && !p.over {
			w.Abandon(p.id)
		}
	}()
	if w.Started != nil {
		w.Started(t.ID)
	}
	if w.Modern && t.Status != "working" {
		t.Status = "" // the result of a call has a task's status only, and not what belongs to it
	}
	for {
		if t.Status == "" {
			if t, err = p.get(ctx); err != nil {
				return nil, err
			}
		}
		if raw, err := p.handle(ctx, t); raw != nil || err != nil {
			return raw, err
		}
		if raw, err := p.pause(ctx, t.interval()); raw != nil || err != nil {
			return raw, err
		}
		t = &Task{}
	}
}

// poller is one wait.
type poller struct {
	*Waiter
	id       string
	message  string          // the last one
	over     bool            // the task has ended
	answered map[string]bool // the keys of the input requests
	// answer gets the response to tasks/result; nil if none is awaited.
	answer chan response
	asking sync.WaitGroup
}

type response struct {
	raw json.RawMessage
	err error
}

func (r response) refused() *Refusal {
	refusal, _ := errors.AsType[*Refusal](r.err)
	return refusal
}

// get polls the task.
func (p *poller) get(ctx context.Context) (*Task, error) {
	raw, err := p.Request(ctx, "tasks/get", nil)
	if refusal := (response{err: err}).refused(); refusal != nil {
		return nil, &TaskError{Kind: tool.Upstream, What: "the upstream lost the task", Text: refusal.Text, Err: err}
	}
	if err != nil {
		return nil, err
	}
	t, err := parse(raw)
	switch {
	case err != nil:
		return nil, err
	case t.ID != p.id:
		return nil, &TaskError{Kind: tool.Upstream, What: "the upstream sent the state of another task"}
	case t.Status == "":
		return nil, &TaskError{Kind: tool.Upstream, What: "the upstream sent a task without a status"}
	}
	return t, nil
}

// handle handles a state of the task. It returns the result if the task has ended, nil if it continues.
func (p *poller) handle(ctx context.Context, t *Task) (json.RawMessage, error) {
	if t.Message != p.message && p.Status != nil {
		p.Status(t.Message)
	}
	p.message = t.Message
	switch t.Status {
	case "working":
		return nil, nil
	case "input_required":
		if !p.Modern {
			p.ask(ctx) // its requests come before the response
			return nil, nil
		}
		return nil, p.answerInput(ctx, t)
	case "completed", "failed":
		p.over = true
		if p.Modern {
			return t.outcome()
		}
		return p.result(ctx, t)
	case "cancelled":
		p.over = true
		return nil, &TaskError{Kind: tool.Failed, What: "the upstream canceled the task", Text: t.Message}
	}
	return nil, &TaskError{Kind: tool.Upstream, What: "the upstream sent an unknown status of a task", Text: t.Status}
}

// outcome returns the result in an ended task.
func (t *Task) outcome() (json.RawMessage, error) {
	if t.Status == "completed" {
		return resultOf(t.Result)
	}
	text := t.Error.Message
	if text == "" {
		text = t.Message
	}
	return nil, &TaskError{Kind: tool.Failed, What: "the task failed", Text: text}
}

// ask requests the result, which the upstream sends when the task has ended, unless that is awaited already.
func (p *poller) ask(ctx context.Context) {
	if p.answer != nil {
		return
	}
	answer := make(chan response, 1)
	p.answer = answer
	p.asking.Go(func() {
		raw, err := p.Request(ctx, "tasks/result", nil)
		answer <- response{raw, err}
	})
}

// result returns the result of an ended task.
func (p *poller) result(ctx context.Context, t *Task) (json.RawMessage, error) {
	early := p.answer != nil
	p.ask(ctx)
	got := <-p.answer
	if early && got.refused() != nil { // there was none yet
		p.answer = nil
		p.ask(ctx)
		got = <-p.answer
	}
	refusal := got.refused()
	switch {
	case refusal == nil && got.err == nil:
		return resultOf(got.raw)
	case refusal == nil:
		return nil, got.err
	case t.Status == "completed":
		return nil, &TaskError{Kind: tool.Upstream, What: "the task has no result", Text: refusal.Text, Err: got.err}
	case t.Message == "":
		return nil, refusal.Err // the error of the call
	}
	return nil, &TaskError{Kind: tool.Failed, What: "the task failed", Text: t.Message, Err: got.err}
}

// resultOf returns a result without the id of its task, which is the upstream's.
func resultOf(raw json.RawMessage) (json.RawMessage, error) {
	if !isObject(raw) {
		return nil, &TaskError{Kind: tool.Upstream, What: "the task has no result"}
	}
	if !bytes.Contains(raw, []byte(relatedTask)) {
		return raw, nil
	}
	fields := members(raw)
	meta := members(fields["_meta"])
	if meta[relatedTask] == nil {
		return raw, nil
	}
	delete(meta, relatedTask)
	if len(meta) == 0 {
		delete(fields, "_meta")
	} else {
		fields["_meta"], _ = json.Marshal(meta) // cannot fail: its parts are valid
	}
	return json.Marshal(fields)
}

// pause waits for the next poll. It returns the result if it comes before.
func (p *poller) pause(ctx context.Context, d time.Duration) (json.RawMessage, error) {
	next, begin := time.NewTimer(d), time.Now()
	defer next.Stop()
	for {
		select {
		case <-next.C:
			return nil, nil
		case <-p.Changed:
			next.Reset(max(0, minPoll-time.Since(begin)))
		case <-ctx.Done():
			return nil, ctx.Err()
		case got := <-p.answer:
			p.answer = nil
			if got.refused() != nil {
				continue // it is asked for again
			}
			if got.err != nil {
				return nil, got.err
			}
			p.over = true
			return resultOf(got.raw)
		}
	}
}

// answerInput sends the responses of the peer to those input requests that were not answered yet.
func (p *poller) answerInput(ctx context.Context, t *Task) error {
	for key := range t.Input {
		if p.answered[key] {
			delete(t.Input, key)
		}
		p.answered[key] = true
	}
	if len(t.Input) == 0 {
		return nil
	}
	if len(p.answered) > maxAnswers {
		return &InputError{What: fmt.Sprintf("it asks more than %d questions", maxAnswers)}
	}
	answers, err := Answer(ctx, p.Peer, t.Input)
	if err != nil {
		return err
	}
	said, _ := json.Marshal(answers) // cannot fail: its parts are valid
	_, err = p.Request(ctx, "tasks/update", said)
	if refusal := (response{err: err}).refused(); refusal != nil {
		return &TaskError{Kind: tool.Upstream, What: "the upstream refused the input for the task", Text: refusal.Text, Err: err}
	}
	return err
}
