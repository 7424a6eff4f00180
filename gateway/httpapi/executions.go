package httpapi

import (
	"net/http"
	"time"

	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
)

// defaultExecutions is the default limit of a list, maxExecutions the maximum.
const defaultExecutions, maxExecutions = 50, 1000

// ExecutionList is what GET /executions gives.
type ExecutionList struct {
	// Executions are sorted, the newest first.
	Executions []ExecutionSummary `json:"executions"`
	// Next is the cursor of the next page, omitted on the last one.
	Next string `json:"next,omitempty"`
}

// ExecutionSummary is an execution in a list.
type ExecutionSummary struct {
	ID string `json:"id"`
	// Principal is the caller that ran it, "" without authentication.
	Principal string `json:"principal,omitempty"`
	Language  string `json:"language"`
	// Client is the name and version of the client, Title a line that describes the program.
	Client string `json:"client,omitempty"`
	Title  string `json:"title,omitempty"`
	// Status is how it ended: ok, failed, held, timeout and so on.
	Status string `json:"status"`
	// Error is a line on why it did not succeed.
	Error   string    `json:"error,omitempty"`
	Started time.Time `json:"started"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Calls is the number of its tool calls, Tokens that of the tokens of its answer.
	Calls  int `json:"calls"`
	Tokens int `json:"tokens,omitempty"`
}

func (a *api) executions(r *http.Request) (ExecutionList, error) {
	query := queryOf(r)
	most := query.number("limit")
	page, err := a.service.Executions(r.Context(), history.Filter{
		Status: history.Status(query.text("status")), Language: query.text("language"), Principal: query.text("principal"), Text: query.text("text"), Since: query.time("since"), After: query.text("cursor"), Limit: most + 1,
	})
	list := ExecutionList{Executions: []ExecutionSummary{}}
	for _, e := range page.Executions {
		if len(list.Executions) == most {
			list.Next = list.Executions[most-1].ID
			break
		}
		list.Executions = append(list.Executions, ExecutionSummary{ID: e.ID, Principal: e.Principal, Language: e.Language, Client: e.Client, Title: e.Title, Status: string(e.Status), Error: e.Error, Started: e.Started,
			DurationMS: e.Duration.Milliseconds(), Calls: e.Made, Tokens: e.Tokens})
	}
	return list, err
}

// Record is the record of an execution: the program and its outcome.
type Record struct {
	history.Record
	DurationMS float64 `json:"duration_ms"`
	// Duration is in nanoseconds.
	//
	// Deprecated: use duration_ms.
	Duration time.Duration `json:"duration"`
	// Calls are the first 1,000 tool calls, in order of their start; made is the number of all.
	Calls []RecordedCall `json:"calls,omitempty"`
}

// RecordedCall is a tool call of an execution on record.
type RecordedCall struct {
	toolcall.RecordedCall
	DurationMS float64 `json:"duration_ms"`
	// Duration is in nanoseconds.
	//
	// Deprecated: use duration_ms.
	Duration time.Duration `json:"duration"`
}

// milliseconds returns a duration in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// execution returns the record.
func (a *api) execution(r *http.Request) (Record, error) {
	record, err := a.service.Record(r.Context(), r.PathValue("id"))
	detail := Record{Record: record, DurationMS: milliseconds(record.Duration), Duration: record.Duration}
	for _, c := range record.Calls {
		detail.Calls = append(detail.Calls, RecordedCall{RecordedCall: c, DurationMS: milliseconds(c.Duration), Duration: c.Duration})
	}
	return detail, err
}

// defaultCalls is the default limit of calls of a journal, maxCalls the maximum.
const defaultCalls, maxCalls = 50, 200

// calls returns the calls in an execution's journal.
func (a *api) calls(r *http.Request) (history.JournaledCalls, error) {
	query := queryOf(r)
	return a.service.JournalCalls(r.Context(), r.PathValue("id"), query.number("after"), query.number("limit"))
}
