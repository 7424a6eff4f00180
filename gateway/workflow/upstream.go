package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

// Host is the gateway that exposed workflows are attached to. *gateway.Gateway implements it.
type Host interface {
	Labels
	// ApprovalTimeout is how long a call may wait for people.
	ApprovalTimeout(ctx context.Context, call tool.Call) time.Duration
	// Closing reports whether the gateway is closing.
	Closing() bool
}

// maxChain limits chains of runs that start each other.
const maxChain = 8

// toolUpstream is an in-process upstream. Its tools are the exposed workflows.
type toolUpstream struct {
	engine *Engine
	host   Host
}

// AsUpstream returns the workflows with "expose: true" as an upstream of the gateway, for [catalog.Catalog.Attach] under the id
// [toolcall.WorkflowsID]. A call starts a run on behalf of the caller and waits for its outputs. A failed run is a result with isError.
//
// While the run waits for people, the call waits too, up to the approval timeout; then it fails, and the run continues by
// itself. When the caller disconnects, the run is canceled unless it waits for people or the gateway is closing.
func (e *Engine) AsUpstream(host Host) catalog.InProcess { return &toolUpstream{e, host} }

// Offer implements [catalog.InProcess].
func (o *toolUpstream) Offer() (offer tool.Offer) {
	for _, w := range o.engine.Definitions() {
		if w.Exposed {
			offer.Tools = append(offer.Tools, tool.Tool{Wire: w.Name, Description: w.Description, Input: w.Inputs, Output: w.Outputs})
		}
	}
	return offer
}

// Call implements [catalog.InProcess].
func (o *toolUpstream) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := o.checkExposed(call.Tool.Name); err != nil {
		return tool.Result{}, err
	}
	start := Start{Workflow: call.Tool.Name, Inputs: call.Args, Trigger: "mcp", Peer: call.Peer, Parent: call.Execution}
	if call.Execution != "" {
		start.Trigger = "program"
	}
	if by := toolcall.RunOf(ctx); by != "" {
		start.Parent = by
	}
	if err := o.checkChain(ctx, start); err != nil {
		return tool.Result{}, err
	}
	run, err := o.engine.Start(ctx, start)
	if err != nil {
		return tool.Result{}, err
	}
	run, err = o.wait(ctx, run, call)
	o.host.AddOrigins(ctx, o.host.SessionOrigins(identity(ctx, Started{ID: run.ID, Workflow: run.Workflow, Principal: run.Principal})))
	if err != nil {
		return tool.Result{}, err
	}
	return runResult(run)
}

// checkExposed returns an error if a workflow is not exposed.
func (o *toolUpstream) checkExposed(name string) error {
	d, err := o.engine.definition(name)
	if err != nil {
		return err
	}
	if !d.Expose {
		return &tool.Error{Kind: tool.NotFound, Message: "workflow " + name + " is not exposed", Hint: "set expose: true in its definition"}
	}
	return nil
}

// ofRun reports whether the parent of a run is another run, which waits for it, and not an execution.
func ofRun(parent string) bool { return strings.HasPrefix(parent, "r-") }

// checkChain returns an error if runs would start each other endlessly, or wait for each other because of a concurrency limit.
func (o *toolUpstream) checkChain(ctx context.Context, s Start) error {
	d, err := o.engine.definition(s.Workflow)
	if err != nil {
		return err
	}
	ctx = tool.WithOperator(ctx, "workflows")
	parent, same := s.Parent, 0
	for range maxChain {
		if !ofRun(parent) {
			return nil
		}
		run, _, err := o.engine.find(ctx, parent)
		if err != nil {
			return nil //nolint:nilerr // it was removed: the chain begins there
		}
		if run.Workflow == s.Workflow {
			same++
		}
		if limit := d.Concurrency.Limit; limit > 0 && same >= limit {
			return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("workflow %s may have %d runs at once, and all of them wait for this one", s.Workflow, limit), Hint: "raise its concurrency, or do not have it start itself"}
		}
		parent = run.Parent
	}
	return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d workflows have started each other already", maxChain), Hint: "a workflow that calls itself needs an end"}
}

