package executor

import (
	"context"
	"fmt"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// maxReruns is how often a program is run again after the machine that ran it was lost.
const maxReruns = 2

// attempt runs one program, on one machine after the other if they are lost.
type attempt struct {
	ex       *Executor
	job      sandbox.Job
	result   *execution.Result
	x        *active
	stateful bool // it continues a session
}

// run runs the program, and runs it again if the machine that ran it is lost.
func (a attempt) run(ctx context.Context) (err error) {
	a.result.Outcome, err = a.once(ctx)
	if err == nil && a.result.Lost != "" {
		a.runElsewhere(ctx)
	}
	return err
}

func (a attempt) once(ctx context.Context) (sandbox.Outcome, error) {
	return a.ex.sandboxes.Run(ctx, a.job, agent{a.ex, a.x})
}

// runElsewhere runs the program again after its machine was lost, as the same execution: its journal answers the calls that it made. A
// program with calls that may have been done, or with a session that is lost, is interrupted: a person or the model decides.
func (a attempt) runElsewhere(ctx context.Context) {
	var why string
	for range maxReruns {
		if why = a.obstacle(); why != "" {
			break
		}
		lost := a.result.Outcome
		a.ex.opts.Logger.WarnContext(ctx, "a program is run again: the machine that ran it was lost", "execution", a.job.ID, "machine", lost.Lost)
		again, err := a.once(ctx)
		if err != nil {
			why = "that failed: " + err.Error()
			break
		}
		again.Duration += lost.Duration
		again.Notes = append(again.Notes, fmt.Sprintf("the machine that ran it (%s) was lost; it was run again from its start", lost.Lost))
		if a.result.Outcome = again; again.Lost == "" {
			return
		}
	}
	a.result.Status = execution.Interrupted
	if why == "" {
		why = fmt.Sprintf("that was done %d times", maxReruns)
	}
	a.result.Notes = append(a.result.Notes, "its changes of /workspace are not kept, and it is not run again by itself: "+why)
}

// obstacle returns why the program must not be run again by itself, "" if it may be. Its calls are prepared then.
func (a attempt) obstacle() string {
	switch {
	case a.stateful:
		return "the variables of its session are lost"
	case a.x.Journal == nil && a.result.Calls > 0:
		return "its calls are in no journal"
	case a.x.Journal == nil:
		return ""
	}
	doubts, err := a.ex.opts.Replay.Again(a.x.Execution)
	switch {
	case err != nil:
		return "its journal cannot be read"
	case doubts != "":
		return "these calls may have been done, or not: " + doubts
	}
	return ""
}
