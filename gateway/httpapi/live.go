package httpapi

import (
	"context"
	"net/http"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/internal/tool"
)

// LiveExecutions are the running executions of the caller, or of all principals for an operator.
type LiveExecutions interface {
	Running(ctx context.Context) []executor.Live
	// FollowRunning calls seen whenever an execution has changed, and once more at its end.
	FollowRunning(ctx context.Context, id string, seen func(now executor.Live, over bool) error) error
	CancelExecution(ctx context.Context, id string) error
}

// LiveList is what GET /executions/live gives.
type LiveList struct {
	// Executions are sorted, the oldest first.
	Executions []LiveExecution `json:"executions"`
}

// LiveExecution is an active execution.
type LiveExecution struct {
	ID        string `json:"id"`
	Principal string `json:"principal,omitempty"`
	Language  string `json:"language"`
	// Workspace, Environment and Session are as requested; omitted for the default, and for no session.
	Workspace   string `json:"workspace,omitempty"`
	Environment string `json:"environment,omitempty"`
	Session     string `json:"session,omitempty"`
	// State is queued, running, or waiting for a person's answer.
	State   string    `json:"state"`
	Started time.Time `json:"started"`
	// Calls are the last 20 tool calls; Made is the number of all.
	Calls []LiveCall `json:"calls"`
	Made  int        `json:"made"`
	// Bytes is the size of its output so far.
	Bytes int64 `json:"bytes"`
}

// LiveCall is a tool call of an active execution.
type LiveCall struct {
	Tool  tool.ID   `json:"tool"`
	Begun time.Time `json:"begun"`
	// Outcome is ok, or the kind of the error; omitted while it is in flight.
	Outcome string `json:"outcome,omitempty"`
	// DurationMS is in milliseconds, until now while it is in flight.
	DurationMS int64 `json:"duration_ms"`
}

// liveCalls is the maximum number of calls in a LiveExecution.
const liveCalls = 20

func (a *api) live(r *http.Request) (LiveList, error) {
	list := LiveList{Executions: []LiveExecution{}}
	for _, x := range a.service.Running(r.Context()) {
		one := LiveExecution{
			ID: x.ID, Principal: x.Principal, Language: x.Language, Workspace: x.Workspace, Environment: x.Environment, Session: x.Session,
			State: x.State, Started: x.Started, Calls: []LiveCall{}, Made: x.Made, Bytes: x.Bytes,
		}
		for _, c := range x.Calls[max(0, len(x.Calls)-liveCalls):] {
			one.Calls = append(one.Calls, LiveCall{Tool: c.Tool, Begun: c.Begun, Outcome: c.Outcome, DurationMS: c.Duration.Milliseconds()})
		}
		list.Executions = append(list.Executions, one)
	}
	return list, nil
}

// Canceling is what POST /executions/{id}/cancel gives. The execution ends soon.
type Canceling struct {
	// ID is that of the execution.
	ID string `json:"id"`
}

func (a *api) cancelExecution(r *http.Request, _ Nothing) (Canceling, error) {
	id := r.PathValue("id")
	return Canceling{ID: id}, a.service.CancelExecution(r.Context(), id)
}

// ProgramEnded is the event that an execution has ended. GET /executions/{id} returns its record.
type ProgramEnded struct {
	// ID is that of the execution.
	ID string `json:"id"`
}

// output streams the output of an execution, from the oldest known output until its end.
func (a *api) output(w http.ResponseWriter, r *http.Request) error {
	s, id := newStream(w), r.PathValue("id")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var err error
	seen := int64(-1)
	s.runWhile(cancel, func() {
		err = a.service.FollowRunning(ctx, id, func(now executor.Live, _ bool) error {
			if seen < 0 {
				seen = 0
				s.start(id)
			}
			s.catchUp(now, seen)
			seen = now.Bytes
			return nil
		})
	})
	switch {
	case err == nil:
		s.send(eventEnded, ProgramEnded{ID: id})
	case s.headerSent:
		s.send(eventError, problem(r, statusOf(err), tool.AsError(err)))
	default:
		return err
	}
	return nil
}

// catchUp queues the output of an execution beyond seen bytes.
func (s *stream) catchUp(now executor.Live, seen int64) {
	at := now.Bytes // the offset of the oldest known piece
	for _, p := range now.Output {
		at -= int64(len(p.Text))
	}
	if at > seen {
		s.skip(at - seen)
	}
	for _, p := range now.Output {
		if from := max(0, seen-at); from < int64(len(p.Text)) {
			s.print(execution.Printed{Stream: p.Stream, Text: p.Text[from:]})
		}
		at += int64(len(p.Text))
	}
}
