package executor

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/codegen/bundle"
	"sallyport/gateway/execution"
	"sallyport/gateway/misuse"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/typecheck"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// reviewResults tells a program what it did with results that they do not support: as a note, or as the hint of its fault.
func (ex *Executor) reviewResults(e *execution.Result, calls *toolcall.List, code string) {
	if e.Status != sandbox.OK && e.Fault == nil {
		return
	}
	r := misuse.Run{Code: code, Python: e.Language == "python", Tools: ex.called(calls), Output: shownText(e), Failed: e.Fault != nil}
	if len(r.Tools) == 0 {
		return
	}
	if !r.Python {
		r.Code = bundle.JavaScript(code)
	}
	found := misuse.Find(r)
	if e.Fault != nil {
		hintAt(e, found)
		return
	}
	for _, f := range found {
		if !slices.ContainsFunc(e.Warnings, func(w typecheck.Warning) bool { return f.Name != "" && strings.Contains(w.Message, f.Name) }) {
			e.Notes = append(e.Notes, f.Text)
		}
	}
	if note := misuse.Pages(r); note != "" && len(found) == 0 {
		e.Notes = append(e.Notes, note)
	}
}

// hintAt makes a finding the hint of a fault, if it is about what the fault is about.
func hintAt(e *execution.Result, found []misuse.Finding) {
	isAbout := func(name string) bool {
		return strings.Contains(e.Fault.Message, name) || slices.ContainsFunc(e.Fault.Lines, func(l bridge.Line) bool { return strings.Contains(l.Source, name) })
	}
	for _, f := range found {
		if isAbout(f.Name) && !strings.Contains(e.Fault.Message, f.Text) {
			e.Fault.Hint = f.Text
			return
		}
	}
}

// shownText returns what a program printed and its value, without the notes of the runtime.
func shownText(e *execution.Result) string {
	text := e.Stdout.Text
	if e.Value != nil {
		text = strings.TrimSpace(text + "\n=> " + e.Value.Text)
	}
	return text
}

// called returns the tools that a program called, with the results that are at hand.
func (ex *Executor) called(calls *toolcall.List) (tools []misuse.Tool) {
	snapshot := ex.opts.Catalog.Snapshot()
	for _, c := range calls.Kept() {
		made := misuse.Call{Args: c.Args, Value: c.Value}
		if i := slices.IndexFunc(tools, func(t misuse.Tool) bool { return t.ID == c.Tool }); i >= 0 {
			tools[i].Calls = append(tools[i].Calls, made)
			continue
		}
		if i := slices.IndexFunc(snapshot.Tools, func(t tool.Tool) bool { return t.ID == c.Tool }); i >= 0 {
			tools = append(tools, misuse.Tool{Tool: snapshot.Tools[i], Calls: []misuse.Call{made}})
		}
	}
	return tools
}

// noteCode tells what is wrong with the text of a program, whatever its calls gave. A later program of its session may call its functions.
func noteCode(e *execution.Result, program execution.Program) {
	python, code := e.Language == "python", program.Code
	if program.Session == "" && e.Status == sandbox.OK && e.Calls == 0 && shownText(e) == "" && e.Stderr.Text == "" {
		if f := misuse.Uncalled(code, python); f != "" {
			call := f + "()"
			if !python {
				call = "await " + call
			}
			e.Notes = append(e.Notes, fmt.Sprintf("no output, since %s is never called: end with %s", f, call))
		}
	}
	if python {
		return
	}
	if note := misuse.Inexact(code); note != "" && e.Fault == nil {
		e.Notes = append(e.Notes, note)
	} else if note != "" {
		e.Fault.Hint = note
	}
}
