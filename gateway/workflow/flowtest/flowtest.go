// Package flowtest tests workflows: a file NAME_test.yaml next to a definition says what a run is given, what its calls come
// to, and what is expected of it. Its main types are [File], which [Load] reads, and [Result], which [Run] returns: the
// real engine runs the definition on records in memory, and a door of stubs stands where the gateway is. [Record] makes
// such a file of a run that happened.
package flowtest

import (
	"encoding/json"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// File are the tests of one workflow. Who reads it must not change it.
type File struct {
	// Path is the file as it was given.
	Path string
	// Workflow is the name of what is tested, by default that of the file without "_test" and its ending.
	Workflow string
	Tests    []Test

	src *yamlstrict.Source
	// named says where the workflow is named, nil where the file's name does it.
	named *yaml.Node
}

// Test is one run, and what is expected of it.
type Test struct {
	Name string
	// Line is where the test begins in the file.
	Line int
	// Inputs is the object that the run is started with, in JSON.
	Inputs json.RawMessage
	// Env are the environment's variables; there are no others.
	Env map[string]string
	// Started is when the run starts; 2026-01-01T00:00:00Z where the file does not say.
	Started time.Time
	// Real has the run wait as long as its definition says; else waits for time are over at once.
	Real bool
	// Stubs are what calls and steps come to, the first that fits.
	Stubs []Stub
	// Answers are what a person answers to forms, an object each by the path of the step.
	Answers map[string]json.RawMessage
	// Approvals are what a person says where it is asked whether to go on, by the path of the step.
	Approvals map[string]bool
	Expect    Expect

	node *yaml.Node
}

// Stub is what the calls of a tool that fit come to, or a step that is not run.
type Stub struct {
	// Tool is "upstream.tool", Step the path of a step as in a run's log: one of the two is set.
	Tool, Step string
	// Result is its result, in JSON; nil where Error is set. Final says that it is the step's output: what the step's own
	// "output" makes of a result is not made of it.
	Result json.RawMessage
	Final  bool
	Error  *Fault
	// Times is how often it is used, after which it is not there; 0 is always.
	Times int

	// with is what the arguments must be, nil is any; node is the stub itself.
	with, node *yaml.Node
}

// Fault is how a stubbed call fails. Kind failed is a tool that reports a failure itself.
type Fault struct {
	Kind    tool.Kind
	Message string
}

// Expect is how a run must end. What is not named may be anything.
type Expect struct {
	// Status is ok or failed.
	Status string
	// AnyOrder lets the calls come in any order.
	AnyOrder bool

	outputs *yaml.Node
	failure *failure
	// calls are all that must be made, nil is any.
	calls []call
	steps []outcome
	// asksCalls says that calls are named, also with an empty list.
	asksCalls bool
}

// failure is what must be wrong with a run.
type failure struct{ step, kind, message *yaml.Node }

// call is one call that must be made.
type call struct {
	line int
	tool string
	with *yaml.Node
}

// outcome is how a step must end.
type outcome struct {
	path, want string
	node       *yaml.Node
}

// Result is how one test went.
type Result struct {
	File string `json:"file"`
	Test string `json:"test"`
	Line int    `json:"line"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Failures are what was not as expected, none where all is well.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one thing that was not as expected.
type Failure struct {
	// Line is where in the file it is expected.
	Line int `json:"line"`
	// Message says what was wanted and what came; it may have several lines.
	Message string `json:"message"`
}

// OK says that all was as expected.
func (r Result) OK() bool { return len(r.Failures) == 0 }
