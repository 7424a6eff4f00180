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
	// Inside is internal work.
	Inside = trace.SpanKindInternal
	// Serving answers a request.
	Serving = trace.SpanKindServer
	// Asking waits for a response.
	Asking = trace.SpanKindClient
)

// maxText bounds each text of a span, in characters.
const maxText = 200

// Span is one piece of work in a trace. A nil one is of a trace that is not kept, and does nothing.
type Span struct{ span trace.Span }

// Start begins a span within that of ctx, or a trace. It is named by what is done, and to what, where that is not "".
// The function that starts it ends it.
func (t *Telemetry) Start(ctx context.Context, kind Kind, what, target string) (context.Context, *Span) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	if target != "" {
		what += " " + sanitize.Line(target, maxText)
	}
	ctx, span := t.tracer.Start(ctx, what, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, nil // those inside it are not, either
	}
	return ctx, &Span{span}
}

// Set gives the span an attribute, unless the value is "".
func (s *Span) Set(name, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(name, sanitize.Line(value, maxText)))
	}
}

// SetInt gives the span a number.
func (s *Span) SetInt(name string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(name, value))
	}
}

// Event notes that something has happened just now.
func (s *Span) Event(name string) {
	if s != nil {
		s.span.AddEvent(name)
	}
}

// End ends the span. The outcome is "" or "ok" where it went well, else the kind of what went wrong.
func (s *Span) End(outcome string) {
	if s == nil {
		return
	}
	if !well(outcome) {
		s.span.SetAttributes(attribute.String("error.type", sanitize.Line(outcome, maxText)))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

func well(outcome string) bool { return outcome == "" || outcome == "ok" }

// Place is where in a trace something is. The zero value is nowhere.
type Place struct{ span trace.Span }

// PlaceOf is that of ctx.
func PlaceOf(ctx context.Context) Place {
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsValid() {
		return Place{span}
	}
	return Place{}
}

// In returns ctx with the place: work that has a context of its own continues in the trace.
func (p Place) In(ctx context.Context) context.Context {
	if p.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, p.span)
}

// parents reads and writes the context of a trace as W3C has it. What vendors add to it (tracestate) and baggage is
// neither read nor sent on: it is of no use here, and others need not know it.
var parents propagation.TraceContext

const parentField = "traceparent"

// Parent returns ctx with the span that a traceparent names as its parent; ctx where it names none, or there are no traces.
func (t *Telemetry) Parent(ctx context.Context, traceparent string) context.Context {
	if t == nil || t.tracer == nil || traceparent == "" {
		return ctx
	}
	return parents.Extract(ctx, propagation.MapCarrier{parentField: traceparent})
}

// Traceparent is the span of ctx for a traceparent header; "" where none is kept.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	to := propagation.MapCarrier{}
	parents.Inject(ctx, to)
	return to[parentField]
}

// Ids are those of the trace and the span of ctx, as they are in the log; "" where there is none.
func Ids(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}
