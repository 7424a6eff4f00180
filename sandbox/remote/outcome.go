package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// endMessage is the worker's message about a program's end, in addition to the bridge's frames. Output is sent separately.
type endMessage struct {
	// Error is the reason why the program was not run; the rest is empty then.
	Error string `json:"error,omitempty"`
	// Added is set if the reason is that the environment could not be made of Job.Added.
	Added     *AddError      `json:"added,omitempty"`
	Status    sandbox.Status `json:"status,omitempty"`
	Exit      int            `json:"exit,omitempty"`
	StdoutCut int64          `json:"stdout_cut,omitempty"`
	StderrCut int64          `json:"stderr_cut,omitempty"`
	Reused    bool           `json:"reused,omitempty"`
	CPU       time.Duration  `json:"cpu,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
}

// jobHead is a job without its program, which comes as the bridge's frame.
type jobHead struct {
	ID          string              `json:"id"`
	Interpreter sandbox.Interpreter `json:"interpreter"`
	Limits      sandbox.Limits      `json:"limits"`
	Session     string              `json:"session,omitempty"`
	Owner       string              `json:"owner,omitempty"`
	// Files is set if the program has a workspace.
	Files bool `json:"files,omitempty"`
	// Environment is one of those that the worker has, Added the packages that are added to it.
	Environment string                           `json:"environment,omitempty"`
	Added       map[sandbox.Interpreter][]string `json:"added,omitempty"`
	// StreamOutput asks for output while the program runs. Older workers ignore it.
	StreamOutput bool `json:"printed,omitempty"`
}

// The bounds of a worker's messages; a regular host stays within them.
const (
	maxNotes = 32
	maxNote  = 400
	// outputNote bounds the line that replaces output that was cut, in bytes.
	outputNote = 1 << 10
	// liveSlack is what a host may print live beyond the limit until it has stopped a program, in bytes.
	liveSlack = 16 << 20
)

// report collects the worker's messages that do not belong to the bridge. Only the reader of the messages writes it.
type report struct {
	end            *endMessage
	ended          atomic.Bool // end is set
	stdout, stderr []byte
	limit          int // of each
	live, maxLive  int64
	// onOutput receives output while the program runs; may be nil.
	onOutput func(s sandbox.Stream, p []byte)
}

// newReport bounds output as a host does: each invalid UTF-8 byte becomes three bytes.
func newReport(job sandbox.Job) *report {
	return &report{limit: 3*job.Limits.Output + outputNote, maxLive: 2*job.Limits.Flood() + liveSlack, onOutput: job.OnOutput}
}

var errProtocol = errors.New("invalid message from the worker")

// handleMessage handles a message of the worker that does not belong to the bridge.
func (r *report) handleMessage(kind byte, data []byte) error {
	into := &r.stdout
	switch kind {
	case kindStdout:
	case kindStderr:
		into = &r.stderr
	case kindLiveStdout, kindLiveStderr:
		return r.forwardOutput(kind, data)
	case kindOutcome:
		if r.end != nil {
			return errProtocol
		}
		r.end = &endMessage{}
		r.ended.Store(true)
		return json.Unmarshal(data, r.end)
	default:
		return errProtocol
	}
	if len(*into)+len(data) > r.limit {
		return errProtocol
	}
	*into = append(*into, data...)
	return nil
}

// forwardOutput forwards output of the running program. It stores nothing.
func (r *report) forwardOutput(kind byte, data []byte) error {
	if r.live += int64(len(data)); r.onOutput == nil || r.end != nil || r.live > r.maxLive {
		return errProtocol
	}
	stream := sandbox.Stdout
	if kind == kindLiveStderr {
		stream = sandbox.Stderr
	}
	r.onOutput(stream, data)
	return nil
}

// statuses are those that a worker can report.
var statuses = []sandbox.Status{
	sandbox.OK, sandbox.Failed, sandbox.Exited, sandbox.TimedOut, sandbox.OutOfMemory,
	sandbox.Flooded, sandbox.OutOfCPU, sandbox.Canceled, sandbox.Crashed,
}

// outcome combines what this side knows with the worker's report.
func (r *report) outcome(seen bridge.Report) sandbox.Outcome {
	said := r.end
	o := sandbox.Outcome{
		Status: said.Status, Exit: said.Exit & 0xff, Reused: said.Reused, CPU: max(0, said.CPU), Calls: seen.Calls, Emitted: seen.Emitted, Notes: seen.Notes,
		Stdout: output(r.stdout, said.StdoutCut), Stderr: output(r.stderr, said.StderrCut),
	}
	for _, note := range said.Notes[:min(len(said.Notes), maxNotes)] {
		o.Notes = append(o.Notes, sanitize.Line(note, maxNote))
	}
	done := seen.Result
	switch {
	case !slices.Contains(statuses, o.Status):
		o.Status = sandbox.Crashed
	case o.Status == sandbox.OK && done.Fault == nil:
		o.Value = done.Value
	case o.Status == sandbox.Failed && done.Fault != nil:
		o.Fault, o.Value = done.Fault, done.Value
	case o.Status == sandbox.OK || o.Status == sandbox.Failed: // status and fault contradict each other
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

// lostOutcome returns the outcome of a program without a report from its worker.
func (c *Client) lostOutcome(seen bridge.Report, why error) sandbox.Outcome {
	o := sandbox.Outcome{Status: sandbox.Crashed, Calls: seen.Calls, Emitted: seen.Emitted, Notes: seen.Notes}
	switch {
	case errors.Is(why, errTimeout):
		o.Notes = append(o.Notes, fmt.Sprintf("the machine that ran it (%s) did not say that it ended in time; it is not run again by itself", c.name))
	case errors.Is(why, errContradiction):
		o.Notes = append(o.Notes, fmt.Sprintf("%s (%s); it is not run again by itself", errContradiction, c.name))
	default:
		o.Lost = c.name
	}
	return o
}

// outputChunkSize is the maximum size of a message with output, in bytes.
const outputChunkSize = 1 << 20

// sendOutcome sends the output and then the rest of the outcome.
func sendOutcome(m *bridge.Messages, o sandbox.Outcome, why error) error {
	said := endMessage{Status: o.Status, Exit: o.Exit, StdoutCut: o.Stdout.Cut, StderrCut: o.Stderr.Cut, Reused: o.Reused, CPU: o.CPU, Notes: o.Notes}
	if why != nil {
		said = endMessage{Error: why.Error()}
		said.Added, _ = errors.AsType[*AddError](why)
	}
	for kind, text := range map[int]string{kindStdout: o.Stdout.Text, kindStderr: o.Stderr.Text} {
		for part := range slices.Chunk([]byte(text), outputChunkSize) {
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

// sanitizeChecks sanitizes a worker's checks for display.
func sanitizeChecks(found []sandbox.Check) []sandbox.Check {
	found = found[:min(len(found), maxNotes)]
	for i := range found {
		f := &found[i]
		f.Name, f.Detail, f.Fix = sanitize.Line(f.Name, 60), sanitize.Line(f.Detail, maxNote), sanitize.Line(f.Fix, maxNote)
	}
	return found
}

// The paths of requests.
const (
	pathRun      = "/run"
	pathPublish  = "/publish"
	pathWarm     = "/warm"
	pathWaiting  = "/waiting"
	pathChecks   = "/checks"
	pathService  = "/service/" // and its name
	pathPackages = "/packages"
)

// waitingReply is the answer to pathWaiting.
type waitingReply struct {
	Count int  `json:"count"`
	Full  bool `json:"full"`
}

const (
	// queueLimit is the maximum time for queueing at the worker and for ending the program.
	queueLimit = 5 * time.Minute
	// cancelLimit is how long a canceled program may take to end, including saving its files.
	cancelLimit = 3 * time.Second
)
