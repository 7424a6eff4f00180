package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Running is what this face needs to run programs.
type Running interface {
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
	// MaxTimeout is how long a program may run.
	MaxTimeout() time.Duration
	// CountTokens is what a text costs a model.
	CountTokens(text string) int
}

// maxProgram is how large the body may be that has a program, in bytes: the code is 1 MiB at most, and more in JSON.
const maxProgram = 4 << 20

// Program is what POST /execute takes.
type Program struct {
	// Code is the program, at most 1 MiB. It may be left out for a file, and to continue with an execution.
	Code string `json:"code,omitempty"`
	// Language is python or typescript; without it python.
	Language string `json:"language,omitempty"`
	// Timeout is how many seconds it may run, at most what the settings allow, which is what counts where nothing is said.
	Timeout *float64 `json:"timeout,omitempty"`
	// Workspace names the files that it finds at /workspace; without it default.
	Workspace string `json:"workspace,omitempty"`
	// Environment names the interpreters and packages that it runs with, of the settings.
	Environment string `json:"environment,omitempty"`
	// Session, where it is given, keeps what is left in memory for the next program that names the same one.
	Session string `json:"session,omitempty"`
	// File is the path of a file of the workspace that is run in place of code.
	File string `json:"file,omitempty"`
	// Variables are what the program finds under their names.
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// Resume is the id of an execution that did not end well, or was held: calls that it made are not made again.
	Resume string `json:"resume,omitempty"`
}

// Executed is what POST /execute gives. A program that fails is a success of the request: Status says how it ended.
type Executed struct {
	// ID is that of the execution.
	ID string `json:"id"`
	// Status is ok, failed, exited, timeout, memory, cpu, output, canceled, crashed, or held where a person has to approve a call first.
	Status string `json:"status"`
	// Output is what it printed to stdout, Stderr what to stderr; long ones are cut in the middle.
	Output string `json:"output"`
	Stderr string `json:"stderr,omitempty"`
	// Result is its value (the last expression, or the default export): JSON, or a text that describes what is no JSON; null if it has none.
	Result json.RawMessage `json:"result"`
	// Emitted is what it sent besides: texts, images, files.
	Emitted []Content `json:"emitted,omitempty"`
	// Error says why it did not end well.
	Error *Failure `json:"error,omitempty"`
	// ExecutionTime is how long it ran, in seconds.
	ExecutionTime float64 `json:"executionTime"`
	// Truncated says that output or result were longer than what is here.
	Truncated bool `json:"truncated"`
	// Files are those of the workspace that it has made, changed or removed.
	Files []execution.FileChange `json:"files"`
	// Metrics are numbers about it.
	Metrics Metrics `json:"metrics"`
	// Notes say what else is worth knowing, in words.
	Notes []string `json:"notes,omitempty"`
	// Approvals are what it waits for, with status held.
	Approvals []approvals.Approval `json:"approvals,omitempty"`
	// Resume is what to give as resume, so that calls that were made are not made again.
	Resume string `json:"resume,omitempty"`
}

// Failure is why a program did not end well.
type Failure struct {
	// Type is that of the exception, or the status.
	Type string `json:"type"`
	// Message says it in words, Hint what would be right.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Lines are where in the program, the innermost last.
	Lines []CodeLine `json:"lines,omitempty"`
}

