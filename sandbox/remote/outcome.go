package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// ended is what the worker says of a program's end in addition to the bridge's frames. Output goes by itself.
type ended struct {
	// Error says why the program was not run; the rest is empty then.
	Error     string         `json:"error,omitempty"`
	Status    sandbox.Status `json:"status,omitempty"`
	Exit      int            `json:"exit,omitempty"`
	StdoutCut int64          `json:"stdout_cut,omitempty"`
	StderrCut int64          `json:"stderr_cut,omitempty"`
	Reused    bool           `json:"reused,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
}

// jobHead is a job without its program, which comes as the bridge's frame.
type jobHead struct {
	ID          string              `json:"id"`
	Interpreter sandbox.Interpreter `json:"interpreter"`
	Limits      sandbox.Limits      `json:"limits"`
	Session     string              `json:"session,omitempty"`
	// Files says that the program has a workspace.
	Files bool `json:"files,omitempty"`
	// Printed asks for what it prints while it runs, which a worker may know nothing of.
	Printed bool `json:"printed,omitempty"`
}

// The bounds of what a worker says, which a host keeps to.
const (
	maxNotes = 32
	maxNote  = 400
	// outputNote is about how long the line is that stands where output was cut, in bytes.
	outputNote = 1 << 10
)

// report collects what comes aside while a program runs. Only the reader of the messages writes it.
type report struct {
	end            *ended
	stdout, stderr []byte
	limit          int // of each
	// printed gets what comes while the program runs; nil for none.
	printed func(s sandbox.Stream, p []byte)
}

// newReport bounds output as a host does: what is no UTF-8 becomes three bytes for one.
func newReport(job sandbox.Job) *report {
	return &report{limit: 3*job.Limits.Output + outputNote, printed: job.Printed}
}

var errReport = errors.New("the worker did not keep to the messages about a program's end")

// aside takes a message of the worker's.
func (r *report) aside(kind byte, data []byte) error {
	into := &r.stdout
	switch kind {
	case kindStdout:
	case kindStderr:
		into = &r.stderr
	case kindPrintedOut, kindPrintedErr:
		return r.hear(kind, data)
	case kindOutcome:
		if r.end != nil {
			return errReport
		}
		r.end = &ended{}
		return json.Unmarshal(data, r.end)
	default:
		return errReport
	}
	if len(*into)+len(data) > r.limit {
		return errReport
	}
	*into = append(*into, data...)
	return nil
}

// hear passes on what is printed now. Nothing of it is kept here.
func (r *report) hear(kind byte, data []byte) error {
	if r.printed == nil || r.end != nil {
		return errReport
	}
	stream := sandbox.Stdout
	if kind == kindPrintedErr {
		stream = sandbox.Stderr
	}
	r.printed(stream, data)
	return nil
}

// statuses are those that a worker can report.
var statuses = []sandbox.Status{
	sandbox.OK, sandbox.Failed, sandbox.Exited, sandbox.TimedOut, sandbox.OutOfMemory,
	sandbox.Flooded, sandbox.OutOfCPU, sandbox.Canceled, sandbox.Crashed,
}

// outcome puts together what this side has seen itself and what the worker says.
func (r *report) outcome(seen bridge.Report) sandbox.Outcome {
	said := r.end
	o := sandbox.Outcome{
		Status: said.Status, Exit: said.Exit & 0xff, Reused: said.Reused, Calls: seen.Calls, Emitted: seen.Emitted, Notes: seen.Notes,
		Stdout: output(r.stdout, said.StdoutCut), Stderr: output(r.stderr, said.StderrCut),
	}
	for _, note := range said.Notes[:min(len(said.Notes), maxNotes)] {
		o.Notes = append(o.Notes, sanitize.Line(note, maxNote))
	}
	done := seen.Done
	switch {
	case !slices.Contains(statuses, o.Status):
		o.Status = sandbox.Crashed
	case o.Status == sandbox.OK && done.Fault == nil:
		o.Value = done.Value
	case o.Status == sandbox.Failed && done.Fault != nil:
		o.Fault, o.Value = done.Fault, done.Value
	case o.Status == sandbox.OK || o.Status == sandbox.Failed: // one of the two is not true
		o.Status = sandbox.Crashed
	case o.Status == sandbox.Exited:
		o.Value = done.Value
	}
	return o
}

func output(text []byte, cut int64) sandbox.Output {
	clean := strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
	return sandbox.Output{Text: clean, Cut: max(0, cut)}
}

// lost is the outcome of a program without a report from its worker.
func (c *Client) lost(seen bridge.Report, why error) sandbox.Outcome {
	note := fmt.Sprintf("the connection to the machine that ran it (%s) was lost; it was stopped there, its changes of /workspace are not kept, and it is not run again by itself", c.name)
	if errors.Is(why, errLate) {
		note = fmt.Sprintf("the machine that ran it (%s) did not say that it ended in time; it is not run again by itself", c.name)
	}
	return sandbox.Outcome{Status: sandbox.Crashed, Calls: seen.Calls, Emitted: seen.Emitted, Notes: append(seen.Notes, note)}
}

// chunk is how long a message with output is, in bytes.
const chunk = 1 << 20

// tell sends what end does not have, and end.
func tell(m *bridge.Messages, o sandbox.Outcome, why error) error {
	said := ended{Status: o.Status, Exit: o.Exit, StdoutCut: o.Stdout.Cut, StderrCut: o.Stderr.Cut, Reused: o.Reused, Notes: o.Notes}
	if why != nil {
		said = ended{Error: why.Error()}
	}
	for kind, text := range map[int]string{kindStdout: o.Stdout.Text, kindStderr: o.Stderr.Text} {
		for part := range slices.Chunk([]byte(text), chunk) {
			if err := m.WriteMessage(kind, part); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return m.WriteMessage(kindOutcome, data)
}

// bounded makes findings of a worker fit to be shown.
func bounded(found []sandbox.Check) []sandbox.Check {
	found = found[:min(len(found), maxNotes)]
	for i := range found {
		f := &found[i]
		f.Name, f.Detail, f.Fix = sanitize.Line(f.Name, 60), sanitize.Line(f.Detail, maxNote), sanitize.Line(f.Fix, maxNote)
	}
	return found
}

// The paths of requests.
const (
	pathRun     = "/run"
	pathPublish = "/publish"
	pathWarm    = "/warm"
	pathWaiting = "/waiting"
	pathChecks  = "/checks"
)

// waiting is the answer to pathWaiting.
type waiting struct {
	Count int  `json:"count"`
	Full  bool `json:"full"`
}

const (
	// queueLimit is how long a program may wait at the worker before it begins, and the end of one take.
	queueLimit = 5 * time.Minute
	// cancelLimit is how long a program that was cancelled may take to end: what it left is saved in that time.
	cancelLimit = 3 * time.Second
)
