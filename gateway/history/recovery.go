package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// Program is the program in a journal, with everything that is needed to run it again.
type Program struct {
	Code        string                     `json:"code"`
	Language    string                     `json:"language"`
	File        string                     `json:"file,omitempty"`
	Variables   map[string]json.RawMessage `json:"variables,omitempty"`
	Timeout     time.Duration              `json:"timeout,omitempty"`
	Memory      int64                      `json:"memory,omitempty"`
	Session     string                     `json:"session,omitempty"`
	Environment string                     `json:"environment,omitempty"`
	Workspace   string                     `json:"workspace,omitempty"`
	// Endpoint is the endpoint that it is confined to, "" for none.
	Endpoint string `json:"endpoint,omitempty"`
}

// End is the end of a program in a journal.
type End struct {
	// Record has no code: the journal begins with it.
	Record Record `json:"record"`
	// Fault is the message of the fault that ended it, FaultType its type.
	Fault     string `json:"fault,omitempty"`
	FaultType string `json:"fault_type,omitempty"`
	// TakenBy is the gateway that wrote the end, because the one that ran the program was lost; "" for none.
	TakenBy string `json:"taken_by,omitempty"`
}

func newEnd(r Record, fault *bridge.Fault) End {
	r.Code = ""
	if fault == nil {
		return End{Record: r}
	}
	return End{Record: r, Fault: fault.Message, FaultType: fault.Type}
}

// ProgramOf returns the program of a journal.
func ProgramOf(c *journal.Contents) (p Program) {
	_ = json.Unmarshal(c.Program, &p) // empty, if it cannot be read
	return p
}

// EndOf returns the end in a journal, or without one that of an interrupted execution.
func EndOf(c *journal.Contents, last time.Time) End {
	program := ProgramOf(c)
	var end End
	if c.Over == nil || json.Unmarshal(c.Over, &end) != nil || end.Record.ID != c.ID {
		end = End{Record: interruptedRecord(c, program, last)}
	}
	end.Record.Code = program.Code
	return end
}

// interruptedRecord returns the record of an execution without an end.
func interruptedRecord(c *journal.Contents, p Program, last time.Time) Record {
	r := Record{
		ID: c.ID, Principal: c.Principal, Session: c.Session, Resumes: c.Resumes, Memory: p.Session, Environment: p.Environment, Language: p.Language,
		Status: execution.Interrupted, Started: c.Started, Duration: max(0, last.Sub(c.Started)), Workspace: p.Workspace,
	}
	if r.Workspace == execution.DefaultWorkspace {
		r.Workspace = ""
	}
	for _, req := range c.Calls {
		if !req.Asked {
			continue
		}
		if r.Made++; len(r.Calls) < toolcall.MaxRecords {
			r.Calls = append(r.Calls, toolcall.RecordedCall{Tool: req.Tool, Digest: req.Definition, Arguments: req.Arguments, Outcome: outcomeOf(req)})
		}
	}
	r.Title, r.Error = execution.Title(p.Code, toolNames(r.Calls)), "the gateway ended before the program did"
	if doubts := unfinished(r.Calls); len(doubts) > 0 {
		r.Error += "; these calls may have been done, or not: " + strings.Join(doubts, ", ")
	}
	return r
}

// maxDoubts is how many calls the error of an interrupted execution names.
const maxDoubts = 5

// unfinished returns the tools of the first calls without a known outcome.
func unfinished(calls []toolcall.RecordedCall) (names []string) {
	for _, c := range calls {
		if c.Outcome == toolcall.Unfinished && len(names) < maxDoubts {
			names = append(names, c.Tool.String())
		}
	}
	return names
}

func outcomeOf(c journal.Call) string {
	switch {
	case c.State == journal.Begun:
		return toolcall.Unfinished
	case c.Err != nil:
		return string(cmp.Or(c.Err.Kind, tool.Internal))
	}
	return toolcall.Outcome(c.Result, nil)
}

// recovery records the executions of processes that are gone, from their journals.
type recovery struct{ *History }

