package executor

import (
	"context"
	"fmt"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// maxReruns is how often a program is run again after the machine that ran it was lost.
const maxReruns = 2

// runAnywhere runs a program, and runs it again if the machine that ran it is lost. stateful says that it continues a session.
func (ex *Executor) runAnywhere(ctx context.Context, job sandbox.Job, e *execution.Result, x *active, stateful bool) (err error) {
	e.Outcome, err = ex.sandboxes.Run(ctx, job, agent{ex, x})
	if err == nil && e.Lost != "" {
		ex.runElsewhere(ctx, job, e, x, stateful)
	}
	return err
}

// runElsewhere runs a program again whose machine was lost, as the same execution: its journal answers the calls that it made. A program
// with calls that may have been done, or whose session is lost, is interrupted: a person or the model decides.
func (ex *Executor) runElsewhere(ctx context.Context, job sandbox.Job, e *execution.Result, x *active, stateful bool) {
	var why string
	for range maxReruns {
		if why = ex.obstacle(e.Outcome, x, stateful); why != "" {
			break
		}
		lost := e.Outcome
		ex.opts.Logger.WarnContext(ctx, "a program is run again: the machine that ran it was lost", "execution", job.ID, "machine", lost.Lost)
		again, err := ex.sandboxes.Run(ctx, job, agent{ex, x})
		if err != nil {
			why = "that failed: " + err.Error()
			break
		}
		again.Duration += lost.Duration
		again.Notes = append(again.Notes, fmt.Sprintf("the machine that ran it (%s) was lost; it was run again from its start", lost.Lost))
		if e.Outcome = again; again.Lost == "" {
			return
		}
	}
	e.Status = execution.Interrupted
	if why == "" {
		why = fmt.Sprintf("that was done %d times", maxReruns)
	}
	e.Notes = append(e.Notes, "its changes of /workspace are not kept, and it is not run again by itself: "+why)
}

// obstacle returns why a program whose machine was lost must not be run again by itself, "" if it may be. Its calls are prepared then.
func (ex *Executor) obstacle(lost sandbox.Outcome, x *active, stateful bool) string {
	switch {
	case stateful:
		return "the variables of its session are lost"
	case x.Journal == nil && lost.Calls > 0:
		return "its calls are in no journal"
	case x.Journal == nil:
		return ""
	}
	doubts, err := ex.opts.Replay.Again(x.Execution)
	switch {
	case err != nil:
		return "its journal cannot be read"
	case doubts != "":
		return "these calls may have been done, or not: " + doubts
	}
	return ""
}
