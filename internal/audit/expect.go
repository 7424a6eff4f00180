package audit

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// Expected lists what the store of records should have according to a log, see [Event.Kept].
type Expected struct {
	// Executions are the ends of the newest programs, the oldest first.
	Executions []Event
	// Approvals are questions by their ids, each with the outcome of its last event.
	Approvals map[string]Event
}

// Expect returns what was recorded in a directory since a time, with at most most executions.
func Expect(ctx context.Context, dir string, since time.Time, most int) (Expected, error) {
	e := Expected{Approvals: map[string]Event{}}
	from, err := Since(dir, since)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	for r, err := range Read(dir, from) {
		switch {
		case ctx.Err() != nil:
			return e, ctx.Err()
		case errors.Is(err, ErrDamaged):
			continue // log verify reports it
		case err != nil:
			return e, err
		case r.Kept && !r.Time.Before(since):
			e.add(r.Event, most)
		}
	}
	e.Executions = e.Executions[max(0, len(e.Executions)-most):]
	return e, nil
}

func (x *Expected) add(e Event, most int) {
	switch e.Kind {
	case ExecutionEnd:
		if strings.HasPrefix(e.Outcome, "not_run:") {
			return
		}
		if x.Executions = append(x.Executions, e); len(x.Executions) >= 2*most {
			x.Executions = append([]Event(nil), x.Executions[most:]...)
		}
	case ApprovalAsked:
		if _, again := x.Approvals[e.Approval]; !again {
			x.Approvals[e.Approval] = e
		}
	case ApprovalAnswered:
		if asked, ok := x.Approvals[e.Approval]; ok {
			asked.Outcome = e.Outcome
			x.Approvals[e.Approval] = asked
		}
	}
}