func (h recovery) all() {
	folders, _ := os.ReadDir(h.Root) // a missing directory has none
	for _, folder := range folders {
		for _, id := range journal.List(filepath.Join(h.Root, folder.Name())) {
			select {
			case <-h.quit:
				return
			default:
				if !journal.Settled(journal.Path(filepath.Join(h.Root, folder.Name()), id)) {
					h.one(folder.Name(), id)
				}
			}
		}
	}
}

// one records one execution that has ended or was interrupted.
func (h recovery) one(folder, id string) {
	h.taking.Lock()
	defer h.taking.Unlock()
	_ = h.recover(folder, id, h.opts.onRecord) // it still runs, is not a journal, or the error is logged
}

// again records the executions whose records could not be stored when they ended. Until then, they still run for other gateways.
func (h recovery) again() {
	h.mu.Lock()
	all := maps.Clone(h.unrecorded)
	h.mu.Unlock()
	for id, folder := range all {
		h.taking.Lock()
		err := h.recover(folder, id, func(Record) {}) // it was counted when it ended
		h.taking.Unlock()
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, journal.ErrDamaged) {
			h.mu.Lock()
			delete(h.unrecorded, id)
			h.mu.Unlock()
		}
	}
}

// recover records one execution, unless another gateway does, and calls onRecord then. taking must be held.
func (h recovery) recover(folder, id string, onRecord func(Record)) error {
	f, err := openJournal(h.History, folder, id)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if f.Kept {
		return nil
	}
	end := EndOf(f.Contents, modTime(journal.Path(filepath.Join(h.Root, folder), id)))
	if err := h.record(f, end); errors.Is(err, journal.ErrTaken) {
		return nil // another gateway records it
	} else if err != nil {
		h.opts.Logger.Error("execution is not recorded", "execution", f.ID, "error", err)
		return err
	}
	onRecord(end.Record)
	if h.removable(end.Record, f.Root) && end.Record.Made == 0 {
		err = f.Remove()
	} else {
		err = f.Settle(false) // also of one that succeeded: its answer may be lost, and resuming it returns the same
	}
	if err != nil {
		h.opts.Logger.Error("journal is not closed", "execution", f.ID, "error", err)
	}
	return nil
}

// openJournal opens a journal, with its copy if gateways share a store.
func openJournal(h *History, folder, id string) (*journal.File, error) {
	return journal.OpenCopied(journal.Path(filepath.Join(h.Root, folder), id), h.Copies.Copy(folder, id))
}

// fromJournal returns the record of an execution from its journal, if the store has none.
func fromJournal(h *History, principal, id string, operator bool) (Record, bool) {
	if h.Root == "" {
		return Record{}, false
	}
	folders := []string{h.Folder(principal)}
	if operator {
		folders, _ = filepath.Glob(filepath.Join(h.Root, "*"))
	}
	for _, folder := range folders {
		path := journal.Path(folder, id)
		if f, err := journal.Open(path); err == nil {
			defer func() { _ = f.Close() }()
			return EndOf(f.Contents, modTime(path)).Record, true
		}
	}
	return Record{}, false
}

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Fill sets the unset fields of a request to resume to those of the resumed program.
func (k Program) Fill(p *execution.Program, same bool) {
	if same {
		p.Code, p.File, p.Language = k.Code, k.File, k.Language
	}
	p.Language, p.Endpoint = cmp.Or(p.Language, k.Language), k.Endpoint
	p.Timeout, p.Memory = cmp.Or(p.Timeout, k.Timeout), cmp.Or(p.Memory, k.Memory)
	p.Session, p.Environment, p.Workspace = cmp.Or(p.Session, k.Session), cmp.Or(p.Environment, k.Environment), cmp.Or(p.Workspace, k.Workspace)
	variables := maps.Clone(k.Variables)
	if variables == nil {
		variables = map[string]json.RawMessage{}
	}
	maps.Copy(variables, p.Variables)
	if len(variables) > 0 {
		p.Variables = variables
	}
}
