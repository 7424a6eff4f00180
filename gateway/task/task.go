// Package task works on tasks in words: it searches tools, writes a program and runs it, until there is an answer. A
// language model writes the programs, and repairs them from their errors; without one, package rules does, for simple
// tasks. Its main type is [Tasks].
//
// A program of a task runs as any other: through the executor, whose calls pass policy, approval, privacy, journal and
// audit. A task has limits of turns, tokens, money and time, and may have a list of the only upstreams that it may use.
// What programs print is shown to the model as data.
package task

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/models"
	"sallyport/internal/tool"
)

// Request is a task.
type Request struct {
	// Task describes in words what is to be done.
	Task string
	// Model is a name in the settings, "" the default one. NoModel uses rules only.
	Model   string
	NoModel bool
	// Plan stops with the first program, which does not run.
	Plan bool
	// Only are the ids of the upstreams that its programs may call; nil means all.
	Only []string
	// Args are values for parameters by name, for rules, and facts for a model.
	Args map[string]json.RawMessage
	// Output is the JSON Schema of the answer; nil is text.
	Output json.RawMessage
	// Workspace and Environment are those of its programs; "" is the default one.
	Workspace, Environment string
	// Peer answers approvals and questions, and is the model of api sampling; nil for none.
	Peer tool.Peer
	// ID is the id of the task, from [NewID]; "" creates one.
	ID string

	old *Task // the task that it continues
}

// MaxTask is the longest task, in bytes, maxArgs the largest arguments.
const MaxTask, maxArgs = 16 << 10, 256 << 10

// Status is the state of a task.
type Status string

// The states of tasks.
const (
	// Running: it is at work.
	Running Status = "running"
	// Done: it has an answer.
	Done Status = "done"
	// Planned: it has a program, which did not run, as the request wanted.
	Planned Status = "planned"
	// Asked: it needs the values in Questions.
	Asked Status = "asked"
	// Refused: rules do not know how; Program may be a guess.
	Refused Status = "refused"
	// Failed: it ended without an answer.
	Failed Status = "failed"
	// Held: a call of its program waits for approval; it can be resumed.
	Held Status = "held"
	// Canceled: it was stopped.
	Canceled Status = "canceled"
)

// Task is the record of a task.
type Task struct {
	ID string `json:"id"`
	// Principal asked for it, "" without authentication; Client is the client's name.
	Principal string `json:"principal,omitempty"`
	Client    string `json:"client,omitempty"`
	// Endpoint is the endpoint that it is confined to, "" for none.
	Endpoint string `json:"endpoint,omitempty"`
	// Task is what was to be done, Args are its arguments.
	Task string                     `json:"task"`
	Args map[string]json.RawMessage `json:"args,omitempty"`
	// Only are the only upstreams that it may use; none means all.
	Only []string `json:"only,omitempty"`
	// Output is the schema of the answer.
	Output json.RawMessage `json:"output,omitempty"`
	// Workspace and Environment are those of its programs.
	Workspace   string `json:"workspace,omitempty"`
	Environment string `json:"environment,omitempty"`
	// Model is the name of the model in the settings, "rules" without one.
	Model string `json:"model"`
	// Plan says that its program does not run.
	Plan   bool      `json:"plan,omitempty"`
	Status Status    `json:"status"`
	Begun  time.Time `json:"begun"`
	// Ended is when it ended.
	Ended time.Time `json:"ended,omitzero"`
	// Turns are the steps so far.
	Turns []Turn `json:"turns,omitempty"`
	// Answer is the answer; JSON if the request has a schema.
	Answer string `json:"answer,omitempty"`
	// Questions are what it needs to know.
	Questions []Question `json:"questions,omitempty"`
	// Program and Language are the last program: the one that worked, the planned one, or a guess. Execution ran it.
	Program   string `json:"program,omitempty"`
	Language  string `json:"language,omitempty"`
	Execution string `json:"execution,omitempty"`
	// Approvals are the questions about the calls that hold it.
	Approvals []string `json:"approvals,omitempty"`
	// Error and Kind say why it failed or was refused.
	Error string `json:"error,omitempty"`
	Kind  string `json:"kind,omitempty"`
	// Read are the labels of what its programs and its caller have read.
	Read []toolcall.Origin `json:"read,omitempty"`
	// Notes are further remarks.
	Notes []string `json:"notes,omitempty"`
	// Tokens are the tokens of all turns, Price their price in the currency of the settings.
	Tokens models.Usage `json:"tokens"`
	Price  float64      `json:"price,omitempty"`
}

// Over reports whether the task has ended, or waits for a person.
func (t Task) Over() bool { return t.Status != Running }

// Resumable reports whether the task can be resumed: it ended without an answer after a program ran.
func (t Task) Resumable() bool {
	return t.Execution != "" && (t.Status == Held || t.Status == Failed || t.Status == Canceled)
}

// Question is a value that a task needs.
type Question struct {
	// Name is a name for the arguments of the request.
	Name string `json:"name"`
	// Text is the question, Choices are the possible values, if they are a fixed set.
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"`
}

// The kinds of turns.
const (
	KindSearch  = "search"
	KindProgram = "program"
	KindAnswer  = "answer"
	KindInvalid = "invalid"
)

// Turn is one step of a task: what the model or the rules wrote, and the result. The output of programs is not kept.
type Turn struct {
	Kind string `json:"kind"`
	// Text is the query, the program, the answer, or the reply that was none of these.
	Text     string    `json:"text"`
	Language string    `json:"language,omitempty"`
	Begun    time.Time `json:"begun"`
	// Duration is that of the model and of what it asked for together.
	Duration time.Duration `json:"duration"`
	// Waited is the part of it in which the model's server was busy.
	Waited time.Duration `json:"waited,omitempty"`
	// Model is the model's name as the endpoint reports it.
	Model string `json:"model,omitempty"`
	// Tokens and Price are those of the turn.
	Tokens models.Usage `json:"tokens,omitzero"`
	Price  float64      `json:"price,omitempty"`
	// Execution ran the program, Status is its end. Calls are its first calls, as "upstream.tool outcome".
	Execution string   `json:"execution,omitempty"`
	Status    string   `json:"status,omitempty"`
	Calls     []string `json:"calls,omitempty"`
	// Found are the tools that a search showed.
	Found []string `json:"found,omitempty"`
	// Shown is the size of what the model read of it, in bytes.
	Shown int `json:"shown,omitempty"`
	// Error is what was wrong, in one line.
	Error string `json:"error,omitempty"`
}

// NewID returns a new, unique id for a task.
func NewID() string { return "t-" + strings.ToLower(rand.Text()[:12]) }

// IDPattern matches the id of a task.
var IDPattern = regexp.MustCompile("^t-[a-z2-7]{12}$")
