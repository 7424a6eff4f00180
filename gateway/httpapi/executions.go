package httpapi

import (
	"net/http"
	"slices"
	"time"

	"sallyport/gateway"
)

// usualExecutions is how many are listed where nothing is said, maxExecutions the most.
const usualExecutions, maxExecutions = 50, 1000

// ExecutionList is what GET /executions gives.
type ExecutionList struct {
	// Executions are the newest first.
	Executions []ExecutionSummary `json:"executions"`
}

// ExecutionSummary is an execution in a list.
type ExecutionSummary struct {
	ID string `json:"id"`
	// Principal is who ran it, "" if nobody had to say.
	Principal string `json:"principal,omitempty"`
	Language  string `json:"language"`
	// Status is how it ended: ok, failed, held, timeout and so on.
	Status  string    `json:"status"`
	Started time.Time `json:"started"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Calls is how many calls of tools it made.
	Calls int `json:"calls"`
}

func (a *api) executions(r *http.Request) (ExecutionList, error) {
	list := ExecutionList{Executions: []ExecutionSummary{}}
	for record, err := range a.verbs.Records(r.Context()) {
		if err != nil {
			return list, err
		}
		list.Executions = append(list.Executions, summary(record))
	}
	slices.Reverse(list.Executions)
	list.Executions = list.Executions[:min(queryOf(r).number("limit"), len(list.Executions))]
	return list, nil
}

func summary(r gateway.Record) ExecutionSummary {
	return ExecutionSummary{ID: r.ID, Principal: r.Principal, Language: r.Language, Status: string(r.Status), Started: r.Started,
		DurationMS: r.Duration.Milliseconds(), Calls: r.Made}
}

// execution gives the record as it is kept.
func (a *api) execution(r *http.Request) (gateway.Record, error) {
	return a.verbs.Recorded(r.Context(), r.PathValue("id"))
}
