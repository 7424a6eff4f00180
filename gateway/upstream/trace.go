package upstream

import (
	"context"

	"sallyport/internal/telemetry"
)

// parentField names the trace of a request, as a header and as a member of _meta.
const parentField = "traceparent"

// isTrace reports whether a member of _meta is about the trace of a request.
func isTrace(name string) bool {
	return name == parentField || name == "tracestate" || name == "baggage"
}

// trace adds the trace context to a request, where tracing is on and the upstream may have it.
func (s *Session) trace(ctx context.Context, r *request) {
	if r.untraced = s.settings.NoTraceContext; r.untraced {
		return
	}
	if r.traceparent = telemetry.Traceparent(ctx); r.traceparent == "" || s.settings.URL == "" {
		return
	}
	if r.headers == nil {
		r.headers = map[string]string{}
	}
	r.headers[parentField] = r.traceparent
}
