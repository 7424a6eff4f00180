package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

const (
	// maxRounds is how often one call may require input.
	maxRounds = 16
	// maxQuestions is the number of input requests in one result.
	maxQuestions = 16
	// emptyRoundWait is the pause before a call is repeated whose result has no input
	// requests, as overloaded servers send; it doubles each time.
	emptyRoundWait = 100 * time.Millisecond
)

var (
	errUnknownType  = errors.New("unknown resultType")
	errInvalidInput = errors.New("invalid inputRequests")
)

// inputRequired is a result that requests input (MCP 2026-07-28).
type inputRequired struct {
	Requests map[string]json.RawMessage `json:"inputRequests"`
	State    json.RawMessage            `json:"requestState"`
}

// parseInputRequired returns the input that a result requires, nil if it is complete.
func parseInputRequired(raw json.RawMessage) (*inputRequired, error) {
	if bytes.Contains(raw, []byte(`"resultType":"complete"`)) && !bytes.Contains(raw, []byte("input_required")) {
		return nil, nil // the common case
	}
	var asked struct {
		Type json.RawMessage `json:"resultType"`
	}
	_ = json.Unmarshal(raw, &asked) // an invalid result is detected later
	switch kind := text(asked.Type); kind {
	case "", "complete":
		return nil, nil
	case "input_required":
	default:
		return nil, errUnknownType
	}
	var required inputRequired
	if json.Unmarshal(raw, &required) != nil {
		return nil, errInvalidInput
	}
	return &required, nil
}

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
			return raw, err
		}
		asked, err := parseInputRequired(raw)
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
	return nil, s.inputError(r, fmt.Sprintf("it still asks after %d rounds", maxRounds), nil)
}

// answerInput sends the input requests to the peer, one after the other, and adds the responses to the next request.
func (s *Session) answerInput(ctx context.Context, r *request, asked *inputRequired) error {
	if len(asked.Requests) > maxQuestions {
		return s.inputError(r, fmt.Sprintf("it asks %d questions at once", len(asked.Requests)), nil)
	}
	answers := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(asked.Requests)) {
		question := members(asked.Requests[key])
		method := text(question["method"])
		if !isPeerRequest(method) {
			return s.inputError(r, "it asks for "+sanitize.Line(fmt.Sprintf("%q", method), 80), nil)
		}
		if r.call.Peer == nil {
			return s.inputError(r, "it asks for "+method, nil)
		}
		said, err := askPeer(ctx, r.call.Peer, method, question["params"])
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return s.inputError(r, "it asks for "+method, err)
		}
		answers[key] = said
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

// inputError is the error of a call to an upstream that requires input and gets none.
func (s *Session) inputError(r *request, what string, err error) *tool.Error {
	e := &tool.Error{Kind: tool.Failed, Err: err, Message: fmt.Sprintf("%s: the upstream requires input (%s)",
		tool.ID{Upstream: s.settings.ID, Name: r.call.Tool.Name}, what)}
	switch {
	case err != nil:
		e.Message += ": " + s.redactor.describe(err)
	case r.call.Peer == nil:
		e.Hint = "a program cannot answer; pass arguments that require no input"
	}
	return e
}
