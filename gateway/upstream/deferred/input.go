// Package deferred handles the results of tool calls that are not complete: one that requires input (MCP 2026-07-28), and a
// task: a [Waiter] waits for its result. All results are those of an upstream, and untrusted.
package deferred

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// maxQuestions is the number of input requests in one result.
const maxQuestions = 16

var (
	errUnknownType  = errors.New("unknown resultType")
	errInvalidInput = errors.New("invalid inputRequests")
)

// Input is a result that requires input.
type Input struct {
	Requests map[string]json.RawMessage `json:"inputRequests"`
	State    json.RawMessage            `json:"requestState"`
}

// ParseInput returns the input that a result requires, nil if it is complete.
func ParseInput(raw json.RawMessage) (*Input, error) {
	if bytes.Contains(raw, []byte(`"resultType":"complete"`)) && !bytes.Contains(raw, []byte("input_required")) {
		return nil, nil // the common case
	}
	switch typeOf(raw) {
	case "", "complete":
		return nil, nil
	case "input_required":
	default:
		return nil, errUnknownType
	}
	var required Input
	if json.Unmarshal(raw, &required) != nil {
		return nil, errInvalidInput
	}
	return &required, nil
}

// typeOf returns the resultType, "" if it is no string. An invalid result is detected later.
func typeOf(raw json.RawMessage) (kind string) {
	var result struct {
		Type json.RawMessage `json:"resultType"`
	}
	_ = json.Unmarshal(raw, &result)
	_ = json.Unmarshal(result.Type, &kind)
	return kind
}

// InputError is the error of a call that requires input and gets none.
type InputError struct {
	What string
	// Err is the peer's; nil if it was not asked.
	Err error
}

func (e *InputError) Error() string { return e.What }
func (e *InputError) Unwrap() error { return e.Err }

// Answer sends the input requests to the peer, which may be nil, one after the other, and returns the responses. Its error is
// ctx's or an *InputError.
func Answer(ctx context.Context, peer tool.Peer, requests map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(requests) > maxQuestions {
		return nil, &InputError{What: fmt.Sprintf("it asks %d questions at once", len(requests))}
	}
	answers := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		var question struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		_ = json.Unmarshal(requests[key], &question) // an invalid one has no method
		if !IsPeerRequest(question.Method) {
			return nil, &InputError{What: "it asks for " + sanitize.Line(fmt.Sprintf("%q", question.Method), 80)}
		}
		if peer == nil {
			return nil, &InputError{What: "it asks for " + question.Method}
		}
		said, err := AskPeer(ctx, peer, question.Method, question.Params)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, &InputError{What: "it asks for " + question.Method, Err: err}
		}
		answers[key] = said
	}
	return answers, nil
}

// IsPeerRequest reports whether a method of an upstream's request is for the peer of a call.
func IsPeerRequest(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// AskPeer sends a request to the peer and checks that the result is a JSON object.
func AskPeer(ctx context.Context, peer tool.Peer, method string, params json.RawMessage) (json.RawMessage, error) {
	said, err := peer.Ask(ctx, method, params)
	if err == nil && (!isObject(said) || !json.Valid(said)) {
		err = errors.New("the answer must be a JSON object")
	}
	return said, err
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) > 0 && trimmed[0] == '{'
}
