package history

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// Record is the record of an execution: the program and its outcome.
type Record struct {
	ID string `json:"id"`
	// Principal ran it, "" without authentication; Session is the client's session, see [tool.Session].
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	// Remote says that it was requested over HTTP.
	Remote bool `json:"remote,omitempty"`
	// Memory is the interpreter session that the program named, "" for none.
	Memory string `json:"memory,omitempty"`
	// Workspace and Environment are names; "" is the default one.
	Workspace   string `json:"workspace,omitempty"`
	Environment string `json:"environment,omitempty"`
	Language    string `json:"language"`
	// Client is the name and version of the client.
	Client string `json:"client,omitempty"`
	// Title is a line that describes the program, see [execution.Title].
	Title string `json:"title,omitempty"`
	// Resumes is the execution that it resumed, "" for none.
	Resumes string `json:"resumes,omitempty"`
	// Code is the program as it was given, at most 1 MiB.
	Code     string         `json:"code"`
	Status   sandbox.Status `json:"status"`
	Started  time.Time      `json:"started"`
	Duration time.Duration  `json:"duration"`
	// Error is a line on why it did not succeed, "" if it did.
	Error string `json:"error,omitempty"`
	// Output is the output that is kept, nil for none.
	Output *Output `json:"output,omitempty"`
	// Calls are the first 1,000 tool calls, in order of their start; Made is the number of all.
	Calls []toolcall.RecordedCall `json:"calls,omitempty"`
	Made  int                     `json:"made,omitempty"`
	// Line is the line of the program where it failed, from 1; 0 for none or unknown.
	Line int `json:"line,omitempty"`
	// Read are the labels that it and its session had read at its end.
	Read []toolcall.Origin `json:"read,omitempty"`
	// Stdout, Stderr and Value are full sizes in bytes, before truncation.
	Stdout int64 `json:"stdout,omitempty"`
	Stderr int64 `json:"stderr,omitempty"`
	Value  int64 `json:"value,omitempty"`
	// Tokens is the number of tokens of the answer, TokensRead that of the results that the program got (o200k_base). The first
	// 64 KiB of each are counted, the rest is extrapolated.
	Tokens     int `json:"tokens,omitempty"`
	TokensRead int `json:"tokens_read,omitempty"`
}

// KeyOf returns the key of a principal's record; without an id the prefix of all.
func KeyOf(principal string, id ...string) store.Key {
	return append(store.Key{workspace.Folder(principal)}, id...)
}

// Record returns the record of an execution of the caller, or of any principal for an operator.
// Errors are *tool.Error; NotFound also for an execution of another principal.
func (h *History) Record(ctx context.Context, id string) (Record, error) {
	r, err := h.find(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		return Record{}, noExecution(id)
	case err != nil:
		return Record{}, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	return r, nil
}

// ErrNoExecution is wrapped in the error for an execution that does not exist, has expired, or belongs to another principal.
var ErrNoExecution = errors.New("there is no such execution")

func noExecution(id string) error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + sanitize.Line(id, 60), Hint: "use the id of one of your last executions", Err: ErrNoExecution}
}

// Records iterates over the records of the caller, or of all principals for an operator, the oldest
// first, until the first error, a *tool.Error.
func (h *History) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		whose, operator := KeyOf(tool.Principal(ctx)), tool.Operator(ctx) != ""
		if operator {
			whose = nil
		}
		h.takeOver(ctx)
		late, told := h.pendingRecords(tool.Principal(ctx), operator), map[string]bool{}
		for entry, err := range h.records.List(ctx, whose) {
			r := Record{}
			if err == nil {
				r, err = recordOf(entry)
			}
			if err != nil {
				yield(Record{}, toolcall.Unreadable(ctx, h.opts.Logger, err))
				return
			}
			told[r.ID] = true
			if !yield(r, nil) {
				return
			}
		}
		for _, r := range late {
			if !told[r.ID] && !yield(r, nil) {
				return
			}
		}
	}
}

// Add stores the record of an execution. It only logs errors: they do not fail the program.
func (h *History) Add(ctx context.Context, program execution.Program, e *execution.Result, started time.Time, running *toolcall.Execution, read []toolcall.Origin) {
	e.Cost = execution.NewCost(h.opts.Meter, e.Text(), running.Calls)
	r := Record{
		ID: e.ID, Principal: tool.Principal(ctx), Session: tool.Session(ctx), Remote: running.Remote, Memory: program.Session,
		Environment: program.Environment, Language: e.Language, Code: program.Code, Resumes: program.Resume,
		Status: e.Status, Started: started.UTC(), Duration: e.Duration,
		Stdout: int64(len(e.Stdout.Text)) + e.Stdout.Cut, Stderr: int64(len(e.Stderr.Text)) + e.Stderr.Cut,
		Tokens: int(h.opts.Meter.Estimate(e.Cost.Size)),
	}
	if program.Workspace != execution.DefaultWorkspace {
		r.Workspace = program.Workspace
	}
	if e.Value != nil {
		r.Value = e.Value.Size
	}
	r.Client, r.Error, r.Output = tool.Client(ctx), errorLine(*e), outputOf(*e, int(h.opts.Settings.Load().Records.Output))
	r.Calls, r.Made = running.Calls.All()
	r.Title = execution.Title(program.Code, toolNames(r.Calls))
	_, results := running.Calls.Sums()
	r.TokensRead = int(h.opts.Meter.Estimate(results))
	r.Read = read
	if e.Fault != nil {
		r.Line = faultLine(e.Fault)
	}
	err := h.put(context.WithoutCancel(ctx), r, running, e.Cost, e.Fault)
	if errors.Is(err, journal.ErrTaken) {
		endTaken(e)
	}
	if err != nil {
		h.opts.Logger.ErrorContext(ctx, "execution is not recorded", "execution", e.ID, "error", err)
	}
}

// faultLine returns the innermost line of the program itself in a fault, 0 for none.
func faultLine(f *bridge.Fault) int {
	for _, line := range slices.Backward(f.Lines) {
		if line.File == "" {
			return line.Line
		}
	}
	return 0
}
