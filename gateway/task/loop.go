package task

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/argcheck"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxKept bounds a turn's text in the record, in bytes.
	maxKept = 32 << 10
	// maxRecordedCalls bounds the calls that a turn lists.
	maxRecordedCalls = 50
	// searchBudget bounds what one search shows, in tokens; searchLimit the tools that are looked at for an allow-list.
	searchBudget, searchLimit = 800, 100
	// maxInvalid is how many replies in a row may be none of the blocks.
	maxInvalid = 3
)

// work works on a task until it is over.
func (t *Tasks) work(caller context.Context, w *work, r Request) {
	settings := t.opts.Settings.Load().Tasks
	ctx := scope(caller, w.now())
	t.records.put(ctx, w.now())
	l := &loop{tasks: t, work: w, request: r, settings: settings, dialog: newDialog(), caller: caller, charged: t.opts.Now()}
	ctx, cancel, err := l.limitTime(ctx)
	defer cancel()
	status := Failed
	if err == nil {
		l.inherit(ctx)
		status, err = l.run(ctx)
	}
	l.charge(ctx, models.Usage{}, 0)
	t.end(ctx, w, status, err)
}

// scope returns the context of a task's programs: their labels add up in a session of the task, unless the caller has one,
// and they call only what the task may.
func scope(ctx context.Context, now Task) context.Context {
	if tool.Session(ctx) == "" {
		ctx = tool.WithSession(ctx, now.ID)
	}
	return toolcall.WithOnly(ctx, now.Only)
}

// loop is a running task.
type loop struct {
	tasks    *Tasks
	work     *work
	request  Request
	settings config.Tasks
	dialog   dialog
	messages []models.Message
	// invalid and failed count in a row; resume is the failed execution that the next program repairs.
	invalid, failed int
	resume          string
	ran             bool
	// caller is the context of who gets the answer, without the session of the task.
	caller context.Context //nolint:containedctx // of the task, as its loop
	// charged is the time up to which the day of the principal was charged.
	charged time.Time
}

// run works on the task by a model, or by rules.
func (l *loop) run(ctx context.Context) (Status, error) {
	m, why := l.tasks.model(l.request)
	l.messages = []models.Message{{Text: l.dialog.first(l.request)}}
	if l.request.old != nil {
		if status, over, err := l.again(ctx, m); over || err != nil {
			return status, err
		}
	}
	if m == nil {
		return l.byRules(ctx, why)
	}
	l.work.change(func(t *Task) { t.Model = m.name })
	status, err := l.turns(ctx, m)
	if failed, ok := err.(*modelError); ok && !l.ran && ctx.Err() == nil { //nolint:errorlint // ours, unwrapped
		return l.byRules(ctx, "The model failed: "+tool.AsError(failed.cause).Error())
	}
	return status, err
}

// modelError is a failure of the model, as opposed to a limit of the task.
type modelError struct{ cause error }

// Error implements error.
func (m *modelError) Error() string { return m.cause.Error() }

// Unwrap returns the cause.
func (m *modelError) Unwrap() error { return m.cause }

func (l *loop) turns(ctx context.Context, m *model) (Status, error) {
	for {
		now := l.work.now()
		if err := l.withinLimits(ctx, now); err != nil {
			return Failed, err
		}
		begun := time.Now()
		answer, err := m.ask(ctx, models.Request{System: l.dialog.system(), Messages: l.messages})
		if err != nil {
			return Failed, &modelError{err}
		}
		turn := Turn{Begun: begun.UTC(), Model: answer.Model, Tokens: answer.Usage, Price: m.price.Of(answer.Usage), Waited: answer.Waited}
		l.spend(ctx, turn) // before anything else, so that a task that is stopped has paid
		status, next, err := l.take(ctx, answer, &turn)
		turn.Duration, turn.Shown, turn.Text = time.Since(begun), len(next), sanitize.Text(turn.Text, maxKept)
		l.work.change(func(t *Task) { t.Turns = append(t.Turns, turn) })
		l.tasks.records.put(ctx, l.work.now())
		if status != Running || err != nil {
			return status, err
		}
		l.messages = append(l.messages, models.Message{Assistant: true, Text: spoken(answer.Text)}, models.Message{Text: next})
	}
}

// spoken is the text of a model, as it is sent back: never empty, which endpoints refuse.
func spoken(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(nothing)"
	}
	return text
}

// take does what a reply asks for, and returns what the model reads next.
func (l *loop) take(ctx context.Context, a models.Answer, turn *Turn) (Status, string, error) {
	r, wrong := parse(a.Text)
	if a.Cut && r.kind == KindInvalid {
		wrong = "The reply was too long and was cut. Write a shorter program."
	}
	turn.Kind, turn.Text, turn.Language = r.kind, r.text, r.language
	switch r.kind {
	case KindSearch:
		l.invalid = 0
		next, err := l.search(ctx, r.text, turn)
		return Running, next, err
	case KindProgram:
		l.invalid = 0
		return l.program(ctx, r, turn)
	case KindAnswer:
		if wrong = l.wrongAnswer(r.text); wrong == "" {
			l.work.change(func(t *Task) { t.Answer = r.text })
			return Done, "", nil
		}
	}
	l.invalid++
	turn.Error = sanitize.Line(wrong, 300)
	return Running, wrong, nil
}

