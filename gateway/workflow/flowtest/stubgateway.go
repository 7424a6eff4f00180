package flowtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// stubGateway replaces the gateway in one test: it answers with the stubs and records the calls. It is safe for concurrent use.
type stubGateway struct {
	test     *Test
	programs Programs
	folder   string // the workspace of programs

	mu    sync.Mutex
	used  []int // uses of each stub
	calls []madeCall
	// missing are the stubs and answers that the run needs and the test does not have, each once.
	missing   []Failure
	decisions map[string]approvals.Approval
}

// madeCall is an actual call.
type madeCall struct {
	tool string
	args any
}

func newStubGateway(t *Test, programs Programs, folder string) *stubGateway {
	return &stubGateway{test: t, programs: programs, folder: folder, used: make([]int, len(t.Stubs)), decisions: map[string]approvals.Approval{}}
}

// Call implements [workflow.Caller]: it records the call and answers with the first matching stub.
func (s *stubGateway) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, args := call.Tool.String(), decodeJSON(call.Args)
	s.calls = append(s.calls, madeCall{name, args})
	if _, path := workflow.StepFromContext(ctx); path != "" && call.Execution != "" {
		if allowed, ok := s.test.Approvals[path]; ok && !allowed {
			return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: name + " was not approved"}
		}
	}
	stub := s.useStub(func(stub *Stub) bool { return stub.fits(name, args) })
	if stub == nil {
		return tool.Result{}, s.missingStub(name, args)
	}
	return stub.answer()
}

// useStub uses the first matching stub that is not used up, and returns it; nil for none.
func (s *stubGateway) useStub(fits func(*Stub) bool) *Stub {
	i := s.findStub(fits)
	if i < 0 {
		return nil
	}
	s.used[i]++
	return &s.test.Stubs[i]
}

func (s *stubGateway) findStub(fits func(*Stub) bool) int {
	for i := range s.test.Stubs {
		if stub := &s.test.Stubs[i]; (stub.Times == 0 || s.used[i] < stub.Times) && fits(stub) {
			return i
		}
	}
	return -1
}

// fits reports whether the stub matches a call.
func (s *Stub) fits(name string, args any) bool {
	return s.Tool == name && (s.with == nil || len(differences(s.with, args, "with")) == 0)
}

// answer returns the stub's result as the result of a tool.
func (s *Stub) answer() (tool.Result, error) {
	if s.Error != nil && s.Error.Kind == tool.Failed {
		return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: s.Error.Message}}}, nil
	}
	if s.Error != nil {
		return tool.Result{}, &tool.Error{Kind: s.Error.Kind, Message: s.Error.Message}
	}
	if text, ok := decodeJSON(s.Result).(string); ok {
		return tool.Result{Content: []tool.Content{{Type: "text", Text: text}}}, nil
	}
	return tool.Result{Structured: s.Result}, nil
}

// missingStub records a call without a stub, and why the stubs of the same tool do not match.
func (s *stubGateway) missingStub(name string, args any) error {
	lines := []string{"no stub fits a call; this one would:", flow([]any{stubFor("tool", name, args)})}
	for i := range s.test.Stubs {
		stub := &s.test.Stubs[i]
		switch {
		case stub.Tool != name:
		case stub.Times > 0 && s.used[i] >= stub.Times:
			lines = append(lines, fmt.Sprintf("the stub on line %d is used up (times: %d)", stub.node.Line, stub.Times))
		case stub.with != nil:
			lines = append(lines, fmt.Sprintf("the stub on line %d does not fit: %s", stub.node.Line, differences(stub.with, args, "with")[0].message))
		}
	}
	s.addMissing(s.test.Line, strings.Join(lines, "\n"))
	return &tool.Error{Kind: tool.Invalid, Message: "the test has no stub for " + name}
}

// stubFor returns a matching stub for a message.
func stubFor(key, name string, args any) *orderedMap {
	o := &orderedMap{}
	o.add(key, name)
	if with, ok := args.(map[string]any); ok && len(with) > 0 {
		o.add("with", with)
	}
	if key == "step" {
		o.add("output", "...")
	} else {
		o.add("result", "...")
	}
	return o
}

