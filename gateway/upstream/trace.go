package upstream

import (
	"context"

	"sallyport/internal/telemetry"
)

// traceparentField is the name of the trace context of a request, as a header and as a member of _meta.
const traceparentField = "traceparent"

// isTrace reports whether a member of _meta belongs to the trace context.
func isTrace(name string) bool {
	return name == traceparentField || name == "tracestate" || name == "baggage"
}

// trace adds the trace context to a request, if tracing is on and the settings allow it.
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
	r.headers[traceparentField] = r.traceparent
}
