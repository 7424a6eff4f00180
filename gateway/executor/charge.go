package executor

import (
	"context"
	"time"

	"sallyport/gateway/budgets"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/sandbox"
)

// charge counts a program in the budgets of its principal, and lowers its limit of processor time to what is left. A refusal is
// recorded.
func (ex *Executor) charge(ctx context.Context, job *sandbox.Job, e *execution.Result, program execution.Program) (*budgets.Program, error) {
	if ex.opts.Budgets == nil {
		return nil, nil
	}
	charge, err := ex.opts.Budgets.Begin(ctx)
	if err != nil {
		ex.opts.Auditor.RecordEnd(ctx, e, program, time.Now(), &toolcall.List{}, err)
		return nil, err
	}
	job.Limits.CPU = charge.Limit(job.Limits.CPU)
	e.Limits.CPU = job.Limits.CPU
	return charge, nil
}

// settle counts the processor time of a program that has run.
func settle(charge *budgets.Program, e *execution.Result) {
	charge.End(e.CPU)
	if e.Status != sandbox.OutOfCPU {
		return
	}
	if note := charge.Note(e.Limits.CPU); note != "" {
		e.Notes = append(e.Notes, note)
	}
}