// addMissing records once what the test does not have.
func (s *stubGateway) addMissing(line int, text string) {
	if !slices.ContainsFunc(s.missing, func(f Failure) bool { return f.Message == text }) {
		s.missing = append(s.missing, Failure{line, text})
	}
}

// Execute implements [workflow.Caller]: programs run in the sandbox if there is one, and their calls use the stubs.
func (s *stubGateway) Execute(ctx context.Context, program execution.Program) (execution.Result, error) {
	if s.programs == nil {
		_, path := workflow.StepFromContext(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addMissing(s.test.Line, "code needs a sandbox, and there is none here; this stub for its step would do:\n"+flow([]any{stubFor("step", path, nil)}))
		return execution.Result{}, &tool.Error{Kind: tool.Invalid, Message: "there is no sandbox for the code"}
	}
	program.Stub, program.Folder = s.Call, s.folder
	return s.programs.Execute(ctx, program)
}

// stubStep implements [workflow.Stub] for steps with a stub for the step or its output, and for waits.
func (s *stubGateway) stubStep(_ context.Context, path string, step *spec.Step, input json.RawMessage) (json.RawMessage, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stub := s.useStub(func(stub *Stub) bool { return stub.Step == path })
	if stub == nil {
		stub = s.outputStub(step, input)
	}
	switch {
	case stub != nil && stub.Error != nil:
		return nil, true, &tool.Error{Kind: stub.Error.Kind, Message: stub.Error.Message}
	case stub != nil:
		return stub.Result, true, nil
	}
	_, waits := step.Do.(*spec.Wait)
	return json.RawMessage("null"), waits && !s.test.Real, nil
}

// outputStub returns the first stub that matches a tool step, if it has the output of the step, and records the call.
func (s *stubGateway) outputStub(step *spec.Step, input json.RawMessage) *Stub {
	do, ok := step.Do.(*spec.Tool)
	if !ok {
		return nil
	}
	args := decodeJSON(input)
	i := s.findStub(func(stub *Stub) bool { return stub.fits(do.Name.Text, args) })
	if i < 0 || !s.test.Stubs[i].Final {
		return nil
	}
	s.used[i]++
	s.calls = append(s.calls, madeCall{do.Name.Text, args})
	return &s.test.Stubs[i]
}

// Inquire implements [workflow.Approvals].
func (s *stubGateway) Inquire(_ context.Context, q approvals.Question) (approvals.Approval, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed, ok := s.test.Approvals[q.Step]
	if !ok {
		s.addMissing(s.test.Line, fmt.Sprintf("step %s asks a person, and \"approvals\" has no answer for it; write\napprovals: {%s: allow}\nthe question is: %s", q.Step, flow(q.Step), flow(q.Message)))
	}
	a := approvals.Approval{ID: "a-" + q.Step, State: approval.Denied, By: "test"}
	if allowed {
		a.State = approval.Allowed
	}
	s.decisions[a.ID] = a
	return a, nil
}

// Approval implements [workflow.Approvals].
func (s *stubGateway) Approval(_ context.Context, id string) (approvals.Approval, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.decisions[id]
	if !ok {
		return a, &tool.Error{Kind: tool.NotFound, Message: "there is no question " + id}
	}
	return a, nil
}

// Withdraw implements [workflow.Approvals].
func (s *stubGateway) Withdraw(context.Context, string) error { return nil }

// WatchApprovals implements [workflow.Approvals]: all questions are answered at once.
func (s *stubGateway) WatchApprovals(func()) (stop func()) { return func() {} }

// unusedStubs returns a failure for each stub that was not used, or not often enough.
func (s *stubGateway) unusedStubs() (all []Failure) {
	for i, used := range s.used {
		stub := &s.test.Stubs[i]
		switch {
		case used == 0:
			all = append(all, Failure{stub.node.Line, "this stub was not used: " + strings.TrimPrefix(stub.Tool+" "+stub.Step, " ")})
		case used < stub.Times:
			all = append(all, Failure{stub.node.Line, fmt.Sprintf("this stub was used %d times of %d", used, stub.Times)})
		}
	}
	return all
}

// orderedMap is a YAML mapping that keeps the order of its members.
type orderedMap struct{ node yaml.Node }

func (o *orderedMap) add(key string, value any) {
	o.node.Kind, o.node.Tag = yaml.MappingNode, "!!map"
	put(&o.node, key, nodeOf(value))
}