// CodeLine is a line of a program.
type CodeLine struct {
	// File is the one that it is in, nothing for the program itself.
	File string `json:"file,omitempty"`
	Line int    `json:"line"`
	// Function is the one that it is in, Source its text.
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

// Metrics are numbers about an execution.
type Metrics struct {
	// Calls is how many calls of tools it made.
	Calls int `json:"calls"`
	// Tokens is what its answer costs a model, as MCP clients get it (o200k_base).
	Tokens int `json:"tokens"`
	// TokensSaved is how many tokens of tools' results stayed in the program, beyond its answer.
	TokensSaved int `json:"tokensSaved"`
	// QueuedMS is for how long it waited for its turn, in milliseconds.
	QueuedMS int64 `json:"queuedMs"`
}

func (a *api) execute(r *http.Request, in Program) (Executed, error) {
	p, err := a.program(in)
	if err != nil {
		return Executed{}, err
	}
	e, err := a.verbs.Execute(r.Context(), p)
	if err != nil {
		return Executed{}, err
	}
	return a.executed(e), nil
}

// program is what the gateway is asked to run.
func (a *api) program(in Program) (execution.Program, error) {
	var timeout time.Duration
	if most := a.verbs.MaxTimeout().Seconds(); in.Timeout != nil {
		if *in.Timeout <= 0 || *in.Timeout > most {
			return execution.Program{}, invalid(fmt.Sprintf("timeout must be more than 0 and at most %g, in seconds; leave it out for %g", most, most))
		}
		timeout = max(1, time.Duration(*in.Timeout*float64(time.Second)))
	}
	return execution.Program{
		Code: in.Code, Language: in.Language, Timeout: timeout, Workspace: in.Workspace,
		Environment: in.Environment, Session: in.Session, File: in.File, Variables: in.Variables, Resume: in.Resume,
	}, nil
}

func (a *api) executed(e execution.Result) Executed {
	tokens := a.verbs.CountTokens(e.Text())
	x := Executed{
		ID: e.ID, Status: string(e.Status), Result: resultOf(e), Emitted: contents(e.Shown()), Error: failureOf(e), ExecutionTime: e.Duration.Seconds(),
		Truncated: e.Truncated(), Files: e.Files, Metrics: Metrics{Calls: e.Calls, Tokens: tokens, TokensSaved: max(0, e.TokensRead()-tokens), QueuedMS: e.Queued.Milliseconds()}, Approvals: e.Approvals, Resume: e.Resume,
	}
	x.Output, x.Stderr = e.Printed()
	if x.Files == nil {
		x.Files = []execution.FileChange{}
	}
	for _, note := range e.Notes {
		x.Notes = append(x.Notes, sanitize.Line(note, 300))
	}
	return x
}

// resultOf is the value of a program: what is no JSON, and what was cut, is a text.
func resultOf(e execution.Result) json.RawMessage {
	if e.Value == nil {
		return json.RawMessage("null")
	}
	if e.Value.Kind == "json" && json.Valid([]byte(e.Value.Text)) {
		return json.RawMessage(e.Value.Text)
	}
	text, err := json.Marshal(e.Value.Text)
	if err != nil { // a text
		return json.RawMessage("null")
	}
	return text
}

// failureOf is why a program did not end well, nil if it did.
func failureOf(e execution.Result) *Failure {
	if !e.Failed() {
		return nil
	}
	if e.Fault == nil {
		return &Failure{Type: string(e.Status), Message: e.Ending()}
	}
	f := &Failure{Type: sanitize.Line(e.Fault.Type, 100), Message: sanitize.Text(e.Fault.Message, 4000), Hint: sanitize.Line(e.Fault.Hint, 500)}
	for _, line := range e.Fault.Lines {
		f.Lines = append(f.Lines, CodeLine{File: sanitize.Line(line.File, 120), Line: line.Line, Function: sanitize.Line(line.Function, 60), Source: sanitize.Line(line.Source, 160)})
	}
	return f
}

// Content is one block of what a tool answered, or a program sent, in the form that MCP gives it.
type Content struct {
	// Type is text, image, audio, resource, resource_link, or one that only its tool knows.
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Data is base64, of an image or audio.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	// URI and Name are those of a link.
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
	// Resource is the content of a resource.
	Resource *Resource `json:"resource,omitempty"`
}

// Resource is the content of a resource: a text, or bytes.
type Resource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	// Blob is base64.
	Blob []byte `json:"blob,omitempty"`
}

func contents(all []tool.Content) []Content {
	list := make([]Content, 0, len(all))
	for _, c := range all {
		if c.Type == "resource" {
			list = append(list, Content{Type: c.Type, Name: c.Name, Resource: &Resource{URI: c.URI, MIMEType: c.MIME, Text: c.Text, Blob: c.Data}})
			continue
		}
		list = append(list, Content{Type: c.Type, Text: c.Text, Data: c.Data, MIMEType: c.MIME, URI: c.URI, Name: c.Name})
	}
	return list
}
