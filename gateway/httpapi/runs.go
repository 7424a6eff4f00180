package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
)

// defaultRuns is the default limit of a list, maxRuns the maximum.
const defaultRuns, maxRuns = 50, 1000

// runStatuses are the statuses to filter runs by.
var runStatuses = []workflow.Status{workflow.Queued, workflow.Running, workflow.Waiting, workflow.OK, workflow.Failed, workflow.Canceled}

// maxPage is the maximum number of events in a response, maxPageBytes its approximate maximum size.
const maxPage, maxPageBytes = 1000, 8 << 20

// RunList is what GET /runs gives.
type RunList struct {
	// Runs are sorted, the newest first, without inputs, outputs and forms.
	Runs []workflow.Run `json:"runs"`
}

// EventList is what GET /runs/{id}/events gives.
type EventList struct {
	// Events are in order.
	Events []workflow.Event `json:"events"`
	// Next is the value of after for the following events.
	Next int `json:"next"`
	// Over says that the run is over, and that no events follow.
	Over bool `json:"over"`
}

// Nothing is the body of a request that needs none: an empty object.
type Nothing struct{}

// Replay is what POST /runs/{id}/replay takes.
type Replay struct {
	// Step is the path of the step to repeat everything from.
	Step string `json:"step"`
}

// FormAnswer is what POST /runs/{id}/answer takes.
type FormAnswer struct {
	// Step is the path of the waiting step; it may be omitted if only one waits.
	Step string `json:"step,omitempty"`
	// Values are the answered fields, by name; null withdraws an answer.
	Values json.RawMessage `json:"values" type:"object"`
}

func (a workflowAPI) runs(r *http.Request) (RunList, error) {
	query := queryOf(r)
	filter := workflow.Filter{Workflow: query.text("workflow"), Status: workflow.Status(query.text("status")), Limit: query.number("limit")}
	list := RunList{Runs: []workflow.Run{}}
	all, err := a.opts.Workflows.Runs(r.Context(), filter)
	for _, run := range all {
		list.Runs = append(list.Runs, brief(run))
	}
	return list, err
}

// brief returns a run without the parts that lists omit.
func brief(run workflow.Run) workflow.Run {
	run.Inputs, run.Outputs = nil, nil
	waiting := run.Waiting
	run.Waiting = nil
	for _, one := range waiting {
		one.Form = nil
		run.Waiting = append(run.Waiting, one)
	}
	return run
}

func (a workflowAPI) run(r *http.Request) (workflow.Run, error) {
	run, err := a.opts.Workflows.Run(r.Context(), r.PathValue("id"))
	wait := queryOf(r).number("wait")
	if err != nil || wait == 0 {
		return run, err
	}
	return a.waitSettled(r.Context(), run, wait)
}

// errFull says that a page is full.
var errFull = errors.New("the answer is full")

// page collects events for a response.
type page struct {
	EventList
	limit      int  // how many events it has at most
	omitValues bool // inputs and outputs are left out
	bytes      int
}

func (p *page) add(e workflow.Event) error {
	if len(p.Events) == p.limit || p.bytes > maxPageBytes {
		return errFull
	}
	if p.omitValues {
		e.Input, e.Output = nil, nil
	}
	p.Events, p.Next = append(p.Events, e), p.Next+1
	p.bytes += len(e.Input) + len(e.Output)
	p.Over = e.Kind == runlog.Over
	return nil
}

// events returns the events after a number, or with wait the next ones, if there are none yet.
func (a workflowAPI) events(r *http.Request) (EventList, error) {
	query, id := queryOf(r), r.PathValue("id")
	after, wait := query.number("after"), query.number("wait")
	run, err := a.opts.Workflows.Run(r.Context(), id) // checks the owner
	if err != nil {
		return EventList{}, err
	}
	p := &page{limit: query.number("limit"), omitValues: query.text("values") == "none", EventList: EventList{Events: []workflow.Event{}, Next: after, Over: run.Status.Over()}}
	for e, err := range a.opts.Workflows.Events(r.Context(), id, after) {
		if err != nil {
			return p.EventList, err
		}
		if p.add(e) != nil {
			break
		}
	}
	if len(p.Events) > 0 || p.Over || wait == 0 {
		return p.EventList, nil
	}
	err = a.await(r.Context(), id, time.Duration(wait)*time.Second, p)
	return p.EventList, err
}

// batchDelay is how long to wait for more events after the first: events come in bursts.
const batchDelay = 20 * time.Millisecond

// await adds events to the page as they occur, until there are some or the time is over.
func (a workflowAPI) await(ctx context.Context, id string, most time.Duration, p *page) error {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var soon *time.Timer
	err := a.opts.Workflows.Follow(waiting, id, p.Next, func(e workflow.Event) error {
		if soon == nil {
			soon = time.AfterFunc(batchDelay, cancel)
		}
		return p.add(e)
	})
	if soon != nil {
		soon.Stop()
	}
	if errors.Is(err, errFull) || waiting.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func (a workflowAPI) cancel(r *http.Request, _ Nothing) (workflow.Run, error) {
	if err := a.opts.Workflows.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return workflow.Run{}, err
	}
	return a.opts.Workflows.Run(r.Context(), r.PathValue("id"))
}

func (a workflowAPI) resume(r *http.Request, _ Nothing) (workflow.Run, error) {
	return a.opts.Workflows.Resume(r.Context(), r.PathValue("id"))
}

func (a workflowAPI) replay(r *http.Request, again Replay) (workflow.Run, error) {
	if again.Step == "" {
		return workflow.Run{}, invalid("step must name the step to begin with")
	}
	return a.opts.Workflows.Replay(r.Context(), r.PathValue("id"), again.Step)
}

func (a workflowAPI) answerForm(r *http.Request, form FormAnswer) (workflow.Run, error) {
	return a.opts.Workflows.Answer(r.Context(), r.PathValue("id"), form.Step, form.Values)
}
