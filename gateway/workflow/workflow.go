// Package workflow runs workflows: definitions (package spec) of steps that call tools through the gateway.
// Its main type is [Engine]. A run is a log of events in the store: the start and end of each step is written, and fenced by
// the preceding record, before the run continues. An engine can resume a run from its log, and does not repeat finished steps.
package workflow

import (
	"context"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/tool"
)

// Caller calls tools and executes programs. The gateway implements it.
type Caller interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
}

// Types of package runlog.
type (
	// Status is the status of a run.
	Status = runlog.Status
	// Run is the current state of one run of a workflow.
	Run = runlog.Run
	// Fault is the error of a step or run.
	Fault = runlog.Fault
	// Pending is something that a run waits for.
	Pending = runlog.Pending
	// Event is one line of a run's log.
	Event = runlog.Event
	// EventKind is the kind of an event.
	EventKind = runlog.EventKind
	// Started is the start data of a run.
	Started = runlog.Started
)

// The statuses, see [runlog.Status].
const (
	Queued   = runlog.Queued
	Running  = runlog.Running
	Waiting  = runlog.Waiting
	OK       = runlog.OK
	Failed   = runlog.Failed
	Canceled = runlog.Canceled
)

// The events, see [runlog.EventKind].
const (
	Created   = runlog.Created
	Claimed   = runlog.Claimed
	Began     = runlog.Began
	Retrying  = runlog.Retrying
	Waits     = runlog.Waits
	Answered  = runlog.Answered
	Ended     = runlog.Ended
	Reentered = runlog.Reentered
	Stopping  = runlog.Stopping
	Over      = runlog.Over
)
