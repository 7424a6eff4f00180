package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"sallyport/internal/tool"
)

// repeatable reports whether a call may be sent again when it is not known what
// became of it: only if the tool's definition, as it is now, says that a second
// run does no harm. What it does not say is no. Reading is harmless by itself.
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

// cutShort is what the SDK makes of a stream that ended before the answer; it does not export it.
const cutShort = "request terminated without response"

// wasLost reports whether a call failed because its connection broke: it was
// neither answered, nor ended by its time limit, nor by us.
func (l *link) wasLost(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil, answered(err) != nil, isToolError(err), needsLogin(err):
		return false
	case errors.Is(err, errClosed), errors.Is(err, errFlood), isTooLong(err):
		return false // it would come to the same
	}
	return !l.alive() || err.Error() == cutShort
}

// repeat sends a call once more, over a new connection if the old one is gone,
// within the time of the first try. If there is none to be had, lost stays the error.
func (s *Session) repeat(ctx context.Context, call tool.Call, lost error) (json.RawMessage, error) {
	l, err := s.connected(ctx)
	if err != nil {
		return nil, lost
	}
	r, err := s.requestOf(ctx, l, call)
	if err != nil {
		return nil, err
	}
	if !isUnheard(lost) && !s.repeatable(call.Tool) { // by the definition of now
		return nil, lost
	}
	raw, err := s.converse(ctx, l, r)
	if err == nil {
		l.served.Store(true)
	}
	return raw, err
}

// unheard is the error of a request to a session that the server had ended
// before, so that it did not act on it. To send it again in a new session, which
// the protocol wants, is safe.
type unheard struct{ error }

func (u *unheard) Unwrap() error { return u.error }

// undelivered is the error of a request that did not leave: the connection failed.
type undelivered struct{ error }

func (u *undelivered) Unwrap() error { return u.error }

// notBegun reports whether a call that failed so has certainly not been begun.
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