// wait waits until a run has ended, also while the store of records does not answer: the error of the store says that nothing was done, so
// the caller would start another run.
func (o *toolUpstream) wait(ctx context.Context, run Run, call tool.Call) (Run, error) {
	for {
		now, err := o.engine.WaitSettled(ctx, run.ID)
		if err == nil && now.Status.Over() {
			return now, nil
		}
		if err == nil {
			now, err = o.waitPeople(ctx, now, call)
		}
		if ctx.Err() != nil {
			return run, o.cancelAbandoned(ctx, run)
		}
		switch {
		case isRefused(err) && o.engine.base.Err() != nil:
			return run, toolcall.ClosedError()
		case isRefused(err):
			_ = sleep.For(ctx, elsewhereInterval) // if ctx ends, so does the next wait
		case err != nil:
			return run, err
		}
	}
}

// waitPeople waits until a run that waits for people continues, up to the approval timeout. It pauses the clock of the calling program.
func (o *toolUpstream) waitPeople(ctx context.Context, run Run, call tool.Call) (Run, error) {
	defer tool.Pause(ctx)()
	limited, cancel := context.WithTimeout(ctx, o.host.ApprovalTimeout(ctx, call))
	defer cancel()
	now, err := o.engine.waitUntil(limited, run.ID, func(run Run) bool { return run.Status != Waiting || !needsPerson(run) })
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return run, waitsForPerson(run)
	}
	return now, err
}

// waitsForPerson returns the error for a run that still waits for a person, with what the person has to do.
func waitsForPerson(run Run) error {
	var what, how []string
	for _, p := range run.Waiting {
		switch p.For {
		case forApproval:
			what, how = append(what, "approval "+p.Approval), append(how, "`sallyport approvals approve "+p.Approval+"`")
		case forForm:
			what, how = append(what, "the form of step "+p.Step), append(how, "`sallyport workflow answer "+run.ID+" "+p.Step+"`")
		}
	}
	const most = 4
	how = how[:min(len(how), most)]
	return &tool.Error{
		Kind: tool.Denied, Message: fmt.Sprintf("run %s of workflow %s waits for %s, and nobody could be asked in time; it continues by itself then", run.ID, run.Workflow, strings.Join(what[:min(len(what), most)], ", ")),
		Hint: "do not call it again, tell the user: " + strings.Join(how, ", ") + "; `sallyport workflow show " + run.ID + "` has its outputs",
	}
}

// cancelAbandoned cancels the run of a caller that has disconnected, unless the run waits for people or the gateway is closing.
func (o *toolUpstream) cancelAbandoned(ctx context.Context, run Run) error {
	gone := tool.AsError(context.Cause(ctx))
	if o.host.Closing() || errors.Is(o.engine.base.Err(), context.Canceled) {
		return gone
	}
	ctx = context.WithoutCancel(ctx)
	if now, _, err := o.engine.find(ctx, run.ID); err != nil || now.Status.Over() || now.Status == Waiting && needsPerson(now) {
		return gone
	}
	if err := o.engine.Cancel(ctx, run.ID); err != nil {
		o.engine.log.Warn("cannot cancel the run of a caller that has gone", "run", run.ID, "error", err)
	}
	return gone
}

// runResult returns the call result for a finished run.
func runResult(run Run) (tool.Result, error) {
	switch run.Status {
	case OK:
		outputs := run.Outputs
		if len(outputs) == 0 {
			outputs = json.RawMessage(`{}`)
		}
		return tool.Result{Content: []tool.Content{{Type: "text", Text: string(outputs)}}, Structured: outputs}, nil
	case Canceled:
		return tool.Result{}, &tool.Error{Kind: tool.Canceled, Message: "run " + run.ID + " of workflow " + run.Workflow + " was canceled"}
	}
	return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: failedText(run)}}}, nil
}

// failedText describes why a run failed.
func failedText(run Run) string {
	text := "workflow " + run.Workflow + " failed (run " + run.ID + ")"
	f := run.Error
	if f == nil {
		return text
	}
	if f.Step != "" {
		text += " at step " + f.Step
	}
	text += ": " + f.Message
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text
}
