package task

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// Labels carry the labels of data that was read from one session to another. *guard.Guard implements it.
type Labels interface {
	// SessionOrigins returns the labels that the session of ctx has read; AddOrigins adds to them.
	SessionOrigins(ctx context.Context) []toolcall.Origin
	AddOrigins(ctx context.Context, read []toolcall.Origin)
	// ShareSession adds the labels and the tokens of personal data of from's session to those of to's.
	ShareSession(from, to context.Context)
}

// inherit adds what the caller has read to the session of the task, as its words may contain it, and what the task had read
// before it was interrupted.
func (l *loop) inherit(ctx context.Context) {
	labels := l.tasks.opts.Labels
	if labels == nil {
		return
	}
	if tool.Session(ctx) != tool.Session(l.caller) {
		labels.ShareSession(l.caller, ctx)
	}
	if old := l.request.old; old != nil {
		labels.AddOrigins(ctx, old.Read)
	}
	l.pass(ctx)
}

// pass adds what the task has read to the session of the caller, who sees its turns and its answer, and to the record.
func (l *loop) pass(ctx context.Context) {
	labels := l.tasks.opts.Labels
	if labels == nil {
		return
	}
	if tool.Session(ctx) != tool.Session(l.caller) {
		labels.ShareSession(ctx, l.caller)
	}
	read := labels.SessionOrigins(ctx)
	l.work.change(func(t *Task) { t.Read = read })
}
