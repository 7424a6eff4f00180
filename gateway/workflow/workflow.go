// Package workflow runs workflows: definitions (package spec) made of steps that call tools through the gateway's one
// door. Its main type is [Engine]. A run is a log of events in the store: each step's start and end is written, fenced by
// what it must follow, before anything continues. An engine that reads the log can resume the run, and repeats no step that has ended.
package workflow

import (
	"context"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/tool"
)

// Door is what the engine needs of the gateway.
type Door interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
}

// What a run is and what its log says is package runlog's.
type (
	// Status is how a run stands.
	Status = runlog.Status
	// Run is one run of a workflow, as it stands.
	Run = runlog.Run
	// Fault is why a step or a run failed.
	Fault = runlog.Fault
	// Pending is something that a run waits for.
	Pending = runlog.Pending
	// Event is one line of a run's log.
	Event = runlog.Event
	// EventKind is what an event says.
	EventKind = runlog.EventKind
	// Started is what a run was started with.
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