// wrongAnswer returns what is wrong with an answer, "" if it matches the schema of the request.
func (l *loop) wrongAnswer(text string) string {
	if len(l.request.Output) == 0 {
		return ""
	}
	if !json.Valid([]byte(text)) {
		return "The answer must be JSON and nothing else."
	}
	var all []string
	for _, v := range argcheck.Explain(l.request.Output, json.RawMessage(text)) {
		all = append(all, strings.TrimPrefix(strings.Join(v.At, ".")+": "+v.Message, ": "))
	}
	if len(all) == 0 {
		return ""
	}
	return "The answer does not match its schema: " + strings.Join(all, "; ")
}

// search returns the tools that the task may use.
func (l *loop) search(ctx context.Context, query string, turn *Turn) (string, error) {
	found, err := l.tasks.find(ctx, query, l.request.Only, searchBudget)
	if err != nil {
		e := tool.AsError(err)
		if e.Kind == tool.Canceled || e.Kind == tool.Internal {
			return "", err
		}
		turn.Error = e.Error()
		return "The search failed: " + e.Error(), nil
	}
	for _, f := range found.Tools {
		turn.Found = append(turn.Found, f.ID.String())
	}
	return l.dialog.data(found.Text()), nil
}

// find searches within an allow-list.
func (t *Tasks) find(ctx context.Context, query string, only []string, budget int) (toolsearch.Found, error) {
	s := toolsearch.Request{Query: sanitize.Line(query, toolsearch.MaxQuery), Budget: budget}
	if len(only) == 1 {
		s.Upstream = only[0]
	}
	if len(only) < 2 {
		return t.opts.Gateway.Search(ctx, s)
	}
	s.Limit, s.Budget = searchLimit, budget*4
	found, err := t.opts.Gateway.Search(ctx, s)
	kept := found.Tools[:0]
	for _, f := range found.Tools {
		for _, id := range only {
			if f.ID.Upstream == id {
				kept = append(kept, f)
			}
		}
	}
	found.Tools, found.Total = kept, len(kept)
	return found, err
}

// program runs a program of the model. One that follows a failed one repairs it: calls that succeeded are not repeated.
func (l *loop) program(ctx context.Context, r reply, turn *Turn) (Status, string, error) {
	l.work.change(func(t *Task) { t.Program, t.Language = r.text, r.language })
	if l.request.Plan {
		return Planned, "", nil
	}
	e, err := l.execute(ctx, r.text, r.language, turn)
	if err != nil {
		said := tool.AsError(err)
		turn.Status, turn.Error = "refused", said.Error()
		if said.Kind != tool.Invalid && said.Kind != tool.NotFound {
			return Failed, "", err
		}
		l.failed++
		return Running, "The program was not run: " + said.Error(), nil
	}
	if e.Status == execution.Held {
		return Held, "", nil
	}
	l.failed++
	if !e.Failed() {
		l.failed, l.resume = 0, ""
	}
	return Running, l.dialog.result(e), ctx.Err()
}

// execute runs a program through the door of all programs, and records it in a turn.
func (l *loop) execute(ctx context.Context, code, language string, turn *Turn) (execution.Result, error) {
	program := execution.Program{
		ID: execution.NewID(), Code: code, Language: language, Workspace: l.request.Workspace, Environment: l.request.Environment, Peer: l.request.Peer, Resume: l.resume,
	}
	before := l.work.now().Execution
	l.noteExecution(ctx, program.ID, nil)
	e, err := l.tasks.opts.Gateway.Execute(ctx, program)
	if tool.AsError(err).Kind == tool.Invalid && l.resume != "" && code != "" { // in another language, or too late
		program.Resume = ""
		e, err = l.tasks.opts.Gateway.Execute(ctx, program)
	}
	l.pass(ctx)
	if err != nil {
		l.noteExecution(ctx, before, nil)
		return e, err
	}
	var held []string
	for _, a := range e.Approvals {
		held = append(held, a.ID)
	}
	l.noteExecution(ctx, e.ID, held)
	l.ran, l.resume = true, e.Resume
	if l.request.old != nil && e.Failed() && e.Journaled {
		l.resume = e.ID // what a person has approved is not asked again
	}
	turn.Execution, turn.Status = e.ID, string(e.Status)
	if e.Failed() {
		turn.Error = sanitize.Line(e.Ending(), 300)
	}
	if record, err := l.tasks.opts.Gateway.Record(ctx, e.ID); err == nil {
		for _, c := range record.Calls[:min(len(record.Calls), maxRecordedCalls)] {
			turn.Calls = append(turn.Calls, c.Tool.String()+" "+c.Outcome)
		}
	}
	return e, nil
}

// noteExecution records which execution runs the task's program, before it runs: a task whose process is killed can be
// resumed at it.
func (l *loop) noteExecution(ctx context.Context, id string, held []string) {
	l.work.change(func(t *Task) { t.Execution, t.Approvals = id, held })
	l.tasks.records.put(ctx, l.work.now())
}
