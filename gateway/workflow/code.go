package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// codeRun runs code and skill steps.
type codeRun struct{ *run }

// code runs a program. An interrupted program is resumed: the calls that it has made are not repeated.
func (r codeRun) code(ctx context.Context, f *frame, n *node, do *spec.Code, at location, attempt int) (result, error) {
	args, err := toolRun(r).arguments(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	p := execution.Program{Code: do.Text.Text, Language: languageOf(do), Environment: do.Environment.Text, Workspace: do.Workspace.Text}
	if p.Language == "python" && setsResult.MatchString(p.Code) {
		p.Code += "\nresult\n"
	}
	out, err := r.runProgram(ctx, n, at, attempt, p, args)
	if err != nil || do.Returns == nil {
		return out, err
	}
	return out, validate(do.Returns, out.value, "the code's result")
}

// setsResult matches a Python program that assigns the variable result.
var setsResult = regexp.MustCompile(`(?m)^result\s*(:[^=\n]*)?=[^=]`)

// skill calls a skill function in a generated program.
func (r codeRun) skill(ctx context.Context, f *frame, n *node, do *spec.Skill, at location, attempt int) (result, error) {
	name, function, ok := strings.Cut(do.Name.Text, ".")
	if !ok || !identifier.MatchString(name) || !identifier.MatchString(function) {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: do.Name.Text + " is not a skill function", Hint: "write skill.function"}
	}
	args, err := toolRun(r).arguments(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	language := "python"
	if r.engine.opts.Catalog != nil {
		if language, err = r.engine.opts.Catalog.SkillLanguage(ctx, name); err != nil {
			return result{}, err
		}
	}
	return r.runProgram(ctx, n, at, attempt, skillProgram(language, name, function, do.With), args)
}

// identifier matches a valid identifier in both languages.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// skillProgram returns a program that calls a skill function. Arguments are variables, passed by name in Python and in file order in TypeScript.
func skillProgram(language, name, function string, with spec.Value) execution.Program {
	var args []string
	for _, m := range with.Members {
		args = append(args, m.Name.Text)
	}
	if language == "typescript" {
		return execution.Program{Language: language, Code: fmt.Sprintf("import { %s as __call } from \"skills/%s\";\nexport default await __call(%s);\n", function, name, strings.Join(args, ", "))}
	}
	for i, a := range args {
		args[i] = a + "=" + a
	}
	return execution.Program{Language: language, Code: fmt.Sprintf("from skills.%s import %s as _call\n_call(%s)\n", name, function, strings.Join(args, ", "))}
}

// runProgram runs a program, and resumes it after each approval that its calls need.
func (r codeRun) runProgram(ctx context.Context, n *node, at location, attempt int, p execution.Program, args json.RawMessage) (result, error) {
	if out, done, err := toolRun(r).callStub(ctx, n, at, attempt, args); done || err != nil {
		return out, err
	}
	if err := json.Unmarshal(args, &p.Variables); err != nil {
		return result{}, err
	}
	p.Timeout, p.Peer, p.Value = n.Timeout, r.peer, maxOutput
	if out, done, err := toolRun(r).resolveByRule(ctx, n, at, attempt); done || err != nil {
		return out, err
	}
	before, err := r.previousExecutions(ctx, at, attempt)
	if err != nil {
		return result{}, err
	}
	for {
		e, err := r.executeWithRetry(ctx, n, at, attempt, p, args, before)
		if err != nil {
			return result{}, err
		}
		if e.Status != execution.Held {
			return programResult(e)
		}
		before = append(before, e.ID)
		if err := waitRun(r).waitDecisions(ctx, at, e.Approvals); err != nil {
			return result{}, err
		}
	}
}

// previousExecutions returns the logged execution ids of this attempt, the newest last.
func (r codeRun) previousExecutions(ctx context.Context, at location, attempt int) ([]string, error) {
	if at.history == nil || at.history.attempt != attempt {
		return nil, nil
	}
	if pending := at.history.pendingWait(); pending != nil && pending.Approval != "" && pending.Why == "" {
		if err := waitRun(r).waitDecision(ctx, at, *pending); err != nil {
			return nil, err
		}
	}
	return slices.Clone(at.history.executions), nil
}

// workerWait is how long a step waits for a worker.
const workerWait = 5 * time.Minute

// executeWithRetry executes a program. It tries again while the program is refused, and for workerWait while no worker takes programs.
func (r codeRun) executeWithRetry(ctx context.Context, n *node, at location, attempt int, p execution.Program, args json.RawMessage, before []string) (execution.Result, error) {
	for began := time.Now(); ; {
		e, err := r.execute(ctx, n, at, attempt, p, args, before)
		waits := errors.Is(err, execution.ErrNoWorker) && time.Since(began) < workerWait
		if !waits && !isRefused(err) {
			return e, err
		}
		if err := r.delayRefused(ctx); err != nil {
			return execution.Result{}, err
		}
	}
}

// execute logs a new execution and then runs the program. It resumes the newest of the earlier executions that has a journal.
func (r codeRun) execute(ctx context.Context, n *node, at location, attempt int, p execution.Program, args json.RawMessage, before []string) (execution.Result, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return execution.Result{}, err
	}
	defer leave()
	p.ID = execution.NewID()
	if err := r.recordStart(ctx, at, attempt, Event{Input: args, Execution: p.ID}); err != nil {
		return execution.Result{}, err
	}
	earlier, retry := r.earlierExecutions(at)
	r.programs.Store(at.path, append(slices.Concat(earlier, before), p.ID))
	ctx = toolcall.WithRun(atStep(ctx, r.id, at.path), r.id)
	for _, id := range slices.Backward(before) {
		p.Resume = id
		e, err := r.engine.caller.Execute(ctx, p)
		if !errors.Is(err, history.ErrNoExecution) { // else it was killed before its journal existed
			return e, resumeError(err)
		}
	}
	if len(before) > 0 && at.history != nil && time.Since(at.history.began) > journalLife {
		return execution.Result{}, interruptedError("its journal may have been removed since")
	}
	p.Resume, p.After, p.Retry = "", earlier, retry
	return r.engine.caller.Execute(ctx, p)
}

