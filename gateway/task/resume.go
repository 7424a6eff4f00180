package task

import (
	"context"
	"errors"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Resume continues a task that is held or failed, at its last program: calls that succeeded are not repeated. It calls
// seen as [Tasks.Run] does.
func (t *Tasks) Resume(ctx context.Context, id string, peer tool.Peer, seen func(Task)) (Task, error) {
	r, err := t.resumable(ctx, id)
	if err != nil {
		return Task{}, err
	}
	r.Peer = peer
	return t.Run(ctx, r, seen)
}

// StartResume is Resume as [Tasks.Start].
func (t *Tasks) StartResume(ctx context.Context, id string) (Task, error) {
	r, err := t.resumable(ctx, id)
	if err != nil {
		return Task{}, err
	}
	return t.Start(ctx, r)
}

// resumable returns the request that continues a task.
func (t *Tasks) resumable(ctx context.Context, id string) (Request, error) {
	old, err := t.Show(ctx, id)
	if err != nil {
		return Request{}, err
	}
	if !old.Resumable() {
		return Request{}, toolcall.Invalid("task "+old.ID+" cannot be resumed: it is "+string(old.Status), "a held, failed or canceled task whose program ran can be")
	}
	if old.Principal != tool.Principal(ctx) {
		return Request{}, toolcall.Invalid("task "+old.ID+" is of another principal", "only its own principal can resume it")
	}
	if at := tool.Endpoint(ctx); at != "" && at != old.Endpoint {
		return Request{}, toolcall.Invalid("task "+old.ID+" is of another endpoint", "resume it where it began")
	}
	r := Request{ID: old.ID, Task: old.Task, Args: old.Args, Only: old.Only, Output: old.Output, Workspace: old.Workspace, Environment: old.Environment, old: &old}
	if r.NoModel = old.Model == "rules"; !r.NoModel {
		r.Model = old.Model
	}
	if _, known := t.opts.Settings.Load().Models[r.Model]; !known {
		r.Model = ""
	}
	return r, nil
}

// again resumes the last program, and returns what the model reads of it. over is set if the task has ended.
func (l *loop) again(ctx context.Context, m *model) (status Status, over bool, err error) {
	old := l.request.old
	turn := Turn{Kind: KindProgram, Text: sanitize.Text(old.Program, maxKept), Language: old.Language, Begun: time.Now().UTC()}
	l.resume = old.Execution
	e, err := l.execute(ctx, "", old.Language, &turn)
	if errors.Is(err, history.ErrNoExecution) { // it was killed before its journal existed
		l.resume = ""
		e, err = l.execute(ctx, old.Program, old.Language, &turn)
	}
	turn.Duration = time.Since(turn.Begun)
	if err != nil {
		turn.Error = tool.AsError(err).Error()
	}
	l.work.change(func(t *Task) { t.Turns = append(t.Turns, turn) })
	switch {
	case err != nil:
		return Failed, true, err
	case e.Status == execution.Held:
		return Held, true, nil
	case m == nil:
		status, err = l.answered(e)
		return status, true, err
	}
	l.messages = append(l.messages, models.Message{Assistant: true, Text: "```" + old.Language + "\n" + old.Program + "\n```"}, models.Message{Text: l.dialog.result(e)})
	return Running, false, nil
}
