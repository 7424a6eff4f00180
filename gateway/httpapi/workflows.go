package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"path/filepath"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/lint"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Workflows are what this face needs of the engine. Runs are those of the caller, or of all for an operator.
type Workflows interface {
	Definitions() []workflow.Info
	Plan(ctx context.Context, workflow string, inputs json.RawMessage) (lint.Planned, error)
	Start(ctx context.Context, start workflow.Start) (workflow.Run, error)
	// Settled returns the run when it is over or waits for a person, or with the error of ctx as it stands then.
	Settled(ctx context.Context, id string) (workflow.Run, error)
	Run(ctx context.Context, id string) (workflow.Run, error)
	Runs(ctx context.Context, filter workflow.Filter) ([]workflow.Run, error)
	// Events are those from number from on; the first is 0.
	Events(ctx context.Context, id string, from int) iter.Seq2[workflow.Event, error]
	// Follow gives do the events from number from on, and then what comes, until the run is over, ctx ends or do fails.
	Follow(ctx context.Context, id string, from int, do func(workflow.Event) error) error
	Cancel(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) (workflow.Run, error)
	Replay(ctx context.Context, id, step string) (workflow.Run, error)
	Answer(ctx context.Context, id, step string, values json.RawMessage) (workflow.Run, error)
}

// WorkflowList is what GET /workflows gives.
type WorkflowList struct {
	// Workflows are sorted by name; who is no operator sees those that are exposed.
	Workflows []workflow.Info `json:"workflows"`
}

// Launch is what POST /workflows/{name}/runs takes.
type Launch struct {
	// Inputs is an object; without it, or where a member is missing, defaults count.
	Inputs json.RawMessage `json:"inputs,omitempty" type:"object"`
	// Key, where it is given, makes the start happen once: the same key again gives the same run. At most 100 bytes.
	Key string `json:"key,omitempty" max:"100"`
	// Wait is how many seconds the answer may take, at most 60: it comes when the run is over or waits for a person. 0 answers at once.
	Wait int `json:"wait,omitempty" min:"0" max:"60"`
}

// PlanRequest is what POST /workflows/{name}/plan takes.
type PlanRequest struct {
	// Inputs are as for a run.
	Inputs json.RawMessage `json:"inputs,omitempty" type:"object"`
}

// maxWait is how long an answer may take where that is asked for, in seconds.
const maxWait = 60

// workflowAPI has the routes of workflows and their runs.
type workflowAPI struct{ *api }

func (a workflowAPI) listWorkflows(r *http.Request) (WorkflowList, error) {
	return WorkflowList{Workflows: a.visible(r.Context())}, nil
}

// visible are the workflows that who asks may see and start.
func (a workflowAPI) visible(ctx context.Context) []workflow.Info {
	list := []workflow.Info{}
	for _, one := range a.opts.Workflows.Definitions() {
		operator := tool.Operator(ctx) != ""
		if !operator { // folders of this machine are none of theirs
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

// launch starts a run of a workflow that who asks may see.
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
	return a.settled(r.Context(), run, l.Wait)
}

// plan says what a run would do.
func (a workflowAPI) plan(r *http.Request, p PlanRequest) (lint.Planned, error) {
	of, err := a.workflow(r)
	if err != nil {
		return lint.Planned{}, err
	}
	return a.opts.Workflows.Plan(r.Context(), of.Name, p.Inputs)
}

// TriggerHeader lets the command line say that a run is its own.
const TriggerHeader, triggerCLI = "Sallyport-Trigger", "cli"

// settled waits for a run for some seconds at most.
func (a workflowAPI) settled(ctx context.Context, run workflow.Run, seconds int) (workflow.Run, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	now, err := a.opts.Workflows.Settled(waiting, run.ID)
	if waiting.Err() != nil && ctx.Err() == nil {
		return a.opts.Workflows.Run(ctx, run.ID)
	}
	return now, err
}
