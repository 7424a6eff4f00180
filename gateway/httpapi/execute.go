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

// Runner runs programs.
type Runner interface {
	Execute(ctx context.Context, program execution.Program) (execution.Result, error)
	// MaxTimeout returns the maximum timeout of a program.
	MaxTimeout() time.Duration
	// CountTokens counts the tokens of a text.
	CountTokens(text string) int
}

// maxProgram is the maximum size of a body with a program, in bytes: code of 1 MiB is larger in JSON.
const maxProgram = 4 << 20

// Program is what POST /execute takes.
type Program struct {
	// Code is the program, at most 1 MiB. It may be omitted with file or resume.
	Code string `json:"code,omitempty"`
	// Language is python or typescript; without it python.
	Language string `json:"language,omitempty"`
	// Timeout is how many seconds it may run; the maximum and default is the limit in the settings.
	Timeout *float64 `json:"timeout,omitempty"`
	// Workspace names the workspace at /workspace; the default is default.
	Workspace string `json:"workspace,omitempty"`
	// Environment names the environment of the settings to run in.
	Environment string `json:"environment,omitempty"`
	// Isolation "program" gives it a sandbox that no other program uses.
	Isolation string `json:"isolation,omitempty"`
	// Session, if set, keeps the interpreter's state for the next program with the same session.
	Session string `json:"session,omitempty"`
	// File is the path of a file of the workspace to run instead of code.
	File string `json:"file,omitempty"`
	// Variables are set in the program.
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// Resume is the id of a failed or held execution: calls that it made are not made again.
	Resume string `json:"resume,omitempty"`
}

// Executed is what POST /execute gives. A failed program is a successful request: Status says how it ended.
type Executed struct {
	// ID is the id of the execution.
	ID string `json:"id"`
	// Status is ok, failed, exited, timeout, memory, cpu, output, canceled, crashed, or held if a call needs approval first.
	Status string `json:"status"`
	// Output is its stdout, Stderr its stderr; long output is truncated in the middle.
	Output string `json:"output"`
	Stderr string `json:"stderr,omitempty"`
	// Result is its value (the last expression, or the default export): JSON, or a text that describes another value; null for none.
	Result json.RawMessage `json:"result"`
	// Emitted are the texts, images and files that it emitted.
	Emitted []Content `json:"emitted,omitempty"`
	// Error says why it failed.
	Error *Failure `json:"error,omitempty"`
	// Warnings are type errors of its code: if it failed, the nearest to the failure first, else those that are certain.
	Warnings []TypeWarning `json:"warnings,omitempty"`
	// ExecutionTime is how long it ran, in seconds.
	ExecutionTime float64 `json:"executionTime"`
	// Truncated says that output or result is truncated.
	Truncated bool `json:"truncated"`
	// Files are the files of the workspace that it created, changed or removed.
	Files []execution.FileChange `json:"files"`
	// Metrics are numbers about it.
	Metrics Metrics `json:"metrics"`
	// Notes are further remarks.
	Notes []string `json:"notes,omitempty"`
	// Approvals are the approvals that it waits for, with status held.
	Approvals []approvals.Approval `json:"approvals,omitempty"`
	// Resume is the value of resume with which its calls are not made again.
	Resume string `json:"resume,omitempty"`
}

// Failure is why a program failed.
type Failure struct {
	// Type is the type of the exception, or the status.
	Type string `json:"type"`
	// Message describes the failure, Hint a remedy.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Lines are the place in the program, the innermost last.
	Lines []CodeLine `json:"lines,omitempty"`
}

// CodeLine is a line of a program.
type CodeLine struct {
	// File is its file, omitted for the program itself.
	File string `json:"file,omitempty"`
	Line int    `json:"line"`
	// Function is its function, Source its text.
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
}

// TypeWarning is a type error.
type TypeWarning struct {
	// Line is the line of the code, which counts from 1.
	Line int `json:"line"`
	// Message describes the error.
	Message string `json:"message"`
}

// Metrics are numbers about an execution.
type Metrics struct {
	// Calls is the number of its tool calls.
	Calls int `json:"calls"`
	// Tokens is the number of tokens of its answer for MCP clients (o200k_base).
	Tokens int `json:"tokens"`
	// TokensSaved is the number of tokens of tools' results less those of its answer.
	TokensSaved int `json:"tokensSaved"`
	// QueuedMS is how long it was queued, in milliseconds.
	QueuedMS int64 `json:"queuedMs"`
}

func (a *api) execute(r *http.Request, in Program) (Executed, error) {
	p, err := a.program(in)
	if err != nil {
		return Executed{}, err
	}
	e, err := a.service.Execute(r.Context(), p)
	if err != nil {
		return Executed{}, err
	}
	return a.executionResponse(e), nil
}

// program converts a request to a program for the gateway.
func (a *api) program(in Program) (execution.Program, error) {
	var timeout time.Duration
	if most := a.service.MaxTimeout().Seconds(); in.Timeout != nil {
		if *in.Timeout <= 0 || *in.Timeout > most {
			return execution.Program{}, invalid(fmt.Sprintf("timeout must be more than 0 and at most %g, in seconds; leave it out for %g", most, most))
		}
		timeout = max(1, time.Duration(*in.Timeout*float64(time.Second)))
	}
	return execution.Program{
		Code: in.Code, Language: in.Language, Timeout: timeout, Workspace: in.Workspace,
		Environment: in.Environment, Isolation: in.Isolation, Session: in.Session, File: in.File, Variables: in.Variables, Resume: in.Resume,
	}, nil
}

func (a *api) executionResponse(e execution.Result) Executed {
	tokens := a.service.CountTokens(e.Text())
	x := Executed{
		ID: e.ID, Status: string(e.Status), Result: resultOf(e), Emitted: contents(e.ClientContent()), Error: failureOf(e), ExecutionTime: e.Duration.Seconds(),
		Truncated: e.Truncated(), Files: e.Files, Metrics: Metrics{Calls: e.Calls, Tokens: tokens, TokensSaved: max(0, e.TokensRead()-tokens), QueuedMS: e.Queued.Milliseconds()}, Approvals: e.Approvals, Resume: e.Resume,
	}
	x.Output, x.Stderr = e.CleanOutput()
	if x.Files == nil {
		x.Files = []execution.FileChange{}
	}
	for _, w := range e.Warnings[:min(len(e.Warnings), execution.MaxWarnings)] {
		x.Warnings = append(x.Warnings, TypeWarning{Line: w.Line, Message: w.Message})
	}
	for _, note := range e.Notes {
		x.Notes = append(x.Notes, sanitize.Line(note, 300))
	}
	return x
}

// resultOf returns the value of a program as JSON. A value that is not JSON, or is truncated, is a string.
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

// failureOf returns why a program failed, nil if it succeeded.
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

// Content is one content block of a tool's result or a program, as in MCP.
type Content struct {
	// Type is text, image, audio, resource, resource_link, or another type of the tool.
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Data is the base64 data of an image or audio.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	// URI and Name are of a link.
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
