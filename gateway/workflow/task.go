package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"sallyport/gateway/approvals"
	"sallyport/gateway/task"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Tasks does tasks in words. *task.Tasks implements it.
type Tasks interface {
	Run(ctx context.Context, r task.Request, seen func(task.Task)) (task.Task, error)
	Resume(ctx context.Context, id string, peer tool.Peer, seen func(task.Task)) (task.Task, error)
	Show(ctx context.Context, id string) (task.Task, error)
}

// taskRun runs task steps. A step has one task, which a later attempt, or a run that was resumed, continues: a task that is
// done is not done again, and calls that its programs have made are not repeated.
type taskRun struct{ *run }

func (r taskRun) task(ctx context.Context, f *frame, n *node, do *spec.Task, at location, attempt int) (result, error) {
	request, input, err := r.request(ctx, f, n, do)
	if err != nil {
		return result{}, err
	}
	if out, done, err := toolRun(r).callStub(ctx, n, at, attempt, input); done || err != nil {
		return out, err
	}
	if r.engine.opts.Tasks == nil {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: "tasks cannot be done here", Hint: "in a test, give the step a stub"}
	}
	if out, done, err := toolRun(r).resolveByRule(ctx, n, at, attempt); done || err != nil {
		return out, err
	}
	if pending := at.history.pendingWait(); pending != nil && pending.Approval != "" && pending.Why == "" {
		if err := waitRun(r).waitDecision(ctx, at, *pending); err != nil {
			return result{}, err
		}
	}
	request.ID = r.idOf(at)
	for {
		t, err := r.work(ctx, at, attempt, request, input)
		if err != nil {
			return result{}, err
		}
		if t.Status != task.Held {
			return taskResult(do, t)
		}
		if err := r.waitHeld(ctx, at, t); err != nil {
			return result{}, err
		}
	}
}

// request returns the task of a step, and what the log has of it.
func (r taskRun) request(ctx context.Context, f *frame, n *node, do *spec.Task) (q task.Request, input json.RawMessage, err error) {
	if q.Task, err = f.text(ctx, n.words, "the task"); err != nil {
		return q, nil, err
	}
	with, err := toolRun(r).arguments(ctx, f, n)
	if err != nil {
		return q, nil, err
	}
	if err := json.Unmarshal(with, &q.Args); err != nil {
		return q, nil, err
	}
	q.Output, q.Model, q.Peer = do.Returns, do.Model.Text, r.peer
	for _, name := range do.Only {
		q.Only = append(q.Only, name.Text)
	}
	input, err = encode(map[string]any{"task": q.Task, "with": json.RawMessage(with)}, maxOutput)
	return q, input, err
}

// idOf returns the id of the step's task: that of an earlier attempt, or a new one.
func (r taskRun) idOf(at location) string {
	if at.history != nil && at.history.task != "" {
		return at.history.task
	}
	if id, ok := r.tasks.Load(at.path); ok {
		return id.(string) //nolint:forcetypeassert // only ids are stored
	}
	return task.NewID()
}

// work logs the task and then does it, or continues it.
func (r taskRun) work(ctx context.Context, at location, attempt int, q task.Request, input json.RawMessage) (task.Task, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return task.Task{}, err
	}
	defer leave()
	if err := r.recordStart(ctx, at, attempt, Event{Input: input, Task: q.ID}); err != nil {
		return task.Task{}, err
	}
	r.tasks.Store(at.path, q.ID)
	ctx = toolcall.WithRun(atStep(ctx, r.id, at.path), r.id)
	t, err := r.continued(ctx, q)
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	return t, err
}

// continued returns the task if it is done, resumes it if a program of it ran, and else does it.
func (r taskRun) continued(ctx context.Context, q task.Request) (task.Task, error) {
	tasks := r.engine.opts.Tasks
	before, err := tasks.Show(ctx, q.ID)
	switch {
	case err != nil && tool.AsError(err).Kind != tool.NotFound:
		return before, err
	case err == nil && before.Status == task.Done:
		return before, nil
	case err == nil && before.Execution != "":
		return tasks.Resume(ctx, q.ID, q.Peer, nil)
	}
	return tasks.Run(ctx, q, nil)
}

// waitHeld waits until the calls that hold a task are decided.
func (r taskRun) waitHeld(ctx context.Context, at location, t task.Task) error {
	if r.engine.opts.Approvals == nil || len(t.Approvals) == 0 {
		return &tool.Error{Kind: tool.Denied, Message: "a call of the task needs approval, and nobody can be asked here", Hint: "run it in a gateway: sallyport serve"}
	}
	var all []approvals.Approval
	for _, id := range t.Approvals {
		a, err := r.engine.opts.Approvals.Approval(ctx, id)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	return waitRun(r).waitDecisions(ctx, at, all)
}

// taskResult converts the answer of a task to the result of its step.
func taskResult(do *spec.Task, t task.Task) (result, error) {
	switch t.Status {
	case task.Done:
	case task.Asked:
		var names []string
		for _, q := range t.Questions {
			names = append(names, q.Name)
		}
		return result{}, &tool.Error{Kind: tool.Invalid, Message: "the task needs to know: " + sanitize.Line(strings.Join(names, ", "), 200), Hint: "give these in with"}
	case task.Canceled:
		return result{}, &tool.Error{Kind: tool.Canceled, Message: "the task was canceled"}
	default:
		return result{}, &tool.Error{Kind: taskKind(t), Message: "task " + t.ID + ": " + t.Error}
	}
	v, err := decode([]byte(t.Answer))
	if err != nil {
		return result{}, errors.Join(&tool.Error{Kind: tool.Invalid, Message: "the answer of the task is not JSON"}, err)
	}
	if err := validate(do.Returns, v, "the answer of the task"); err != nil {
		return result{}, err
	}
	return normalize(v, maxOutput)
}

func taskKind(t task.Task) tool.Kind {
	if t.Kind == "" {
		return tool.Failed
	}
	return tool.Kind(t.Kind)
}
