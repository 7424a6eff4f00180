package runlog

import (
	"encoding/json"
	"time"

	"sallyport/internal/tool"
)

// Status is how a run stands.
type Status string

// The statuses. Those after Waiting are ends; a run can be resumed after Failed and Canceled.
const (
	Queued   Status = "queued"  // others of the workflow go first
	Running  Status = "running" // or it will be, when a gateway has it
	Waiting  Status = "waiting" // for a person or a time, and for nothing else
	OK       Status = "ok"
	Failed   Status = "failed"
	Canceled Status = "canceled"
)

// Over reports whether it is an end.
func (s Status) Over() bool { return s == OK || s == Failed || s == Canceled }

// Run is one run of a workflow, as it stands.
type Run struct {
	// ID is "r-" and 12 letters and digits.
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Digest is that of the definition, which the run keeps whatever becomes of the file.
	Digest string `json:"digest"`
	Status Status `json:"status"`
	// Trigger is what started it: cli, http, program, mcp (a client's call of its function), schedule, webhook, workflow test.
	Trigger   string `json:"trigger"`
	Principal string `json:"principal,omitempty"`
	// Parent is the execution, or the run, that started it, Of the run that it replays a part of; "" for none.
	Parent  string          `json:"parent,omitempty"`
	Of      string          `json:"of,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Error   *Fault          `json:"error,omitempty"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	// Steps is how many have ended.
	Steps int `json:"steps"`
	// Waiting are what it waits for now.
	Waiting []Pending `json:"waiting,omitempty"`
}

// Fault is why a step or a run failed: short, for people and models.
type Fault struct {
	Kind    tool.Kind `json:"kind"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	// Step is the path of the step that failed, see Event.Path; Line where it stands in the definition.
	Step string `json:"step,omitempty"`
	Line int    `json:"line,omitempty"`
	// Retryable says that the step cannot have done its work, or that a second time does no harm.
	Retryable bool `json:"retryable,omitempty"`
}

// Pending is something that a run waits for.
type Pending struct {
	// Step is the path of the step.
	Step string `json:"step"`
	// For is time, approval (Approval is its id: sallyport approvals answers it), or form.
	For      string    `json:"for"`
	Until    time.Time `json:"until,omitzero"`
	Approval string    `json:"approval,omitempty"`
	// Why is "interrupted" where a person is asked whether a step is made again, "" else.
	Why string `json:"why,omitempty"`
	// Form is what is asked for, as package form has it.
	Form json.RawMessage `json:"form,omitempty"`
}

// EventKind is what an event says.
type EventKind string

// The events. A new one must be added to known as well.
const (
	Created   EventKind = "created"   // the first: Start
	Claimed   EventKind = "claimed"   // a gateway has the run from now on: By
	Began     EventKind = "began"     // an attempt of a step: Path, Attempt, Input; Execution of a program
	Retrying  EventKind = "retrying"  // an attempt failed, and there will be another at Until: Path, Attempt, Error
	Waits     EventKind = "waits"     // a step waits: Path, Pending
	Answered  EventKind = "answered"  // a person gave something: Path, Input; By
	Ended     EventKind = "ended"     // a step came to its end: Path, Outcome, Output or Error
	Reentered EventKind = "reentered" // somebody resumed it: By
	Stopping  EventKind = "stopping"  // somebody canceled it: By
	Over      EventKind = "over"      // the last, unless it is resumed: Status, Output or Error
)

// known reports whether this version knows a kind of event.
func (k EventKind) known() bool {
	switch k {
	case Created, Claimed, Began, Retrying, Waits, Answered, Ended, Reentered, Stopping, Over:
		return true
	}
	return false
}

// Event is one line of a run's log.
type Event struct {
	// N counts the events of a run from 1. A reader sets it; it is not written.
	N    int       `json:"n,omitempty"`
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	// Path is where in the run a step is: "ID" for one of the definition's own, then what it stands in before it: "each[3].fetch",
	// "both.left.fetch", "pick.case[0].x", "loop[2].x", "guard.try.x", "guard.catch.x", "sub.x" in a nested workflow; "each[3]" is one pass of a loop.
	Path      string          `json:"path,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Outcome   string          `json:"outcome,omitempty"` // of Ended: ok, failed, skipped, cached, canceled
	Status    Status          `json:"status,omitempty"`
	Execution string          `json:"execution,omitempty"`
	Tool      string          `json:"tool,omitempty"` // of Began: the tool that is called
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *Fault          `json:"error,omitempty"`
	Until     time.Time       `json:"until,omitzero"`
	Pending   *Pending        `json:"pending,omitempty"`
	By        string          `json:"by,omitempty"`
	// Start is that of the run, of Created, or of a nested workflow, of Began.
	Start *Started `json:"start,omitempty"`
	// Read are, of Ended, the labels that the run has read by then and that no event before says: []gateway.Origin. The gateway
	// remembers them in memory only: see its Read, and Recall for the engine that continues the run.
	Read json.RawMessage `json:"read,omitempty"`
}

// Started is what a run was started with: all that it takes to continue with it elsewhere.
type Started struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Path     string `json:"path"` // of the definition's file
	Source   string `json:"source"`
	// Files are the files that the definition has its code in, by their names there.
	Files     map[string]string `json:"files,omitempty"`
	Inputs    json.RawMessage   `json:"inputs,omitempty"`
	Env       json.RawMessage   `json:"env,omitempty"`
	Trigger   string            `json:"trigger"`
	Principal string            `json:"principal,omitempty"`
	Workspace string            `json:"workspace,omitempty"` // of who started it
	Parent    string            `json:"parent,omitempty"`
	Of        string            `json:"of,omitempty"`
	// Read are the labels of what its starter had read: []gateway.Origin.
	Read json.RawMessage `json:"read,omitempty"`
}
