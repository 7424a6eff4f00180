package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/history"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// Numbers are what was saved, and what is on record.
type Numbers interface {
	// Savings are of the caller, or any for an operator.
	Savings(ctx context.Context, since time.Time, step time.Duration) (history.Savings, error)
	// AuditLog is for operators.
	AuditLog(ctx context.Context, filter auditor.Filter) (auditor.Page, error)
}

// usualDays is for how many days savings are shown by default, maxDays for how many at most: so long records are kept.
const usualDays, maxDays = 7, 30

// SavingsReport is what GET /savings gives.
type SavingsReport struct {
	history.Savings
	// Saved is how many tokens stayed out of models' contexts in all.
	Saved int64 `json:"saved_tokens"`
}

func (a *api) savings(r *http.Request) (SavingsReport, error) {
	days := queryOf(r).number("days")
	step := 24 * time.Hour
	if days == 1 {
		step = time.Hour
	}
	s, err := a.verbs.Savings(r.Context(), time.Now().Add(-time.Duration(days)*24*time.Hour), step)
	return SavingsReport{Savings: s, Saved: s.Total.Saved()}, err
}

// usualEvents is how many records of the audit log are given where nothing is said, maxEvents the most.
const usualEvents, maxEvents = 100, 1000

// AuditEvents is what GET /audit gives.
type AuditEvents struct {
	// Events are the newest first.
	Events []AuditEvent `json:"events"`
	// Next is the cursor of the page that follows, nothing on the last one.
	Next string `json:"next,omitempty"`
	// Damaged is how many lines of those that were looked at are no records, or not what was written. Unchained is how many do not follow the one before.
	Damaged   int `json:"damaged"`
	Unchained int `json:"unchained"`
	// Head is the end of the log, signed.
	Head audit.Head `json:"head"`
}

// AuditEvent is one record of the audit log. What does not apply is not there.
type AuditEvent struct{ audit.Event }

func (a *api) audit(r *http.Request) (AuditEvents, error) {
	query := queryOf(r)
	filter := auditor.Filter{
		Since: query.time("since"), Execution: query.text("execution"), Principal: query.text("principal"), Decision: query.text("decision"),
		Tool: query.text("tool"), Kind: query.text("kind"), Limit: query.number("limit"),
	}
	if cursor := query.text("cursor"); cursor != "" {
		before, err := strconv.ParseUint(cursor, 10, 64)
		if err != nil || before == 0 {
			return AuditEvents{}, invalid("cursor must be next of the page before")
		}
		filter.Before = before
	}
	page, err := a.verbs.AuditLog(r.Context(), filter)
	if err != nil {
		return AuditEvents{}, err
	}
	list := AuditEvents{Events: make([]AuditEvent, len(page.Events)), Damaged: page.Damaged, Unchained: page.Unchained, Head: page.Head}
	for i, e := range page.Events {
		list.Events[i] = AuditEvent{e}
	}
	if page.Next > 0 {
		list.Next = strconv.FormatUint(page.Next, 10)
	}
	return list, nil
}

// metrics answers in the text format of Prometheus, or OpenMetrics where that is asked for.
func (a *api) metrics(w http.ResponseWriter, r *http.Request) error {
	if a.opts.Telemetry == nil {
		return &tool.Error{Kind: tool.NotFound, Message: "this process measures nothing", Hint: "a sallyport serve does"}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	a.opts.Telemetry.Metrics().ServeHTTP(w, r)
	return nil
}
