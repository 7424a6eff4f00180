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
	case tool.ReadResource, tool.GetPrompt, tool.Complete:
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

// cutShort is the text of the SDK's error for a stream that ended before the response; it does not export the error.
const cutShort = "request terminated without response"

// wasLost reports whether a call failed because its connection broke: without a
// response, and not by its time limit or by us.
func (l *link) wasLost(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil, answered(err) != nil, isToolError(err), needsLogin(err):
		return false
	case errors.Is(err, errClosed), errors.Is(err, errFlood), isTooLong(err):
		return false // a retry would fail too
	}
	return !l.alive() || err.Error() == cutShort
}

// repeat sends a call once more, over a new connection if the old one was lost,
// within the time limit of the first attempt. If it cannot connect, it returns lost.
func (s *Session) repeat(ctx context.Context, call tool.Call, lost error) (json.RawMessage, error) {
	l, err := s.connected(ctx)
	if err != nil {
		return nil, lost
	}
	r, err := s.requestOf(ctx, l, call)
	if err != nil {
		return nil, err
	}
	if !isUnheard(lost) && !s.repeatable(call.Tool) { // by the current definition
		return nil, lost
	}
	raw, err := s.converse(ctx, l, r)
	if err == nil {
		l.served.Store(true)
	}
	return raw, err
}

// unheard is the error of a request to a session that the server no longer knows,
// so that it did not process the request. Sending it again in a new session is
// safe, and what the protocol requires.
type unheard struct{ error }

func (u *unheard) Unwrap() error { return u.error }

// undelivered is the error of a request that was not sent: the connection failed.
type undelivered struct{ error }

func (u *undelivered) Unwrap() error { return u.error }

// notBegun reports whether a call that failed with err was certainly not started.
func notBegun(err error) bool {
	_, ok := errors.AsType[*undelivered](err)
	return ok || isUnheard(err)
}

func isUnheard(err error) bool {
	_, ok := errors.AsType[*unheard](err)
	return ok
}

func isToolError(err error) bool {
	_, ok := errors.AsType[*tool.Error](err)
	return ok
}
