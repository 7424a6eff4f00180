// Package flowtest tests workflows: a file NAME_test.yaml next to a definition has the inputs of a run, stubs for its calls,
// and the expected results. Its main types are [File], which [Load] reads, and [Result], which [Run] returns: the
// real engine runs the definition with an in-memory store and a stub of the gateway. [Record] creates
// such a file from a past run.
package flowtest

import (
	"encoding/json"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// File has the tests of one workflow. It must not be modified.
type File struct {
	// Path is the path that was given.
	Path string
	// Workflow is the name of the tested workflow, by default the file name without "_test" and extension.
	Workflow string
	Tests    []Test

	src *yamlstrict.Source
	// nameNode is the node of the workflow's name, nil if the file name is used.
	nameNode *yaml.Node
}

// Test is one run with its expectations.
type Test struct {
	Name string
	// Line is the first line of the test in the file.
	Line int
	// Inputs are the inputs of the run, a JSON object.
	Inputs json.RawMessage
	// Env are the environment variables; no others are set.
	Env map[string]string
	// Started is the start time of the run, by default 2026-01-01T00:00:00Z.
	Started time.Time
	// Real makes the run wait in real time; else waits for time end at once.
	Real bool
	// Stubs are the results of calls and steps. The first that matches is used.
	Stubs []Stub
	// Answers are the answers to forms, a JSON object for each step path.
	Answers map[string]json.RawMessage
	// Approvals are the decisions of approvals, by step path.
	Approvals map[string]bool
	Expect    Expect

	node *yaml.Node
}

// Stub is the result of matching calls of a tool, or of a step that is not run.
type Stub struct {
	// Tool is "upstream.tool", Step is a step path as in events: one of the two is set.
	Tool, Step string
	// Result is the result in JSON; nil if Error is set. Final says that it is the output of the step, to which the
	// step's own "output" is not applied.
	Result json.RawMessage
	Final  bool
	Error  *Fault
	// Times limits how often it is used; 0 is unlimited.
	Times int

	// with is the pattern of the arguments, nil for any; node is the stub itself.
	with, node *yaml.Node
}

// Fault is the error of a stubbed call. Kind failed is a result with isError.
type Fault struct {
	Kind    tool.Kind
	Message string
}

// Expect are the expectations of a run. Unset fields match anything.
type Expect struct {
	// Status is ok or failed.
	Status string
	// AnyOrder allows the calls in any order.
	AnyOrder bool

	outputs *yaml.Node
	failure *failure
	// calls are all expected calls, nil for any.
	calls []call
	steps []outcome
	// checksCalls says that calls is set, maybe to an empty list.
	checksCalls bool
}

// failure is the expected error of a run.
type failure struct{ step, kind, message *yaml.Node }

// call is an expected call.
type call struct {
	line int
	tool string
	with *yaml.Node
}

// outcome is the expected outcome of a step.
type outcome struct {
	path, want string
	node       *yaml.Node
}

// Result is the result of one test.
type Result struct {
	File string `json:"file"`
	Test string `json:"test"`
	Line int    `json:"line"`
	// Seconds is the duration.
	Seconds float64 `json:"seconds"`
	// Failures are the unmet expectations, none if the test passed.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one unmet expectation.
type Failure struct {
	// Line is the line of the expectation in the file.
	Line int `json:"line"`
	// Message has the wanted and the actual value; it may have several lines.
	Message string `json:"message"`
}

// OK reports whether the test passed.
func (r Result) OK() bool { return len(r.Failures) == 0 }
