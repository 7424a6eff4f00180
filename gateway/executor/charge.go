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
func charge(ctx context.Context, opts *Options, job *sandbox.Job, e *execution.Result, program execution.Program) (*budgets.Program, error) {
	if opts.Budgets == nil {
		return nil, nil
	}
	counted, err := opts.Budgets.Begin(ctx)
	if err != nil {
		opts.Auditor.RecordEnd(ctx, e, program, time.Now(), &toolcall.List{}, err)
		return nil, err
	}
	job.Limits.CPU = counted.Limit(job.Limits.CPU)
	e.Limits.CPU = job.Limits.CPU
	return counted, nil
}

// settle counts the processor time of a program that has run.
func settle(counted *budgets.Program, e *execution.Result) {
	counted.End(e.CPU)
	if e.Status != sandbox.OutOfCPU {
		return
	}
	if note := counted.Note(e.Limits.CPU); note != "" {
		e.Notes = append(e.Notes, note)
	}
}
