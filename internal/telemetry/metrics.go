package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// To add a metric: an instrument here, a method that counts, and a row in docs/telemetry.md, which a test holds to what is
// told at /metrics. What comes from outside is a label only where it is bounded: an upstream by its id, never a tool, a
// principal or a path.

// instruments are all that is measured.
type instruments struct {
	executions    metric.Int64Counter
	executionTime metric.Float64Histogram
	queueTime     metric.Float64Histogram
	calls         metric.Int64Counter
	callTime      metric.Float64Histogram
	decisions     metric.Int64Counter
	approvals     metric.Int64Counter
	searchTime    metric.Float64Histogram
	returned      metric.Int64Counter
	read          metric.Int64Counter
	saved         metric.Int64Counter
	refusals      metric.Int64Counter
	httpTime      metric.Float64Histogram
	mcpTime       metric.Float64Histogram
	runs          metric.Int64Counter
	runTime       metric.Float64Histogram

	upstreams names
	state     atomic.Pointer[func(context.Context) State]
}

// The bounds of histograms, in seconds: those of programs and runs may be long.
var (
	short = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	long  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
)

// maker makes instruments and remembers what went wrong.
type maker struct {
	metric.Meter
	err error
}

func (m *maker) counter(name, unit, help string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.err = errors.Join(m.err, err)
	return c
}

func (m *maker) seconds(name, help string, bounds []float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	m.err = errors.Join(m.err, err)
	return h
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	m := &maker{Meter: meter}
	i := &instruments{
		executions:    m.counter("sallyport.executions", "{execution}", "Programs that were run, by how they ended."),
		executionTime: m.seconds("sallyport.execution.duration", "How long programs took, from the queue to the answer.", long),
		queueTime:     m.seconds("sallyport.execution.queue.duration", "How long programs waited for a place to run.", short),
		calls:         m.counter("sallyport.calls", "{call}", "Calls of upstreams' tools and methods, by how they went: ok, or the kind of the error."),
		callTime:      m.seconds("sallyport.call.duration", "How long calls took, with policy, approval and waiting.", short),
		decisions:     m.counter("sallyport.policy.decisions", "{decision}", "What became of calls: allow, deny, or ask for one that a person has to allow."),
		approvals:     m.counter("sallyport.approvals", "{approval}", "Questions about calls: waiting when asked, then how they were answered."),
		searchTime:    m.seconds("sallyport.search.duration", "How long searches took; weak says that nothing fitted well.", short),
		returned:      m.counter("sallyport.tokens.returned", "{token}", "Tokens (o200k_base) of answers that models read."),
		read:          m.counter("sallyport.tokens.read", "{token}", "Tokens (o200k_base) of tool results that programs got."),
		saved:         m.counter("sallyport.tokens.saved", "{token}", "Tokens (o200k_base) of tool results that stayed in programs: those that a program got, less those of its answer."),
		refusals:      m.counter("sallyport.refusals", "{request}", "Requests that were told to come again: busy (no place to run) or rate_limit."),
		httpTime:      m.seconds("http.server.request.duration", "How long HTTP requests took, streams until their end.", short),
		mcpTime:       m.seconds("mcp.server.operation.duration", "How long requests of MCP clients took.", long),
		runs:          m.counter("sallyport.workflow.runs", "{run}", "Runs of workflows that are over, by how they ended."),
		runTime:       m.seconds("sallyport.workflow.run.duration", "How long runs of workflows took, with waiting.", long),
		upstreams:     names{most: maxUpstreams},
	}
	return i, errors.Join(m.err, i.observe(meter))
}

// maxUpstreams is how many upstreams have series of their own.
const maxUpstreams = 200

// names lets so many names through, the first that come, and calls all others one.
type names struct {
	most  int
	count atomic.Int64
	seen  sync.Map
}

func (n *names) bounded(name string) string {
	if _, ok := n.seen.Load(name); ok {
		return name
	}
	if n.count.Add(1) > int64(n.most) {
		n.count.Add(-1)
		return "_other"
	}
	if _, twice := n.seen.LoadOrStore(name, true); twice {
		n.count.Add(-1)
	}
	return name
}

func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// Execution is one program that was run.
type Execution struct {
	// Language and Status are those of the gateway.
	Language, Status string
	// Duration is its whole time, Queued how much of it was waiting for a place.
	Duration, Queued time.Duration
}

// Executed counts a program.
func (t *Telemetry) Executed(ctx context.Context, e Execution) {
	if t == nil {
		return
	}
	language := attribute.String("language", e.Language)
	t.executions.Add(ctx, 1, with(language, attribute.String("status", e.Status)))
	t.executionTime.Record(ctx, e.Duration.Seconds(), with(language))
	t.queueTime.Record(ctx, e.Queued.Seconds())
}

// Called counts a call of an upstream that is known. The outcome is "ok", or the kind of the error.
func (t *Telemetry) Called(ctx context.Context, upstream, outcome string, took time.Duration) {
	if t == nil {
		return
	}
	of := attribute.String("upstream", t.upstreams.bounded(upstream))
	t.calls.Add(ctx, 1, with(of, attribute.String("outcome", outcome)))
	t.callTime.Record(ctx, took.Seconds(), with(of))
}

// Decided counts what became of a call: "allow", "deny" or "ask".
func (t *Telemetry) Decided(ctx context.Context, action string) {
	if t != nil {
		t.decisions.Add(ctx, 1, with(attribute.String("action", action)))
	}
}

// Asked counts a question to a person, or its answer, by the state that it has now.
func (t *Telemetry) Asked(ctx context.Context, state string) {
	if t != nil {
		t.approvals.Add(ctx, 1, with(attribute.String("state", state)))
	}
}

// Searched counts a search.
func (t *Telemetry) Searched(ctx context.Context, weak bool, took time.Duration) {
	if t != nil {
		t.searchTime.Record(ctx, took.Seconds(), with(attribute.Bool("weak", weak)))
	}
}

// Tokens counts those of an answer of a verb ("execute", "search"), and of what a program read for it: what is more
// than the answer was saved.
func (t *Telemetry) Tokens(ctx context.Context, verb string, returned, read int) {
	if t == nil {
		return
	}
	t.returned.Add(ctx, int64(returned), with(attribute.String("verb", verb)))
	if read > 0 {
		t.read.Add(ctx, int64(read))
		t.saved.Add(ctx, int64(max(0, read-returned)))
	}
}

// Refused counts a request that was told to come again: "busy" or "rate_limit".
func (t *Telemetry) Refused(ctx context.Context, reason string) {
	if t != nil {
		t.refusals.Add(ctx, 1, with(attribute.String("reason", reason)))
	}
}

// Served counts a request of an MCP client, by its method, which must be one that is known.
func (t *Telemetry) Served(ctx context.Context, method, outcome string, took time.Duration) {
	if t == nil {
		return
	}
	attrs := []attribute.KeyValue{attribute.String("mcp.method.name", method)}
	if !well(outcome) {
		attrs = append(attrs, attribute.String("error.type", outcome))
	}
	t.mcpTime.Record(ctx, took.Seconds(), with(attrs...))
}

// Ran counts a run of a workflow that is over.
func (t *Telemetry) Ran(ctx context.Context, status string, took time.Duration) {
	if t == nil {
		return
	}
	t.runs.Add(ctx, 1, with(attribute.String("status", status)))
	t.runTime.Record(ctx, took.Seconds())
}
