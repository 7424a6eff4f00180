package flowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Programs runs code in a sandbox. *gateway.Gateway implements it.
type Programs interface {
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
}

// Options are the options of Run.
type Options struct {
	// Definitions are the tested workflows, and those that they start.
	Definitions []*spec.Definition
	// Programs runs the code of steps: its calls use the stubs, and /workspace is empty at the start of each
	// test and removed after it. If nil, steps with code need stubs.
	Programs Programs
	// Skills returns the languages of skills; nil has none.
	Skills workflow.Catalog
	// Timeout bounds one test; 0 is a minute.
	Timeout time.Duration
	// Logger is the engine's logger; nil discards.
	Logger *slog.Logger

	onEvents func(events []workflow.Event) // for tests: called with the events of each run
}

// Run runs the tests of files in order and returns their results. When ctx ends, the remaining tests fail.
func Run(ctx context.Context, files []*File, o Options) (results []Result) {
	for _, f := range files {
		for i := range f.Tests {
			results = append(results, runTest(ctx, f, &f.Tests[i], o))
		}
	}
	return results
}

// runTest runs one test.
func runTest(ctx context.Context, f *File, t *Test, o Options) Result {
	began := time.Now()
	r := Result{File: f.Path, Test: t.Name, Line: t.Line}
	r.Failures = failures(ctx, f, t, o)
	slices.SortStableFunc(r.Failures, func(a, b Failure) int { return a.Line - b.Line })
	r.Seconds = time.Since(began).Seconds()
	return r
}

// failures runs a test with its own store.
func failures(ctx context.Context, f *File, t *Test, o Options) []Failure {
	if !slices.ContainsFunc(o.Definitions, func(d *spec.Definition) bool { return d.Name == f.Workflow }) {
		return []Failure{f.unknownWorkflow(t, o.Definitions)}
	}
	limit := o.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	records := store.Memory()
	defer func() { _ = records.Close() }()
	folder, err := os.MkdirTemp("", "sallyport-test-")
	if err != nil {
		return []Failure{{t.Line, err.Error()}}
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s := newStubGateway(t, o.Programs, folder)
	engine, err := workflow.Open(s, &workflow.Options{
		Records: records, Definitions: func() []*spec.Definition { return o.Definitions }, Logger: o.Logger, Env: t.env,
		Approvals: s, Catalog: o.Skills, Stub: s.stubStep, Now: func() time.Time { return t.Started }, NoRetryDelay: !t.Real,
	})
	if err != nil {
		return []Failure{{t.Line, err.Error()}}
	}
	defer func() { _ = engine.Close() }()
	return (&testRun{stubGateway: s, engine: engine, test: t, limit: limit, onEvents: o.onEvents}).run(ctx, f.Workflow)
}

func (t *Test) env(name string) (string, bool) {
	value, ok := t.Env[name]
	return value, ok
}

// unknownWorkflow returns the failure for an unknown workflow.
func (f *File) unknownWorkflow(t *Test, definitions []*spec.Definition) Failure {
	var names []string
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	message := fmt.Sprintf("there is no workflow %q", f.Workflow)
	if meant := suggest.Of(f.Workflow, names); meant != "" {
		message += fmt.Sprintf("; did you mean %q?", meant)
	}
	line := t.Line
	if f.nameNode != nil {
		line = f.nameNode.Line
	}
	return Failure{line, message}
}

// testRun is a running test.
type testRun struct {
	*stubGateway
	engine   *workflow.Engine
	test     *Test
	limit    time.Duration
	onEvents func([]workflow.Event)
}

// run starts the run, answers its forms, and compares its result.
func (r *testRun) run(ctx context.Context, name string) []Failure {
	run, err := r.engine.Start(ctx, workflow.Start{Workflow: name, Inputs: r.test.Inputs, Trigger: "workflow test", Key: "test"})
	if err != nil {
		return r.compareStartError(err)
	}
	run, err = r.waitOver(ctx, run.ID)
	if err != nil {
		return []Failure{{r.test.Line, r.timeoutMessage(ctx, run, err)}}
	}
	r.mu.Lock()
	missing := r.missing
	r.mu.Unlock()
	if len(missing) > 0 { // other failures are a consequence
		return missing
	}
	events, err := r.events(ctx, run.ID)
	if err != nil {
		return []Failure{{r.test.Line, err.Error()}}
	}
	if r.onEvents != nil {
		r.onEvents(events)
	}
	failures := r.compare(run, events)
	if run.Status == workflow.OK { // after a failure, later stubs are unused
		failures = append(failures, r.unusedStubs()...)
	}
	return failures
}

// compareStartError compares the error of a run that could not be started.
func (r *testRun) compareStartError(err error) []Failure {
	wrong := tool.AsError(err)
	return r.compare(workflow.Run{Status: workflow.Failed, Error: &workflow.Fault{Kind: wrong.Kind, Message: wrong.Message, Hint: wrong.Hint}}, nil)
}

func (r *testRun) timeoutMessage(ctx context.Context, run workflow.Run, err error) string {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err.Error()
	}
	text := fmt.Sprintf("the run is not over after %s; it is %s", r.limit, run.Status)
	var waits []string
	for _, p := range run.Waiting {
		waits = append(waits, fmt.Sprintf(", step %s for %s", p.Step, p.For))
	}
	return text + strings.Join(waits, "")
}

