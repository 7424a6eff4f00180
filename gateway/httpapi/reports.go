package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/budgets"
	"sallyport/gateway/history"
	"sallyport/gateway/timeline"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// Reports are the savings, the budgets and the audit log.
type Reports interface {
	// Savings returns those of the caller, or of all principals for an operator.
	Savings(ctx context.Context, since time.Time, step time.Duration) (history.Savings, error)
	// Graphs is for operators.
	Graphs(ctx context.Context, r timeline.Range) (timeline.Graphs, error)
	// ToolGraphs is for operators.
	ToolGraphs(ctx context.Context, id tool.ID, r timeline.Range) (timeline.Graphs, error)
	// BudgetReport returns the use of the caller, or of all principals for an operator.
	BudgetReport(ctx context.Context) (budgets.Report, error)
	// AuditLog is for operators.
	AuditLog(ctx context.Context, filter auditor.Filter) (auditor.Page, error)
}

// defaultDays is the default number of days of savings, maxDays the maximum, for which records are kept.
const defaultDays, maxDays = 7, 30

// SavingsReport is what GET /savings gives.
type SavingsReport struct {
	history.Savings
	// Saved is the total number of tokens that stayed out of models' contexts.
	Saved int64 `json:"saved_tokens"`
	// StepMS is the length of each step.
	StepMS int64 `json:"step_ms"`
	// StepSeconds is the length in seconds.
	//
	// Deprecated: use step_ms.
	StepSeconds int64 `json:"step_seconds"`
}

func (a *api) savings(r *http.Request) (SavingsReport, error) {
	days := queryOf(r).number("days")
	step := 24 * time.Hour
	if days == 1 {
		step = time.Hour
	}
	s, err := a.service.Savings(r.Context(), time.Now().Add(-time.Duration(days)*24*time.Hour), step)
	return SavingsReport{Savings: s, Saved: s.Total.SavedTokens(), StepMS: s.StepSeconds * 1000, StepSeconds: s.StepSeconds}, err
}

// timelineRoute returns the handler of GET /timeline.
func timelineRoute(s Reports) func(r *http.Request) (timeline.Graphs, error) {
	return func(r *http.Request) (timeline.Graphs, error) {
		over, name := cmp.Or(timeline.Range(queryOf(r).text("range")), timeline.Day), queryOf(r).text("tool")
		if name == "" {
			return s.Graphs(r.Context(), over)
		}
		id, err := tool.ParseID(name)
		if err != nil {
			return timeline.Graphs{}, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Hint: "a tool is UPSTREAM.NAME"}
		}
		return s.ToolGraphs(r.Context(), id, over)
	}
}

// budgetRoute returns the handler of GET /budgets.
func budgetRoute(s Reports) func(r *http.Request) (budgets.Report, error) {
	return func(r *http.Request) (budgets.Report, error) { return s.BudgetReport(r.Context()) }
}

// defaultEvents is the default limit of audit records, maxEvents the maximum.
const defaultEvents, maxEvents = 100, 1000

// AuditEvents is what GET /audit gives.
type AuditEvents struct {
	// Events are sorted, the newest first.
	Events []AuditEvent `json:"events"`
	// Next is the cursor of the next page, omitted on the last one.
	Next string `json:"next,omitempty"`
	// Damaged is the number of scanned lines that are invalid or were modified, Unchained the number of records that do not follow the one before.
	Damaged   int `json:"damaged"`
	Unchained int `json:"unchained"`
	// Head is the signed end of the log, zero if the parameter gateway was given.
	Head audit.Head `json:"head"`
}

// AuditEvent is one record of the audit log. Fields that do not apply are omitted.
type AuditEvent struct {
	audit.Event
	// Chain and Host name the gateway and its machine, if the parameter gateway was given.
	Chain      string  `json:"chain,omitempty"`
	Host       string  `json:"host,omitempty"`
	DurationMS float64 `json:"duration_ms,omitempty"`
	// Micros is the duration in microseconds.
	//
	// Deprecated: use duration_ms.
	Micros int64 `json:"duration_us,omitempty"`
}

func (a *api) audit(r *http.Request) (AuditEvents, error) {
	query := queryOf(r)
	filter := auditor.Filter{
		Since: query.time("since"), Execution: query.text("execution"), Principal: query.text("principal"), Decision: query.text("decision"),
		Tool: query.text("tool"), Kind: query.text("kind"), Gateway: query.text("gateway"), Limit: query.number("limit"),
	}
	if cursor := query.text("cursor"); cursor != "" {
		before, err := strconv.ParseUint(cursor, 10, 64)
		if err != nil || before == 0 {
			return AuditEvents{}, invalid("cursor must be next of the page before")
		}
		filter.Before = before
	}
	page, err := a.service.AuditLog(r.Context(), filter)
	if err != nil {
		return AuditEvents{}, err
	}
	list := AuditEvents{Events: make([]AuditEvent, len(page.Events)), Damaged: page.Damaged, Unchained: page.Unchained, Head: page.Head}
	for i, e := range page.Events {
		list.Events[i] = AuditEvent{Event: e, DurationMS: float64(e.Micros) / 1000, Micros: e.Micros}
		if page.Of != nil {
			list.Events[i].Chain, list.Events[i].Host = page.Of[i].Chain, page.Of[i].Host
		}
	}
	if page.Next > 0 {
		list.Next = strconv.FormatUint(page.Next, 10)
	}
	return list, nil
}

// metrics answers in the Prometheus text format, or in OpenMetrics if requested.
func (a *api) metrics(w http.ResponseWriter, r *http.Request) error {
	if a.opts.Telemetry == nil {
		return &tool.Error{Kind: tool.NotFound, Message: "this process measures nothing", Hint: "a sallyport serve does"}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	a.opts.Telemetry.Metrics().ServeHTTP(w, r)
	return nil
}
