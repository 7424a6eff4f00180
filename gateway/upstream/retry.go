package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"sallyport/internal/tool"
)

// repeatable reports whether a call with unknown outcome may be sent again: a method
// that only reads, or a tool whose current definition declares it read-only or
// idempotent.
func (s *Session) repeatable(id tool.ID) bool {
	switch id.Method() {
	case "tools/call":
	case tool.ReadResource, tool.GetPrompt, tool.Complete, tool.GetTask:
		return true
	default:
		return false
	}
	s.mu.Lock()
	t, ok := s.catalog.tool(id.Name)
	s.mu.Unlock()
	return ok && (isTrue(t.Annotations.ReadOnly) || isTrue(t.Annotations.Idempotent))
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

// truncatedText is the text of the SDK's error for a stream that ended before the response; it does not export the error.
const truncatedText = "request terminated without response"

// lostConnection reports whether a call failed because its connection broke: without a
// response, and not by its time limit or by us.
func (l *link) lostConnection(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil, rpcError(err) != nil, isToolError(err), needsLogin(err):
		return false
	case errors.Is(err, errClosed), errors.Is(err, errFlood), isTooLarge(err):
		return false // a retry would fail too
	}
	return !l.alive() || err.Error() == truncatedText
}

// repeat sends a call once more, over a new connection if the old one was lost,
// within the time limit of the first attempt. If it cannot connect, it returns lost.
func (s *Session) repeat(ctx context.Context, call tool.Call, lost error) (json.RawMessage, error) {
	l, err := s.liveLink(ctx)
	if err != nil {
		return nil, lost
	}
	r, err := s.newRequest(ctx, l, call)
	if err != nil {
		return nil, err
	}
	if !isUnacknowledged(lost) && !s.repeatable(call.Tool) { // by the current definition
		return nil, lost
	}
	raw, err := s.sendRounds(ctx, l, r)
	if err == nil {
		l.served.Store(true)
	}
	return raw, err
}

// unacknowledgedError is the error of a request to a session that the server no longer knows,
// so that it did not process the request. Sending it again in a new session is
// safe, and what the protocol requires.
type unacknowledgedError struct{ error }

func (u *unacknowledgedError) Unwrap() error { return u.error }

// undeliveredError is the error of a request that was not sent: the connection failed.
type undeliveredError struct{ error }

func (u *undeliveredError) Unwrap() error { return u.error }

// notBegun reports whether a call that failed with err was certainly not started.
func notBegun(err error) bool {
	_, ok := errors.AsType[*undeliveredError](err)
	return ok || isUnacknowledged(err)
}

func isUnacknowledged(err error) bool {
	_, ok := errors.AsType[*unacknowledgedError](err)
	return ok
}

func isToolError(err error) bool {
	_, ok := errors.AsType[*tool.Error](err)
	return ok
}
