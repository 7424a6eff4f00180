package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// stubCaller is a gateway by hand: it notes each call, and answers by the name of the tool.
type stubCaller struct {
	tools map[string]func(ctx context.Context, args map[string]any) (any, error)
	code  func(ctx context.Context, p execution.Program) (execution.Result, error)

	mu    sync.Mutex
	calls []string
}

func (d *stubCaller) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, what)
}

// recordedCalls returns what was called so far, "tool args" each.
func (d *stubCaller) recordedCalls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *stubCaller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	d.note(call.Tool.Name + " " + string(call.Args))
	var args map[string]any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	do := d.tools[call.Tool.Name]
	if do == nil {
		return tool.Result{Structured: call.Args}, nil
	}
	v, err := do(ctx, args)
	if wrong, ok := errors.AsType[isError](err); ok {
		return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: string(wrong)}}}, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	data, err := json.Marshal(v)
	return tool.Result{Structured: data}, err
}

// isError is what a tool reports itself.
type isError string

func (e isError) Error() string { return string(e) }

func (d *stubCaller) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	d.note("code " + strings.TrimSpace(p.Code))
	return d.code(ctx, p)
}

// value is an execution that came to a value.
func value(id, text string) execution.Result {
	return execution.Result{ID: id, Outcome: sandbox.Outcome{Status: sandbox.OK, Value: &bridge.Value{Kind: "json", Text: text, Size: int64(len(text))}}}
}

// definition reads one from a text in YAML.
func definition(t testing.TB, name, text string) *spec.Definition {
	t.Helper()
	d, err := spec.Parse(name+".yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// engine opens an engine for workflows, by name, in YAML.
func engine(t testing.TB, d workflow.Caller, opts workflow.Options, texts map[string]string) *workflow.Engine {
	t.Helper()
	var defs []*spec.Definition
	for name, text := range texts {
		defs = append(defs, definition(t, name, text))
	}
	if opts.Records == nil {
		opts.Records = store.Memory()
	}
	opts.Definitions = func() []*spec.Definition { return defs }
	if opts.Logger == nil {
		opts.Logger = testutil.Logger(t)
	}
	e, err := workflow.Open(d, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// run starts a workflow and waits for its end.
func run(t testing.TB, e *workflow.Engine, s workflow.Start) workflow.Run {
	t.Helper()
	begun, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Wait(t.Context(), begun.ID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trace returns the events of steps in short: "ended each[0].x ok 1".
func trace(t testing.TB, e *workflow.Engine, id string, kinds ...workflow.EventKind) []string {
	t.Helper()
	var lines []string
	for event, err := range e.Events(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds) > 0 && !slices.Contains(kinds, event.Kind) {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s%s %s", event.Kind, event.Path, event.Outcome, event.Status, event.Output)))
	}
	return lines
}
