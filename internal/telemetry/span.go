package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"sallyport/internal/sanitize"
)

// Kind is the kind of a span.
type Kind = trace.SpanKind

// The kinds of spans.
const (
	// Internal is an internal operation.
	Internal = trace.SpanKindInternal
	// Server handles a request.
	Server = trace.SpanKindServer
	// Client waits for a response to a request.
	Client = trace.SpanKindClient
)

// maxText bounds each text of a span, in characters.
const maxText = 200

// Span is one operation in a trace. A nil Span belongs to a trace that is not sampled, and does nothing.
type Span struct{ span trace.Span }

// Start starts a span as a child of that of ctx, or a new trace. Its name is the operation and, unless it is "", the
// target. The caller must end it.
func (t *Telemetry) Start(ctx context.Context, kind Kind, what, target string) (context.Context, *Span) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	if target != "" {
		what += " " + sanitize.Line(target, maxText)
	}
	ctx, span := t.tracer.Start(ctx, what, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, nil // nor are its children
	}
	return ctx, &Span{span}
}

// Set sets an attribute, unless the value is "".
func (s *Span) Set(name, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(name, sanitize.Line(value, maxText)))
	}
}

// SetInt sets a numeric attribute.
func (s *Span) SetInt(name string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(name, value))
	}
}

// Event records an event at the current time.
func (s *Span) Event(name string) {
	if s != nil {
		s.span.AddEvent(name)
	}
}

// End ends the span. The outcome is "" or "ok" for success, else the kind of the error.
func (s *Span) End(outcome string) {
	if s == nil {
		return
	}
	if !isOK(outcome) {
		s.span.SetAttributes(attribute.String("error.type", sanitize.Line(outcome, maxText)))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

func isOK(outcome string) bool { return outcome == "" || outcome == "ok" }

// TraceContext is a reference to a span. The zero value refers to none.
type TraceContext struct{ span trace.Span }

// TraceContextOf returns the span reference of ctx.
func TraceContextOf(ctx context.Context) TraceContext {
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsValid() {
		return TraceContext{span}
	}
	return TraceContext{}
}

// In returns ctx within the span: work with its own context continues the trace.
func (p TraceContext) In(ctx context.Context) context.Context {
	if p.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, p.span)
}

// parents reads and writes the W3C trace context. Vendor data (tracestate) and baggage are neither read nor
// forwarded.
var parents propagation.TraceContext

const parentField = "traceparent"

// Parent returns ctx with the span of a traceparent as parent; ctx itself if it is invalid or traces are off.
func (t *Telemetry) Parent(ctx context.Context, traceparent string) context.Context {
	if t == nil || t.tracer == nil || traceparent == "" {
		return ctx
	}
	return parents.Extract(ctx, propagation.MapCarrier{parentField: traceparent})
}

// Traceparent returns the traceparent header for the span of ctx; "" for none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	to := propagation.MapCarrier{}
	parents.Inject(ctx, to)
	return to[parentField]
}

// IDs returns the ids of the trace and the span of ctx, as in the log; "" for none.
func IDs(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}