// waitOver waits until the run has ended, and answers its forms.
func (r *testRun) waitOver(ctx context.Context, id string) (workflow.Run, error) {
	answered := map[string]answer{}
	for {
		run, err := r.engine.WaitSettled(ctx, id)
		if err != nil || run.Status.Over() {
			return run, err
		}
		for _, p := range run.Waiting {
			if p.For == "form" && !r.answer(ctx, id, p, answered) {
				return run, errors.Join(r.engine.Cancel(ctx, id), r.waitEnd(ctx, id))
			}
		}
	}
}

// answer is the time of an answer and the form that was answered.
type answer struct {
	at   time.Time
	form string
}

// answerGrace is how long the engine may take to continue after an answer.
const answerGrace = 2 * time.Second

func (r *testRun) waitEnd(ctx context.Context, id string) error {
	_, err := r.engine.Wait(ctx, id)
	return err
}

// answer answers a form once. It reports whether the run can continue.
func (r *testRun) answer(ctx context.Context, id string, p workflow.Pending, answered map[string]answer) bool {
	values, ok := r.test.Answers[p.Step]
	before, again := answered[p.Step]
	switch {
	case !ok:
		r.fail(fmt.Sprintf("step %s asks a person, and \"answers\" has no answer for it; it asks for\n%s", p.Step, describeForm(p.Form)))
		return false
	case again && before.form == string(p.Form) && time.Since(before.at) < answerGrace:
		time.Sleep(time.Millisecond) // it has not continued yet
		return true
	case again:
		r.fail(fmt.Sprintf("the answers of step %s are incomplete; it still asks for\n%s", p.Step, describeForm(p.Form)))
		return false
	}
	answered[p.Step] = answer{time.Now(), string(p.Form)}
	if _, err := r.engine.Answer(ctx, id, p.Step, values); err != nil {
		r.fail(fmt.Sprintf("the answers of step %s are refused: %s", p.Step, tool.AsError(err)))
		return false
	}
	return true
}

func (r *testRun) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addMissing(r.test.Line, text)
}

// describeForm lists the fields that a form asks for, one per line.
func describeForm(form json.RawMessage) string {
	var ask struct {
		Fields []struct{ Name, Type, Title, Problem string }
	}
	if json.Unmarshal(form, &ask) != nil || len(ask.Fields) == 0 {
		return string(form)
	}
	var lines []string
	for _, f := range ask.Fields {
		line := fmt.Sprintf("%s (%s): %s", f.Name, f.Type, f.Title)
		if f.Problem != "" {
			line += "; " + f.Problem
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (r *testRun) events(ctx context.Context, id string) (all []workflow.Event, err error) {
	for event, err := range r.engine.Events(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, event)
	}
	return all, nil
}
