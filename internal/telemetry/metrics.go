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

// To add a metric: add an instrument here and a method that records it. A test with -update adds it to
// docs/reference/metrics.md. External data is a label only if it is bounded: an upstream by its id, never a tool, a
// principal or a path.

// instruments are all metric instruments.
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
	alerts        metric.Int64Counter
	httpTime      metric.Float64Histogram
	mcpTime       metric.Float64Histogram
	runs          metric.Int64Counter
	runTime       metric.Float64Histogram

	upstreams nameLimiter
	workers   nameLimiter
	state     atomic.Pointer[func(context.Context) State]
}

// The bucket bounds of histograms, in seconds: programs and runs may be long.
var (
	short = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	long  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
)

// maker creates instruments and collects errors.
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
		refusals:      m.counter("sallyport.refusals", "{request}", "Requests that were told to come again: busy (no place to run), rate_limit, or budget (used up today)."),
		alerts:        m.counter("sallyport.alerts", "{alert}", "Alerts about an approval, quarantine, upstream or budget, by outcome: sent, failed, or dropped because too many waited."),
		httpTime:      m.seconds("http.server.request.duration", "How long HTTP requests took, streams until their end.", short),
		mcpTime:       m.seconds("mcp.server.operation.duration", "How long requests of MCP clients took.", long),
		runs:          m.counter("sallyport.workflow.runs", "{run}", "Runs of workflows that are over, by how they ended."),
		runTime:       m.seconds("sallyport.workflow.run.duration", "How long runs of workflows took, with waiting.", long),
		upstreams:     nameLimiter{max: maxUpstreams},
		workers:       nameLimiter{max: maxWorkers},
	}
	return i, errors.Join(m.err, i.observe(meter))
}

// The maximum numbers of upstreams and workers with their own series.
const maxUpstreams, maxWorkers = 200, 200

// nameLimiter passes the first most names, and maps all others to one.
type nameLimiter struct {
	max   int
	count atomic.Int64
	seen  sync.Map
}

func (n *nameLimiter) limit(name string) string {
	if _, ok := n.seen.Load(name); ok {
		return name
	}
	if n.count.Add(1) > int64(n.max) {
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

// Execution describes one executed program.
type Execution struct {
	// Language and Status are the gateway's.
	Language, Status string
	// Duration is the total time, Queued the part spent waiting for a slot.
	Duration, Queued time.Duration
}

// RecordExecution records the execution of a program.
func (t *Telemetry) RecordExecution(ctx context.Context, e Execution) {
	if t == nil {
		return
	}
	language := attribute.String("language", e.Language)
	t.executions.Add(ctx, 1, with(language, attribute.String("status", e.Status)))
	t.executionTime.Record(ctx, e.Duration.Seconds(), with(language))
	t.queueTime.Record(ctx, e.Queued.Seconds())
}

// RecordCall records a call of a known upstream. The outcome is "ok", or the kind of the error.
func (t *Telemetry) RecordCall(ctx context.Context, upstream, outcome string, took time.Duration) {
	if t == nil {
		return
	}
	of := attribute.String("upstream", t.upstreams.limit(upstream))
	t.calls.Add(ctx, 1, with(of, attribute.String("outcome", outcome)))
	t.callTime.Record(ctx, took.Seconds(), with(of))
}

// RecordDecision records the decision about a call: "allow", "deny" or "ask".
func (t *Telemetry) RecordDecision(ctx context.Context, action string) {
	if t != nil {
		t.decisions.Add(ctx, 1, with(attribute.String("action", action)))
	}
}

// RecordApproval records a new state of an approval.
func (t *Telemetry) RecordApproval(ctx context.Context, state string) {
	if t != nil {
		t.approvals.Add(ctx, 1, with(attribute.String("state", state)))
	}
}

// RecordSearch records a search.
func (t *Telemetry) RecordSearch(ctx context.Context, weak bool, took time.Duration) {
	if t != nil {
		t.searchTime.Record(ctx, took.Seconds(), with(attribute.Bool("weak", weak)))
	}
}

// RecordTokens records the tokens of the response to a verb ("execute", "search"), and of the data that the program read:
// the difference is saved.
func (t *Telemetry) RecordTokens(ctx context.Context, verb string, returned, read int) {
	if t == nil {
		return
	}
	t.returned.Add(ctx, int64(returned), with(attribute.String("verb", verb)))
	if read > 0 {
		t.read.Add(ctx, int64(read))
		t.saved.Add(ctx, int64(max(0, read-returned)))
	}
}

// RecordRefusal records a request that was told to retry: "busy", "rate_limit" or "budget".
func (t *Telemetry) RecordRefusal(ctx context.Context, reason string) {
	if t != nil {
		t.refusals.Add(ctx, 1, with(attribute.String("reason", reason)))
	}
}

// RecordAlert records alerts that were sent to a receiver, failed or were dropped.
func (t *Telemetry) RecordAlert(what, outcome string, n int) {
	if t != nil {
		t.alerts.Add(context.Background(), int64(n), with(attribute.String("about", what), attribute.String("outcome", outcome)))
	}
}

// RecordRequest records a request of an MCP client, by its method, which must be a known one.
func (t *Telemetry) RecordRequest(ctx context.Context, method, outcome string, took time.Duration) {
	if t == nil {
		return
	}
	attrs := []attribute.KeyValue{attribute.String("mcp.method.name", method)}
	if !isOK(outcome) {
		attrs = append(attrs, attribute.String("error.type", outcome))
	}
	t.mcpTime.Record(ctx, took.Seconds(), with(attrs...))
}

// RecordRun records a finished workflow run.
func (t *Telemetry) RecordRun(ctx context.Context, status string, took time.Duration) {
	if t == nil {
		return
	}
	t.runs.Add(ctx, 1, with(attribute.String("status", status)))
	t.runTime.Record(ctx, took.Seconds())
}
