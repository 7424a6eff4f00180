package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// codeRun runs the steps that are programs.
type codeRun struct{ *run }

// code runs a program. One that was interrupted is continued: calls that it had made are not made again.
func (r codeRun) code(ctx context.Context, f *frame, n *node, do *spec.Code, at spot, attempt int) (result, error) {
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
	return out, fits(do.Returns, out.value, "what the code comes to")
}

// setsResult finds a program that leaves its result in a variable of that name.
var setsResult = regexp.MustCompile(`(?m)^result\s*(:[^=\n]*)?=[^=]`)

// skill calls a function of a skill, in a generated program.
func (r codeRun) skill(ctx context.Context, f *frame, n *node, do *spec.Skill, at spot, attempt int) (result, error) {
	name, function, ok := strings.Cut(do.Name.Text, ".")
	if !ok || !identifier.MatchString(name) || !identifier.MatchString(function) {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: do.Name.Text + " is no function of a skill", Hint: "write skill.function"}
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

// identifier is a name that can stand in a program of either language.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// skillProgram calls a function with the variables that have the names of its arguments: by name in Python, in the order of the file in TypeScript.
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

// runProgram runs a program, and continues with it while calls of it wait for people.
func (r codeRun) runProgram(ctx context.Context, n *node, at spot, attempt int, p execution.Program, args json.RawMessage) (result, error) {
	if out, done, err := toolRun(r).instead(ctx, n, at, attempt, args); done || err != nil {
		return out, err
	}
	if err := json.Unmarshal(args, &p.Variables); err != nil {
		return result{}, err
	}
	p.Timeout, p.Peer, p.Value = n.Timeout, r.peer, maxOutput
	if at.past != nil && at.past.attempt == attempt && (n.Interrupted == interruptedFail || n.Interrupted == interruptedAsk) {
		if out, done, err := toolRun(r).goOn(ctx, n, at, attempt, true); done || err != nil {
			return out, err
		}
	}
	before, err := r.before(ctx, at, attempt)
	if err != nil {
		return result{}, err
	}
	for {
		e, err := r.execute(ctx, n, at, attempt, p, args, before)
		if err != nil {
			return result{}, err
		}
		if e.Status != execution.Held {
			return programResult(e)
		}
		before = append(before, e.ID)
		if err := waitRun(r).allApproved(ctx, at, e.Approvals); err != nil {
			return result{}, err
		}
	}
}

// before are the executions of a program that the log knows of, the newest last.
func (r codeRun) before(ctx context.Context, at spot, attempt int) ([]string, error) {
	if at.past == nil || at.past.attempt != attempt {
		return nil, nil
	}
	if pending := at.past.waited(); pending != nil && pending.Approval != "" && pending.Why == "" {
		if err := waitRun(r).approved(ctx, at, *pending); err != nil {
			return nil, err
		}
	}
	return slices.Clone(at.past.executions), nil
}

// execute runs a program that is on record before it begins: the newest of those before that has done something is continued.
func (r codeRun) execute(ctx context.Context, n *node, at spot, attempt int, p execution.Program, args json.RawMessage, before []string) (execution.Result, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return execution.Result{}, err
	}
	defer leave()
	p.ID = execution.NewID()
	if err := r.began(ctx, at, attempt, Event{Input: args, Execution: p.ID}); err != nil {
		return execution.Result{}, err
	}
	ctx = toolcall.Unattended(atStep(ctx, r.id, at.path), r.id)
	for _, id := range slices.Backward(before) {
		p.Resume = id
		r.programs.Store(at.path, p.ID)
		e, err := r.engine.door.Execute(ctx, p)
		if !errors.Is(err, history.ErrNoExecution) { // else it was killed before it had done anything
			return e, notResumed(err)
		}
	}
	p.Resume = ""
	p.After, p.Retry = r.earlier(at)
	r.programs.Store(at.path, p.ID)
	return r.engine.door.Execute(ctx, p)
}

// earlier is the last execution of the step before this attempt, "" for none. A retry is one that the step's own rule has made,
// and not a user that resumed the run.
func (r codeRun) earlier(at spot) (id string, retry bool) {
	if last, ok := r.programs.Load(at.path); ok {
		id, _ = last.(string)
		return id, true
	}
	if at.past == nil {
		return "", false
	}
	return at.past.earlier, !at.past.reentered
}

// notResumed is the error of a program that cannot be continued: its journal is not kept any more, or there never was one.
func notResumed(err error) error {
	if wrong, ok := errors.AsType[*tool.Error](err); ok && (wrong.Kind == tool.NotFound || wrong.Kind == tool.Invalid) {
		return interruptedError(wrong.Message)
	}
	return err
}

// programResult is the result of a step by how its program ended.
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
		return normal(e.Value.Text, maxOutput)
	}
	v, err := decode([]byte(e.Value.Text))
	if err != nil {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: "what the code comes to is no JSON: " + err.Error()}
	}
	return normal(v, maxOutput)
}

// programErrors are the kinds of the ways in which a program ends that did not go well.
var programErrors = map[string]tool.Kind{"failed": tool.Failed, "exited": tool.Failed, "timeout": tool.Timeout, "canceled": tool.Canceled, "crashed": tool.Internal}

func programError(e execution.Result) error {
	kind, known := programErrors[string(e.Status)]
	if !known { // at one of its limits
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
