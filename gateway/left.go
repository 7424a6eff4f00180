package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// Interrupted is the status of an execution whose gateway was gone before its program had ended.
const Interrupted sandbox.Status = "interrupted"

// keptProgram is what a journal has of a program: what it takes to run it again.
type keptProgram struct {
	Code        string                     `json:"code"`
	Language    string                     `json:"language"`
	File        string                     `json:"file,omitempty"`
	Variables   map[string]json.RawMessage `json:"variables,omitempty"`
	Timeout     time.Duration              `json:"timeout,omitempty"`
	Memory      int64                      `json:"memory,omitempty"`
	Session     string                     `json:"session,omitempty"`
	Environment string                     `json:"environment,omitempty"`
	Workspace   string                     `json:"workspace,omitempty"`
}

// over is what a journal has of a program's end.
type over struct {
	// Record is without the code, which the journal begins with.
	Record Record `json:"record"`
	// Fault is the message of the fault that ended it, FaultType its type.
	Fault     string `json:"fault,omitempty"`
	FaultType string `json:"fault_type,omitempty"`
}

func overOf(r Record, fault *bridge.Fault) over {
	r.Code = ""
	if fault == nil {
		return over{Record: r}
	}
	return over{r, fault.Message, fault.Type}
}

// programIn is the program of a journal.
func programIn(c *journal.Contents) (p keptProgram) {
	_ = json.Unmarshal(c.Program, &p) // nothing, of one that cannot be read
	return p
}

// overIn is the end that a journal has, or that which it must have had.
func overIn(c *journal.Contents, last time.Time) over {
	program := programIn(c)
	var end over
	if c.Over == nil || json.Unmarshal(c.Over, &end) != nil || end.Record.ID != c.ID {
		end = over{Record: interrupted(c, program, last)}
	}
	end.Record.Code = program.Code
	return end
}

// interrupted is the record of an execution that did not come to its end.
func interrupted(c *journal.Contents, p keptProgram, last time.Time) Record {
	r := Record{
		ID: c.ID, Principal: c.Principal, Session: c.Session, Resumes: c.Resumes, Memory: p.Session, Environment: p.Environment, Language: p.Language,
		Status: Interrupted, Started: c.Started, Duration: max(0, last.Sub(c.Started)), Workspace: p.Workspace,
	}
	if r.Workspace == execution.DefaultWorkspace {
		r.Workspace = ""
	}
	for _, req := range c.Calls {
		if !req.Asked {
			continue
		}
		if r.Made++; len(r.Calls) < toolcall.MaxRecords {
			r.Calls = append(r.Calls, toolcall.Record{Tool: req.Tool, Digest: req.Definition, Arguments: req.Arguments, Outcome: outcomeIn(req)})
		}
	}
	return r
}

func outcomeIn(c journal.Call) string {
	switch {
	case c.State == journal.Begun:
		return toolcall.Unfinished
	case c.Err != nil:
		return string(cmp.Or(c.Err.Kind, tool.Internal))
	}
	return toolcall.Outcome(c.Result, nil)
}

// recover puts on record what processes have left that are gone.
func (r *recorder) recover() {
	folders, _ := os.ReadDir(r.root) // none is none
	for _, folder := range folders {
		for _, id := range journal.List(filepath.Join(r.root, folder.Name())) {
			select {
			case <-r.quit:
				return
			default:
				r.take(journal.Path(filepath.Join(r.root, folder.Name()), id))
			}
		}
	}
}

// take puts one execution on record that has ended, or whose process is gone.
func (r *recorder) take(path string) {
	if journal.Settled(path) {
		return
	}
	f, err := journal.Open(path)
	if err != nil {
		return // it runs, or is none
	}
	defer func() { _ = f.Close() }()
	if f.Kept {
		return
	}
	end := overIn(f.Contents, modified(path))
	if err := r.write(context.Background(), end.Record); err != nil {
		r.log.Error("execution is not recorded", "execution", f.ID, "error", err)
		return
	}
	if r.needless(end.Record, f.Root) {
		err = f.Remove()
	} else {
		err = f.Keep(end.Record.Status == sandbox.OK)
	}
	if err != nil {
		r.log.Error("journal is not closed", "execution", f.ID, "error", err)
	}
}

// left is the record of an execution that only its journal tells of.
func (r *recorder) left(principal, id string, operator bool) (Record, bool) {
	if r.root == "" {
		return Record{}, false
	}
	folders := []string{r.folder(principal)}
	if operator {
		folders, _ = filepath.Glob(filepath.Join(r.root, "*"))
	}
	for _, folder := range folders {
		path := journal.Path(folder, id)
		if f, err := journal.Open(path); err == nil {
			defer func() { _ = f.Close() }()
			return overIn(f.Contents, modified(path)).Record, true
		}
	}
	return Record{}, false
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
