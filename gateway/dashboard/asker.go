package dashboard

import (
	"regexp"
	"strings"
	"unicode"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// ApprovalView is an approval with what is known of the program that asks for it.
type ApprovalView struct {
	approvals.Approval
	// Title is the title of the program, Program its text, in which the lines that may make the call are marked; nil if it is not known.
	Title   string
	Program *Source
	// Resume is set for an answered approval of a program that was stopped for it, and was not resumed yet.
	Resume *ResumeView
}

// ResumeView says how to resume a stopped program.
type ResumeView struct {
	// ID is the execution, Tell what to tell the model.
	ID, Tell string
	// May says that the caller may resume it here.
	May bool
}

// maxAskers is how many approvals are shown with their programs, and how many answered ones are looked up.
const maxAskers = 20

// askers look up the programs that ask for approvals.
type askers struct{ *Dashboard }

// pendingView adds the program to a pending approval.
func (d askers) pendingView(r *request, a approvals.Approval) ApprovalView {
	v := ApprovalView{Approval: a}
	if !strings.HasPrefix(a.Execution, "e-") {
		return v
	}
	code := ""
	if live, ok := d.service.LiveOf(r.Context(), a.Execution); ok {
		code, v.Title = live.Code, execution.Title(live.Code, calledTools(live.Calls))
	} else if record, err := d.service.Record(r.Context(), a.Execution); err == nil {
		code, v.Title = record.Code, record.Title
	}
	if code != "" {
		program := markedSource(code, a.Tool)
		v.Program = &program
	}
	return v
}

// answeredView adds to an answered approval how to resume its program.
func (d askers) answeredView(r *request, a approvals.Approval) ApprovalView {
	v := ApprovalView{Approval: a}
	if a.State != approval.Allowed && a.State != approval.Denied && a.State != approval.Done || !strings.HasPrefix(a.Execution, "e-") {
		return v
	}
	record, err := d.service.Record(r.Context(), a.Execution)
	if err != nil || record.Status != execution.Held {
		return v
	}
	if view, err := d.service.JournalCalls(r.Context(), a.Execution, 0, 1); err != nil || view.Resumed != "" {
		return v
	}
	v.Title = record.Title
	v.Resume = &ResumeView{
		ID: a.Execution, Tell: `Go on with execute_code(code="", resume="` + a.Execution + `").`,
		May: record.Principal == tool.Principal(r.Context()) && tool.May(r.Context(), tool.ScopeExecute),
	}
	return v
}

// calledName matches a name that is called.
var calledName = regexp.MustCompile(`([\p{L}\p{N}_$]+)\s*\(`)

// markedSource returns a program in which the lines are marked that call a function with the name of a tool, UPSTREAM.NAME.
func markedSource(code, id string) Source {
	_, name, _ := strings.Cut(id, ".")
	name = letters(name)
	s := source("Program", code, 0)
	for i := range s.Lines {
		for _, call := range calledName.FindAllStringSubmatch(s.Lines[i].Text, -1) {
			s.Lines[i].Marked = s.Lines[i].Marked || name != "" && letters(call[1]) == name
		}
	}
	return s
}

// letters returns the letters and digits of a name in lower case: wrappers have the names of tools in the style of their language.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, name)
}
