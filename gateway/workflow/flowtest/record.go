package flowtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// Record creates a test file from a finished run: its one test has the inputs of the run, a stub for each call
// and program, and expects the same result. Tokens that replace personal data are kept. Errors are
// *tool.Error, for runs that cannot be reproduced this way, such as canceled or too large ones.
func Record(events iter.Seq2[workflow.Event, error]) ([]byte, error) {
	r := &recording{definitions: map[string]*spec.Definition{}, steps: map[string]*recordedStep{}}
	for event, err := range events {
		if err == nil {
			err = r.add(event)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.over == nil {
		return nil, recordError("it is not over")
	}
	if r.over.Status == workflow.Canceled {
		return nil, recordError("it was canceled")
	}
	data, err := r.file()
	if err == nil && len(data) > yamlstrict.MaxFile {
		err = recordError(fmt.Sprintf("its test would have %d KiB, more than the %d KiB of a file; record one with less in it", len(data)>>10, yamlstrict.MaxFile>>10))
	}
	return data, err
}

func recordError(why string) error {
	return &tool.Error{Kind: tool.Invalid, Message: "cannot make a test of the run: " + why}
}

// recording is the state of a run while its events are read.
type recording struct {
	start   *workflow.Started
	started time.Time
	over    *workflow.Event
	// definitions are the definitions of the run, under "", and of nested workflows, by step path.
	definitions map[string]*spec.Definition
	// steps are the started steps by path; order is the order of their first start.
	steps map[string]*recordedStep
	order []string
	// top are the end events of the top-level steps.
	top []workflow.Event
}

// recordedStep is a step that is not a block.
type recordedStep struct {
	path, tool string
	step       *spec.Step // nil for a call of a form
	input      json.RawMessage
	attempt    int
	// faults are the errors of attempts that were retried.
	faults        []workflow.Fault
	ended         *workflow.Event
	answer        json.RawMessage // of a form
	needsApproval bool            // it asked for approval
}

func (r *recording) add(e workflow.Event) error {
	switch e.Kind {
	case workflow.Created:
		r.start, r.started = e.Start, e.Time
		return r.define("", e.Start)
	case workflow.Reentered:
		r.reenter()
	case workflow.Began:
		return r.addBegin(e)
	case workflow.Retrying:
		if s := r.steps[e.Path]; s != nil && e.Error != nil {
			s.faults = append(s.faults, *e.Error)
		}
	case workflow.Waits:
		if e.Pending != nil && e.Pending.For == "approval" && e.Pending.Why == "" {
			r.at(e.Path).needsApproval = true
		}
	case workflow.Answered:
		r.at(e.Path).answer = e.Input
	case workflow.Ended:
		return r.addEnd(e)
	case workflow.Over:
		r.over = &e
	}
	return nil
}

// define stores the definition of a run or nested workflow.
func (r *recording) define(path string, s *workflow.Started) error {
	d, err := spec.Parse(s.Path, []byte(s.Source), func(name string) ([]byte, error) {
		text, ok := s.Files[name]
		if !ok {
			return nil, errors.New("the run has no file " + name)
		}
		return []byte(text), nil
	})
	if err != nil {
		return recordError("its definition cannot be read any more: " + err.Error())
	}
	r.definitions[path] = d
	return nil
}

// stepAt returns the step at a path, nil if there is none, as for a loop iteration.
func (r *recording) stepAt(path string) *spec.Step {
	if strings.HasSuffix(path, "]") {
		return nil
	}
	for in := path; in != ""; {
		in = in[:max(strings.LastIndexByte(in, '.'), 0)]
		if d := r.definitions[in]; d != nil {
			return d.Step(strings.TrimPrefix(strings.TrimPrefix(path, in), "."))
		}
	}
	return nil
}

// isConcurrent reports whether a step runs nested steps concurrently.
func isConcurrent(s *spec.Step) bool {
	if s == nil {
		return false
	}
	if loop, ok := s.Do.(*spec.ForEach); ok {
		return loop.Concurrency > 1
	}
	_, ok := s.Do.(*spec.Parallel)
	return ok
}

// insideConcurrent reports whether a path is inside a step that runs nested steps concurrently.
func (r *recording) insideConcurrent(path string) bool {
	for i, c := range path {
		if c != '.' {
			continue
		}
		holder := path[:i]
		if open := strings.LastIndexByte(holder, '['); open > 0 && strings.HasSuffix(holder, "]") { // a loop iteration
			holder = holder[:open]
		}
		if isConcurrent(r.stepAt(holder)) {
			return true
		}
	}
	return false
}

func (r *recording) at(path string) *recordedStep {
	s := r.steps[path]
	if s == nil {
		s = &recordedStep{path: path, step: r.stepAt(path)}
		r.steps[path] = s
		r.order = append(r.order, path)
	}
	return s
}

func (r *recording) addBegin(e workflow.Event) error {
	if e.Start != nil {
		return r.define(e.Path, e.Start)
	}
	if e.Input == nil && e.Execution == "" { // a block, a form or an approval
		return nil
	}
	s := r.at(e.Path)
	s.input, s.attempt, s.tool = e.Input, e.Attempt, e.Tool
	return nil
}

func (r *recording) addEnd(e workflow.Event) error {
	if e.Outcome == "canceled" {
		return recordError("step " + e.Path + " was stopped in the middle")
	}
	if e.Outcome == "failed" && isConcurrent(r.stepAt(e.Path)) {
		return recordError("a part of step " + e.Path + " failed, and how far the others get then differs each time")
	}
	if !strings.ContainsAny(e.Path, ".[") {
		r.top = slices.DeleteFunc(r.top, func(before workflow.Event) bool { return before.Path == e.Path })
		r.top = append(r.top, e)
	}
	s := r.steps[e.Path]
	if e.Outcome == "cached" && s == nil {
		if step := r.stepAt(e.Path); step == nil || !isLeaf(step.Do) {
			return recordError("step " + e.Path + " was taken from an earlier run")
		}
		s = r.at(e.Path)
	}
	if s != nil {
		s.ended = &e
	}
	return nil
}

// reenter removes the steps that failed before the run was resumed: they run again.
func (r *recording) reenter() {
	r.over = nil
	failed := func(e *workflow.Event) bool { return e == nil || e.Outcome == "failed" }
	for path, s := range r.steps {
		if failed(s.ended) {
			delete(r.steps, path)
		}
	}
	r.order = slices.DeleteFunc(r.order, func(path string) bool { return r.steps[path] == nil })
	r.top = slices.DeleteFunc(r.top, func(e workflow.Event) bool { return failed(&e) })
}

// isLeaf reports whether a step can have a stub.
func isLeaf(do spec.Action) bool {
	switch do.(type) {
	case *spec.Tool, *spec.Code, *spec.Skill, *spec.Plugin, *spec.Task:
		return true
	}
	return false
}

// file returns the test file.
func (r *recording) file() ([]byte, error) {
	test := &orderedMap{}
	test.add("name", "as run "+r.start.ID+" went")
	if given := decodeJSON(r.start.Inputs); !empty(given) {
		test.add("inputs", given)
	}
	if env := envOf(r.start.Env); !empty(env) {
		test.add("env", env)
	}
	test.add("started", r.started.UTC().Format(time.RFC3339Nano))
	if err := r.stubs(test); err != nil {
		return nil, err
	}
	test.add("expect", r.expect())
	root := &orderedMap{}
	root.add("workflow", r.start.Workflow)
	root.add("tests", []any{test})
	root.node.HeadComment = fmt.Sprintf("Recorded from run %s of %s. The stubs are the results of its calls and programs; give\nthe test a name that says what it is for, and leave out what does not matter.", r.start.ID, r.started.UTC().Format(time.DateOnly))
	return encodeYAML(&root.node), nil
}

// envOf returns the environment variables of a run, without unset ones.
func envOf(kept json.RawMessage) any {
	env, _ := decodeJSON(kept).(map[string]any)
	maps.DeleteFunc(env, func(_ string, value any) bool { return value == nil })
	return env
}

func empty(value any) bool {
	members, ok := value.(map[string]any)
	return value == nil || ok && len(members) == 0
}

// stubs adds the stubs, the answers and the approvals of a test.
func (r *recording) stubs(test *orderedMap) error {
	var stubs []any
	answers, approvals := &orderedMap{}, &orderedMap{}
	for _, path := range r.order {
		switch s := r.steps[path]; {
		case s.answer != nil:
			answers.add(path, answersOf(s.answer))
		case s.needsApproval && s.step != nil && isApproval(s.step.Do):
			approvals.add(path, s.verdict())
		case s.stubbed():
			stubs = append(stubs, s.stubs()...)
		}
	}
	if len(stubs) > maxStubs {
		return recordError(fmt.Sprintf("it made %d calls, more than the %d stubs of a test", len(stubs), maxStubs))
	}
	if len(stubs) > 0 {
		test.add("stubs", mergeStubs(stubs))
	}
	if len(answers.node.Content) > 0 {
		test.add("answers", answers)
	}
	if len(approvals.node.Content) > 0 {
		test.add("approvals", approvals)
	}
	return nil
}

// stubbed reports whether a step has ended and a stub can reproduce it.
func (s *recordedStep) stubbed() bool {
	if s.ended == nil {
		return false
	}
	if s.tool != "" || s.step == nil {
		return s.tool != ""
	}
	_, nested := s.step.Do.(*spec.Nested) // one with an input did not run
	return nested || isLeaf(s.step.Do)
}

// verdict returns the decision of an approval.
func (s *recordedStep) verdict() string {
	if s.ended != nil && s.ended.Outcome == "ok" {
		return "allow"
	}
	return "deny"
}

func isApproval(do spec.Action) bool {
	wait, ok := do.(*spec.Wait)
	return ok && wait.Approval != nil
}

// answersOf returns the answers to a form from the engine's stored state.
func answersOf(kept json.RawMessage) any {
	state, _ := decodeJSON(kept).(map[string]any)
	if answers, ok := state["answers"]; ok {
		return answers
	}
	return map[string]any{}
}

// stubs returns the stubs of a step: one for each failed attempt, and one for the last.
func (s *recordedStep) stubs() (all []any) {
	for _, fault := range s.faults {
		all = append(all, s.stub("error", s.fault(fault)))
	}
	if s.ended.Error != nil {
		return append(all, s.stub("error", s.fault(*s.ended.Error)))
	}
	key := "output"
	if s.tool != "" && (s.step == nil || s.step.Output == nil) {
		key = "result"
	}
	return append(all, s.stub(key, decodeJSON(s.ended.Output)))
}

func (s *recordedStep) stub(key string, value any) *orderedMap {
	o := &orderedMap{}
	if s.tool == "" {
		o.add("step", s.path)
	} else {
		o.add("tool", s.tool)
		if with := s.with(); with != nil {
			o.add("with", with)
		}
	}
	o.add(key, value)
	o.add("times", 1)
	return o
}

// with returns the arguments of a call, nil for none or if the log has only their hash.
func (s *recordedStep) with() any {
	with := decodeJSON(s.input)
	if members, ok := with.(map[string]any); !ok || len(members) == 0 || len(members) == 2 && members["sha256"] != nil && members["bytes"] != nil {
		return nil
	}
	return with
}

// fault returns an error for a stub, without the prefix that the engine adds to tool errors.
func (s *recordedStep) fault(f workflow.Fault) any {
	o := &orderedMap{}
	if message, ok := strings.CutPrefix(f.Message, s.tool+" failed: "); ok && f.Kind == tool.Failed {
		f.Message = message
	}
	o.add("kind", string(f.Kind))
	o.add("message", f.Message)
	return o
}

// mergeStubs merges equal consecutive stubs.
func mergeStubs(stubs []any) (all []any) {
	var last string
	times := 0
	for _, stub := range stubs {
		o := stub.(*orderedMap) //nolint:forcetypeassert // created above
		text := string(encodeYAML(&o.node))
		if text == last {
			times++
			count := &all[len(all)-1].(*orderedMap).node //nolint:forcetypeassert // as above
			count.Content[len(count.Content)-1] = nodeOf(times)
			continue
		}
		last, times = text, 1
		all = append(all, o)
	}
	return all
}

// expect returns the expectations from the results of the run.
func (r *recording) expect() *orderedMap {
	e := &orderedMap{}
	if r.over.Status == workflow.OK {
		if outputs := decodeJSON(r.over.Output); !empty(outputs) {
			e.add("outputs", outputs)
		}
	} else {
		e.add("error", r.failure())
	}
	var calls []any
	for _, path := range r.order {
		s := r.steps[path]
		if s.tool == "" || s.ended == nil || s.ended.Outcome == "cached" {
			continue
		}
		for range len(s.faults) + 1 {
			calls = append(calls, s.call())
		}
	}
	if len(calls) <= maxCalls {
		e.add("calls", nonNil(calls))
		if len(calls) > 1 && slices.ContainsFunc(r.order, r.insideConcurrent) {
			e.add("order", "any")
		}
	}
	steps := &orderedMap{}
	for _, ended := range r.top {
		if ended.Outcome != "cached" {
			steps.add(ended.Path, ended.Outcome)
		}
	}
	if len(steps.node.Content) > 0 {
		e.add("steps", steps)
	}
	return e
}

func nonNil(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

func (r *recording) failure() *orderedMap {
	o := &orderedMap{}
	if f := r.over.Error; f != nil {
		if f.Step != "" {
			o.add("step", f.Step)
		}
		o.add("kind", string(f.Kind))
		o.add("message", f.Message)
	}
	return o
}

func (s *recordedStep) call() *orderedMap {
	o := &orderedMap{}
	o.add("tool", s.tool)
	if with := s.with(); with != nil {
		o.add("with", with)
	}
	inline(&o.node)
	return o
}
