package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// defaultFormTimeout is the default timeout of a form.
const defaultFormTimeout = 24 * time.Hour

// formSession is a form that is being filled at a step. Answers are logged. It implements [forms.Filler].
type formSession struct {
	run  *run
	at   location
	form *forms.Form
	env  forms.Env

	mu    sync.Mutex // guards state, and serializes questions and answers
	state *forms.State
}

// formRun asks people for the values of forms.
type formRun struct{ *run }

// form asks a person for what is missing.
func (r formRun) form(ctx context.Context, f *frame, n *node, do *spec.Form, at location, attempt int) (result, error) {
	if at.history.currentAttempt() != attempt {
		if err := r.recordStart(ctx, at, attempt, Event{}); err != nil {
			return result{}, err
		}
	}
	fill, err := r.loadSession(f, n, at)
	if err != nil {
		return result{}, err
	}
	ask, err := fill.Next(ctx)
	if err == nil && ask != nil {
		err = r.askForm(ctx, fill, ask, do)
	}
	if err != nil {
		return result{}, err
	}
	v, err := fill.form.Result(ctx, fill.env, fill.state)
	if err != nil {
		return result{}, err
	}
	return normalize(v, maxOutput)
}

// loadSession returns the form with the answers from the log.
func (r formRun) loadSession(f *frame, n *node, at location) (*formSession, error) {
	fill := &formSession{run: r.run, at: at, form: n.form, state: &forms.State{}}
	fill.env = forms.Env{Vars: f.vars, Call: func(ctx context.Context, c forms.Call) (any, error) { return r.formCall(ctx, n, at, c) }}
	if at.history != nil && len(at.history.answers) > 0 {
		if err := json.Unmarshal(at.history.answers[len(at.history.answers)-1], fill.state); err != nil {
			return nil, err
		}
	}
	return fill, nil
}

// formCall calls a tool that provides values of a form. It is logged like a step, so that it is not repeated.
func (r formRun) formCall(ctx context.Context, n *node, at location, c forms.Call) (any, error) {
	inner := at.block(c.Key)
	if before, ok, err := inner.history.endResult(); ok || err != nil {
		return before.value, before.error(err)
	}
	id, err := tool.ParseID(c.Tool)
	if err != nil {
		return nil, err
	}
	out, done, err := toolRun(r).resolveInterrupted(ctx, n, inner, 1, r.engine.safeToRepeat(id))
	if err != nil {
		return nil, err
	}
	if done {
		out, err = r.end(ctx, inner, n.Line, out, nil, true)
		return out.value, err
	}
	call := tool.Call{Tool: id, Args: c.Args, Execution: r.id, Peer: r.peer}
	out, err = toolRun(r).callApproved(ctx, inner, func() (result, error) { return toolRun(r).callTool(ctx, inner, 1, call) })
	if err != nil {
		err = r.newFailure(ctx, ctx, inner.path, n.Line, err)
	}
	out, err = r.end(ctx, inner, n.Line, out, err, true)
	return out.value, err
}

// Next implements [forms.Filler].
func (f *formSession) Next(ctx context.Context) (*forms.Ask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.form.Next(ctx, f.env, f.state)
}

// Answer implements [forms.Filler]. The valid answers are logged when it returns.
func (f *formSession) Answer(ctx context.Context, values map[string]any) ([]forms.Problem, error) {
	return f.answer(ctx, values, "")
}

func (f *formSession) answer(ctx context.Context, values map[string]any, by string) ([]forms.Problem, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	problems, err := f.form.Answer(ctx, f.env, f.state, values)
	if err != nil {
		return nil, err
	}
	kept, err := json.Marshal(f.state)
	if err != nil {
		return nil, err
	}
	return problems, f.run.log.write(ctx, Event{Kind: Answered, Path: f.at.path, Input: kept, By: by})
}

// formAnswer is an answer to a form, and the channel for its result.
type formAnswer struct {
	values map[string]any
	by     string
	reply  chan error
}

// askForm waits until a form is complete. It asks the starter of the run; anyone else can answer with [Engine.Answer].
func (r formRun) askForm(ctx context.Context, fill *formSession, ask *forms.Ask, do *spec.Form) error {
	until := time.Now().Add(cmp.Or(do.Timeout, defaultFormTimeout))
	if p := fill.at.history.pendingWait(); p != nil && p.For == forForm {
		until = p.Until
	}
	p, err := pendingForm(fill.at.path, ask, until)
	if err != nil {
		return err
	}
	answers := make(chan formAnswer)
	shut := r.openForms.add(fill.at.path, answers) // before the run is seen to wait for it
	defer shut()
	return waitRun(r).suspend(ctx, fill.at, p, func() error {
		defer shut() // and until it is not seen to wait any more
		ctx, stop := context.WithDeadlineCause(ctx, until, &tool.Error{Kind: tool.Timeout, Message: "nobody has answered in time"})
		defer stop()
		asked, wait := r.askPeer(ctx, fill)
		defer wait()
		defer stop()
		return r.collect(ctx, fill, answers, asked, until)
	})
}