// journalLife is how long the journal or the record of an interrupted execution is certain to be kept. Until then, an execution without
// either was killed before it made a call.
const journalLife = time.Hour

// earlierExecutions returns the executions of the step before this attempt, the newest last. retry is true if the step's retry rule
// started this attempt, and false if a user resumed the run.
func (r codeRun) earlierExecutions(at location) (ids []string, retry bool) {
	retry = at.history == nil || !at.history.reentered
	if all, ok := r.programs.Load(at.path); ok {
		ids = all.([]string) //nolint:forcetypeassert // only lists are stored
	} else if at.history != nil {
		ids = at.history.earlier
	}
	return ids, retry
}

// resumeError converts the error of a program that cannot be resumed, because its journal was removed or never existed.
func resumeError(err error) error {
	if isRefused(err) {
		return err
	}
	if wrong, ok := errors.AsType[*tool.Error](err); ok && (wrong.Kind == tool.NotFound || wrong.Kind == tool.Invalid) {
		return interruptedError(wrong.Message)
	}
	return err
}

// programResult converts the result of a program to the result of its step.
func programResult(e execution.Result) (result, error) {
	if e.Failed() {
		return result{}, programError(e)
	}
	if e.Value == nil {
		return result{status: outcomeOK, raw: json.RawMessage("null")}, nil
	}
	if e.Value.Size > int64(len(e.Value.Text)) {
		return result{}, tooLarge(int(e.Value.Size), maxOutput)
	}
	if e.Value.Kind != "json" {
		return normalize(e.Value.Text, maxOutput)
	}
	v, err := decode([]byte(e.Value.Text))
	if err != nil {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: "the code's result is not JSON: " + err.Error()}
	}
	return normalize(v, maxOutput)
}

// programErrors maps the status of a failed program to an error kind.
var programErrors = map[string]tool.Kind{"failed": tool.Failed, "exited": tool.Failed, "timeout": tool.Timeout, "canceled": tool.Canceled, "crashed": tool.Internal, "interrupted": tool.Internal}

func programError(e execution.Result) error {
	kind, known := programErrors[string(e.Status)]
	if !known { // a resource limit
		kind = tool.Limit
	}
	failed := &tool.Error{Kind: kind, Message: "the code ended: " + string(e.Status)}
	if e.Fault != nil {
		failed.Message, failed.Hint = e.Fault.Type+": "+e.Fault.Message, e.Fault.Hint
		for _, line := range e.Fault.Lines[max(len(e.Fault.Lines)-1, 0):] {
			failed.Message += fmt.Sprintf(" (line %d of the code)", line.Line)
		}
	}
	return failed
}
