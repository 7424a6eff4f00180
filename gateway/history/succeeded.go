package history

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// SucceededCall is a call of a program that succeeded.
type SucceededCall struct {
	Tool tool.ID
	// Arguments are as the program gave them, with tokens in place of personal data, in compact JSON.
	Arguments json.RawMessage
	// Result or Err is its outcome. Lost says that the result was too large to be stored.
	Result tool.Result
	Err    *tool.Error
	Lost   bool
}

// Succeeded is an execution that succeeded, with its calls.
type Succeeded struct {
	Record
	// Variables are the variables that were passed to the program.
	Variables map[string]json.RawMessage
	// Did are its calls in order of their start, without those that were not sent.
	Did []SucceededCall
}

// Succeeded returns a successful execution of the caller, or of any principal for an operator, with the calls from its journal.
// Errors are *tool.Error, also if the journal has expired.
func (h *History) Succeeded(ctx context.Context, id string) (Succeeded, error) {
	f, err := h.openSucceeded(ctx, id)
	if err != nil {
		return Succeeded{}, err
	}
	defer func() { _ = f.Close() }()
	done := Succeeded{Record: EndOf(f.Contents, f.Started).Record, Variables: ProgramOf(f.Contents).Variables}
	if done.Status != sandbox.OK {
		return Succeeded{}, notSucceeded(id)
	}
	for _, c := range f.Calls {
		if c.State != journal.Ended || !c.Asked {
			continue
		}
		if c.Args == nil {
			return Succeeded{}, &tool.Error{Kind: tool.Invalid, Message: "not all arguments of the calls of " + id + " are kept", Hint: "they are too large, or journal.successes was off in upstreams.yaml; run the program again"}
		}
		done.Did = append(done.Did, SucceededCall{Tool: c.Tool, Arguments: c.Args, Result: c.Result, Err: c.Err, Lost: c.Lost})
	}
	return done, nil
}

// openSucceeded opens the journal of an execution of the caller.
func (h *History) openSucceeded(ctx context.Context, id string) (*journal.File, error) {
	if h.Root == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "calls of programs are not kept: there is no data directory for journals"}
	}
	h.Flush(ctx, id)
	folders := []string{h.Folder(tool.Principal(ctx))}
	if tool.Operator(ctx) != "" {
		folders, _ = filepath.Glob(filepath.Join(h.Root, "*")) // the pattern is valid
	}
	for _, folder := range folders {
		f, err := journal.Open(journal.Path(folder, id))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, h.notResumable(ctx, id, err)
		}
		return f, nil
	}
	return nil, noJournalError(ctx, h, id)
}

// noJournalError returns the error for an execution without a journal.
func noJournalError(ctx context.Context, h *History, id string) error {
	record, err := h.Record(ctx, id)
	switch {
	case err != nil:
		return err
	case record.Status != sandbox.OK:
		return notSucceeded(id)
	case record.Made == 0:
		return &tool.Error{Kind: tool.Invalid, Message: id + " made no calls of tools"}
	}
	return &tool.Error{Kind: tool.NotFound, Message: "the calls of " + id + " are not kept", Hint: "journal.keep, journal.size and journal.successes in upstreams.yaml say for how long they are; run the program again"}
}

func notSucceeded(id string) error {
	return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(id, 60) + " did not succeed", Hint: "use one that did: `sallyport log` lists them"}
}