// collect receives answers until the form is complete.
func (r formRun) collect(ctx context.Context, fill *formSession, answers <-chan formAnswer, asked <-chan error, until time.Time) error {
	for {
		select {
		case a := <-answers:
			complete, err := r.answer(ctx, fill, a, until)
			if complete || err != nil {
				return err
			}
		case err := <-asked:
			if err != nil && ctx.Err() == nil {
				return err
			}
			if next, err := fill.Next(ctx); next == nil || err != nil {
				return err
			}
			asked = nil // the client declined; others may answer
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// answer applies one answer, replies with its problems, and updates the pending questions.
func (r formRun) answer(ctx context.Context, fill *formSession, a formAnswer, until time.Time) (complete bool, err error) {
	problems, err := fill.answer(ctx, a.values, a.by)
	var ask *forms.Ask
	if err == nil {
		ask, err = fill.Next(ctx)
	}
	if err == nil && ask != nil {
		var p Pending
		if p, err = pendingForm(fill.at.path, ask, until); err == nil {
			r.state.updatePending(p)
		}
	}
	if ask == nil {
		r.state.endWait(fill.at.path) // so that the answering caller sees the new state
	}
	switch {
	case err != nil:
		a.reply <- tool.AsError(err)
	case len(problems) > 0:
		a.reply <- problemsError(problems)
	default:
		a.reply <- nil
	}
	return ask == nil, err
}

func problemsError(problems []forms.Problem) error {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return &tool.Error{Kind: tool.Invalid, Message: strings.Join(texts, "\n")}
}

func pendingForm(path string, ask *forms.Ask, until time.Time) (Pending, error) {
	shown, err := json.Marshal(ask)
	return Pending{Step: path, For: forForm, Until: until.UTC(), Form: shown}, err
}

// askPeer asks the starter of the run in the background, if possible. over receives the result; wait waits for the goroutine.
func (r formRun) askPeer(ctx context.Context, fill *formSession) (over <-chan error, wait func()) {
	if r.peer == nil {
		return nil, func() {}
	}
	done := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() {
		_, err := forms.AskPeer(ctx, r.peer, "workflow "+r.started.Workflow, fill)
		done <- err
	})
	return done, work.Wait
}

// formRegistry holds the open forms of a run. The zero value is ready to use; it is safe for concurrent use.
type formRegistry struct {
	mu   sync.Mutex
	open map[string]chan formAnswer // by the path of the step
}

// add registers a form until close is called.
func (d *formRegistry) add(path string, answers chan formAnswer) (close func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]chan formAnswer{}
	}
	d.open[path] = answers
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, path)
	}
}

// find returns the form at a step; "" finds the only open form.
func (d *formRegistry) find(path string) chan formAnswer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if path == "" && len(d.open) == 1 {
		for _, only := range d.open {
			return only
		}
	}
	return d.open[path]
}

// Answer answers a form of a run. values is a JSON object of some or all fields. Valid values are stored; the error, of kind invalid,
// lists the problems of the others by field. step is the path of the form, "" if only one is open. Errors are *tool.Error.
func (e *Engine) Answer(ctx context.Context, id, step string, values json.RawMessage) (Run, error) {
	run, l, err := e.find(ctx, id)
	if err != nil {
		return Run{}, err
	}
	if run.Status.Over() {
		return run, &tool.Error{Kind: tool.Invalid, Message: "run " + id + " is over: " + string(run.Status)}
	}
	v, err := decode(values)
	given, ok := v.(map[string]any)
	if err != nil || !ok {
		return run, &tool.Error{Kind: tool.Invalid, Message: "answers must be a JSON object, by field"}
	}
	if l == nil {
		l = e.queue.put(e.restore(run))
	}
	answers, err := l.waitForm(ctx, step)
	if err != nil {
		return run, err
	}
	a := formAnswer{given, callerName(ctx), make(chan error, 1)}
	if err := l.submit(ctx, step, answers, a); err != nil {
		return run, err
	}
	run, _, _ = l.state.snapshot()
	return run, nil
}

// waitForm waits for a form of a run to be open. It returns an error if none will be.
func (l *live) waitForm(ctx context.Context, step string) (chan formAnswer, error) {
	if err := l.waitStarted(ctx); err != nil {
		return nil, err
	}
	for {
		run, changed, left := l.state.snapshot()
		if answers := l.run.openForms.find(step); answers != nil {
			return answers, nil
		}
		if left != nil {
			return nil, left
		}
		if run.Status != Running {
			return nil, noForm(run, step)
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
			return nil, noForm(run, step)
		case <-ctx.Done():
			return nil, tool.AsError(context.Cause(ctx))
		}
	}
}

func noForm(run Run, step string) error {
	wrong := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("run %s has no open form at %s", run.ID, sanitize.Line(step, 100))}
	if step == "" {
		wrong.Message = "run " + run.ID + " has no open form, or several"
	}
	for _, p := range run.Waiting {
		if p.For == forForm {
			wrong.Hint = strings.TrimPrefix(wrong.Hint+", "+p.Step, ", ")
		}
	}
	if wrong.Hint != "" {
		wrong.Hint = "it waits at " + wrong.Hint
	}
	return wrong
}

// submit submits an answer, and returns its problems as an error.
func (l *live) submit(ctx context.Context, step string, answers chan formAnswer, a formAnswer) error {
	for {
		_, changed, _ := l.state.snapshot()
		if l.run.openForms.find(step) != answers {
			return &tool.Error{Kind: tool.Invalid, Message: "the form is no longer open"}
		}
		select {
		case answers <- a:
			return <-a.reply
		case <-changed:
		case <-ctx.Done():
			return tool.AsError(context.Cause(ctx))
		}
	}
}
