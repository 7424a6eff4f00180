package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"path/filepath"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/lint"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Workflows is the workflow engine. Runs are those of the caller, or of all principals for an operator.
type Workflows interface {
	Runs
	RunControl
	Definitions() []workflow.Info
	Plan(ctx context.Context, workflow string, inputs json.RawMessage) (lint.Planned, error)
	Start(ctx context.Context, start workflow.Start) (workflow.Run, error)
}

// Runs are the runs of workflows.
type Runs interface {
	// WaitSettled returns the run when it is over or waits for a person, or its current state with the error of ctx.
	WaitSettled(ctx context.Context, id string) (workflow.Run, error)
	Run(ctx context.Context, id string) (workflow.Run, error)
	Runs(ctx context.Context, filter workflow.Filter) ([]workflow.Run, error)
	// Events returns the events from number from on; the first is 0.
	Events(ctx context.Context, id string, from int) iter.Seq2[workflow.Event, error]
	// Follow calls do with the events from number from on, and with new ones, until the run is over, ctx ends or do fails.
	Follow(ctx context.Context, id string, from int, do func(workflow.Event) error) error
}

// RunControl changes runs.
type RunControl interface {
	Cancel(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) (workflow.Run, error)
	Replay(ctx context.Context, id, step string) (workflow.Run, error)
	Answer(ctx context.Context, id, step string, values json.RawMessage) (workflow.Run, error)
}

// WorkflowList is what GET /workflows gives.
type WorkflowList struct {
	// Workflows are sorted by name; only operators see those that are not exposed.
	Workflows []workflow.Info `json:"workflows"`
}

// Launch is what POST /workflows/{name}/runs takes.
type Launch struct {
	// Inputs is an object; missing members have their defaults.
	Inputs json.RawMessage `json:"inputs,omitempty" type:"object"`
	// Key, if set, makes the request idempotent: the same key returns the same run. At most 100 bytes.
	Key string `json:"key,omitempty" max:"100"`
	// Wait is how many seconds to wait until the run is over or waits for a person, at most 60. 0 answers immediately.
	Wait int `json:"wait,omitempty" min:"0" max:"60"`
}

// PlanRequest is what POST /workflows/{name}/plan takes.
type PlanRequest struct {
	// Inputs are as for a run.
	Inputs json.RawMessage `json:"inputs,omitempty" type:"object"`
}

// maxWait is the maximum value of wait, in seconds.
const maxWait = 60

// workflowAPI has the routes of workflows and their runs.
type workflowAPI struct{ *api }

func (a workflowAPI) listWorkflows(r *http.Request) (WorkflowList, error) {
	return WorkflowList{Workflows: a.visible(r.Context())}, nil
}

// visible returns the workflows that the caller may see and start.
func (a workflowAPI) visible(ctx context.Context) []workflow.Info {
	list := []workflow.Info{}
	for _, one := range a.opts.Workflows.Definitions() {
		operator := tool.Operator(ctx) != ""
		if !operator { // hide local paths
			one.Path = filepath.Base(one.Path)
		}
		if one.Exposed || operator {
			list = append(list, one)
		}
	}
	return list
}

func (a workflowAPI) workflow(r *http.Request) (workflow.Info, error) {
	name := r.PathValue("name")
	var names []string
	for _, one := range a.visible(r.Context()) {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	err := &tool.Error{Kind: tool.NotFound, Message: "there is no workflow " + sanitize.Line(name, 64), Hint: "`sallyport workflow list` lists them"}
	if near := suggest.Of(name, names); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return workflow.Info{}, err
}

// launch starts a run of a workflow that the caller may see.
func (a workflowAPI) launch(r *http.Request, l Launch) (workflow.Run, error) {
	of, err := a.workflow(r)
	if err != nil {
		return workflow.Run{}, err
	}
	trigger := r.Header.Get(TriggerHeader)
	if trigger != triggerCLI || tool.Operator(r.Context()) == "" {
		trigger = "http"
	}
	run, err := a.opts.Workflows.Start(r.Context(), workflow.Start{Workflow: of.Name, Inputs: l.Inputs, Trigger: trigger, Key: l.Key})
	if err != nil || l.Wait == 0 {
		return run, err
	}
	now, err := a.waitSettled(r.Context(), run, l.Wait)
	if errors.Is(err, store.ErrUnreachable) {
		return run, nil // an error that says that nothing was done would have the client start another one
	}
	return now, err
}

// plan says what a run would do.
func (a workflowAPI) plan(r *http.Request, p PlanRequest) (lint.Planned, error) {
	of, err := a.workflow(r)
	if err != nil {
		return lint.Planned{}, err
	}
	return a.opts.Workflows.Plan(r.Context(), of.Name, p.Inputs)
}

// TriggerHeader marks a run as started by the command line.
const TriggerHeader, triggerCLI = "Sallyport-Trigger", "cli"

// waitSettled waits for a run for at most some seconds.
func (a workflowAPI) waitSettled(ctx context.Context, run workflow.Run, seconds int) (workflow.Run, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	now, err := a.opts.Workflows.WaitSettled(waiting, run.ID)
	if waiting.Err() != nil && ctx.Err() == nil {
		return a.opts.Workflows.Run(ctx, run.ID)
	}
	return now, err
}
