package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sallyport/gateway/upstream/deferred"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

const (
	// maxRounds is how often one call may require input.
	maxRounds = 16
	// emptyRoundWait is the pause before a call is repeated if its result has no input
	// requests, as overloaded servers send; it doubles each time.
	emptyRoundWait = 100 * time.Millisecond
)

// sendRounds sends the request, and repeats it with the responses of the call's peer
// as long as the upstream requires input. It returns the last result.
func (s *Session) sendRounds(ctx context.Context, l *link, r *request) (json.RawMessage, error) {
	if r.method == "" { // nothing to send in this revision
		return json.RawMessage("{}"), nil
	}
	wait := emptyRoundWait
	for range maxRounds {
		raw, err := l.send(ctx, r)
		if err != nil || r.call.Rounds || l.meta == nil {
			return raw, s.deferredError(r, err)
		}
		asked, err := deferred.ParseInput(raw)
		if err != nil {
			return nil, faults{s}.badAnswerError(r.call.Tool.Name, err)
		}
		if asked == nil {
			return raw, nil
		}
		if len(asked.Requests) == 0 {
			if err := sleep.For(ctx, wait); err != nil {
				return nil, err
			}
			wait *= 2
		}
		if err := s.answerInput(ctx, r, asked); err != nil {
			return nil, err
		}
	}
	return nil, s.inputError(r, &deferred.InputError{What: fmt.Sprintf("it still asks after %d rounds", maxRounds)})
}

// answerInput sends the input requests to the peer, and adds the responses to the next request.
func (s *Session) answerInput(ctx context.Context, r *request, asked *deferred.Input) error {
	answers, err := deferred.Answer(ctx, r.call.Peer, asked.Requests)
	if err != nil {
		return s.deferredError(r, err)
	}
	delete(r.extraParams, "inputResponses")
	delete(r.extraParams, "requestState")
	if asked.State != nil {
		r.set("requestState", asked.State)
	}
	if len(answers) == 0 {
		return nil
	}
	all, err := marshal(answers)
	r.set("inputResponses", all)
	return err
}

// deferredError returns the error for the caller of a call that got no result because of its task or the input that it
// requires. Any other error is returned unchanged.
func (s *Session) deferredError(r *request, err error) error {
	if asked, ok := errors.AsType[*deferred.InputError](err); ok {
		return s.inputError(r, asked)
	}
	task, ok := errors.AsType[*deferred.TaskError](err)
	if !ok || (faults{s}).scopeError(err) != nil {
		return err
	}
	e := &tool.Error{Kind: task.Kind, Message: fmt.Sprintf("%s: %s", tool.ID{Upstream: s.settings.ID, Name: r.call.Tool.Name}, task.What), Err: err}
	if task.Text != "" {
		e.Message += ": " + s.redactor.text(task.Text, maxShownAnswer)
	}
	if e.Kind == tool.Upstream {
		e.Hint = "the call may have taken effect"
	}
	return e
}

// inputError is the error of a call to an upstream that requires input and gets none.
func (s *Session) inputError(r *request, asked *deferred.InputError) *tool.Error {
	e := &tool.Error{Kind: tool.Failed, Err: asked.Err, Message: fmt.Sprintf("%s: the upstream requires input (%s)",
		tool.ID{Upstream: s.settings.ID, Name: r.call.Tool.Name}, asked.What)}
	switch {
	case asked.Err != nil:
		e.Message += ": " + s.redactor.describe(asked.Err)
	case r.call.Peer == nil:
		e.Hint = "a program cannot answer; pass arguments that require no input"
	}
	return e
}
