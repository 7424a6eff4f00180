package runlog

import (
	"encoding/json"
	"time"

	"sallyport/internal/tool"
)

// Status is the status of a run.
type Status string

// The statuses. OK, Failed and Canceled are final; a run can be resumed after Failed and Canceled.
const (
	Queued   Status = "queued"  // waits for its turn
	Running  Status = "running" // or will be, once an engine claims it
	Waiting  Status = "waiting" // for a person or a time, with no step running
	OK       Status = "ok"
	Failed   Status = "failed"
	Canceled Status = "canceled"
)

// Over reports whether the status is final.
func (s Status) Over() bool { return s == OK || s == Failed || s == Canceled }

// Run is the current state of one run of a workflow.
type Run struct {
	// ID is "r-" and 12 letters and digits.
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Digest is the digest of the definition. The run uses the same definition even if the file changes.
	Digest string `json:"digest"`
	Status Status `json:"status"`
	// Trigger is what started it: cli, http, program, mcp (a client's call), schedule, webhook, workflow test.
	Trigger   string `json:"trigger"`
	Principal string `json:"principal,omitempty"`
	// Parent is the execution or run that started it, Of the run that it replays; "" for none.
	Parent  string          `json:"parent,omitempty"`
	Of      string          `json:"of,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Error   *Fault          `json:"error,omitempty"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	// Steps is the number of finished steps.
	Steps int `json:"steps"`
	// Waiting is what it waits for now.
	Waiting []Pending `json:"waiting,omitempty"`
}

// Fault is the error of a step or run: short, for people and models.
type Fault struct {
	Kind    tool.Kind `json:"kind"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	// Step is the path of the failed step, see Event.Path; Line is its line in the definition.
	Step string `json:"step,omitempty"`
	Line int    `json:"line,omitempty"`
	// Retryable says that the step has had no effect, or that it is safe to repeat.
	Retryable bool `json:"retryable,omitempty"`
}

// Pending is something that a run waits for.
type Pending struct {
	// Step is the path of the step.
	Step string `json:"step"`
	// For is time, approval (Approval is its id), or form.
	For      string    `json:"for"`
	Until    time.Time `json:"until,omitzero"`
	Approval string    `json:"approval,omitempty"`
	// Why is "interrupted" if a person is asked whether to repeat a step, else "".
	Why string `json:"why,omitempty"`
	// Form is the form to fill in, a [sallyport/gateway/workflow/forms.Ask].
	Form json.RawMessage `json:"form,omitempty"`
}

// EventKind is the kind of an event.
type EventKind string

// The event kinds. A new one must be added to known as well.
const (
	Created   EventKind = "created"   // the first: Start
	Claimed   EventKind = "claimed"   // an engine has claimed the run: By
	Began     EventKind = "began"     // an attempt of a step starts: Path, Attempt, Input; Execution of a program
	Retrying  EventKind = "retrying"  // an attempt failed, and the next starts at Until: Path, Attempt, Error
	Waits     EventKind = "waits"     // a step waits: Path, Pending
	Answered  EventKind = "answered"  // a person answered a form: Path, Input; By
	Ended     EventKind = "ended"     // a step has ended: Path, Outcome, Output or Error
	Reentered EventKind = "reentered" // the run was resumed: By
	Stopping  EventKind = "stopping"  // the run was canceled: By
	Over      EventKind = "over"      // the run has ended, unless it is resumed: Status, Output or Error
)

// known reports whether this version supports the kind.
func (k EventKind) known() bool {
	switch k {
	case Created, Claimed, Began, Retrying, Waits, Answered, Ended, Reentered, Stopping, Over:
		return true
	}
	return false
}

// Event is one entry of a run's log.
type Event struct {
	// N is the number of the event in the run, from 1. It is set when reading and not stored.
	N    int       `json:"n,omitempty"`
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	// Path is the location of a step in the run: "ID" for a top-level step; nested steps have the path of their block first: "each[3].fetch",
	// "both.left.fetch", "pick.case[0].x", "loop[2].x", "guard.try.x", "guard.catch.x", "sub.x" in a nested workflow; "each[3]" is a loop iteration.
	Path      string          `json:"path,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Outcome   string          `json:"outcome,omitempty"` // of Ended: ok, failed, skipped, cached, canceled
	Status    Status          `json:"status,omitempty"`
	Execution string          `json:"execution,omitempty"`
	Task      string          `json:"task,omitempty"` // of Began: the id of the task that the step does
	Tool      string          `json:"tool,omitempty"` // of Began: the tool that is called
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *Fault          `json:"error,omitempty"`
	Until     time.Time       `json:"until,omitzero"`
	Pending   *Pending        `json:"pending,omitempty"`
	By        string          `json:"by,omitempty"`
	// Start is the start data of the run (Created) or of a nested workflow (Began).
	Start *Started `json:"start,omitempty"`
	// Read are the data labels that are new since the previous Ended event: []toolcall.Origin. The gateway holds them in memory only,
	// so an engine that continues the run restores them from here.
	Read json.RawMessage `json:"read,omitempty"`
}

// Started is the start data of a run: everything that another engine needs to continue it.
type Started struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Path     string `json:"path"` // of the definition's file
	Source   string `json:"source"`
	// Files are the contents of the definition's code files, by their names in it.
	Files     map[string]string `json:"files,omitempty"`
	Inputs    json.RawMessage   `json:"inputs,omitempty"`
	Env       json.RawMessage   `json:"env,omitempty"`
	Trigger   string            `json:"trigger"`
	Principal string            `json:"principal,omitempty"`
	Workspace string            `json:"workspace,omitempty"` // of its starter
	Endpoint  string            `json:"endpoint,omitempty"`  // of its starter, which it is confined to
	Parent    string            `json:"parent,omitempty"`
	Of        string            `json:"of,omitempty"`
	// Read are the data labels of its starter: []toolcall.Origin.
	Read json.RawMessage `json:"read,omitempty"`
}
