package dashboard

import (
	"context"

	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
)

// Completions are what a program of the caller can import and call.
type Completions interface {
	Servers(ctx context.Context) []toolsearch.Server
	Functions(ctx context.Context, server, language string) []toolsearch.Function
}

// Drafts checks the types of programs that are being written.
type Drafts interface {
	CheckDraft(ctx context.Context, language, code string) executor.Draft
}

const (
	completionsPath = playgroundPath + "/completions"
	checkPath       = playgroundPath + "/check"
)

// editorPages answer the editor of the playground.
type editorPages struct{ *Dashboard }

// completionList is what the editor completes: the servers, or the functions of one.
type completionList struct {
	Servers   []toolsearch.Server   `json:"servers,omitempty"`
	Functions []toolsearch.Function `json:"functions,omitempty"`
}

// completions returns the servers of the caller, or the functions of the one in the query.
func (d editorPages) completions(r *request) (any, error) {
	server, language := r.URL.Query().Get("server"), r.URL.Query().Get("language")
	switch {
	case d.opts.Completions == nil:
		return completionList{}, nil
	case server == "":
		list := d.opts.Completions.Servers(r.Context())
		for i := range list {
			shown(&list[i].Name, &list[i].About)
		}
		return completionList{Servers: list}, nil
	}
	list := d.opts.Completions.Functions(r.Context(), server, language)
	for i := range list {
		shown(&list[i].Name, &list[i].Signature, &list[i].About)
		for j := range list[i].Parameters {
			p := &list[i].Parameters[j]
			shown(&p.Name, &p.Type, &p.About)
		}
	}
	return completionList{Functions: list}, nil
}

// shown removes from texts of others what does not show.
func shown(texts ...*string) {
	for _, text := range texts {
		*text = sanitize.Line(*text, maxCompleted)
	}
}

// maxCompleted is the maximum length of a text about a completion, in characters.
const maxCompleted = 1500

// draftAnswer is what the editor shows of a check.
type draftAnswer struct {
	Errors []typeError `json:"errors"`
	// Message says why the program is not checked, "" if it is. Stop says that it will not be before the page is opened again, Retry
	// that it may be soon.
	Message string `json:"message,omitempty"`
	Stop    bool   `json:"stop,omitempty"`
	Retry   bool   `json:"retry,omitempty"`
}

// typeError is an error in a line of a program. Certain says that the program is wrong there also if it succeeds.
type typeError struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
	Certain bool   `json:"certain"`
}

// check checks the types of the program in the form.
func (d editorPages) check(r *request) (any, error) {
	if d.opts.Drafts == nil {
		return draftAnswer{Stop: true}, nil
	}
	language := sanitize.Line(r.PostFormValue("language"), 20)
	draft := d.opts.Drafts.CheckDraft(r.Context(), language, execution.Visible(r.PostFormValue("code")))
	answer := draftAnswer{Errors: []typeError{}, Message: draftMessage(draft.State, language), Retry: draft.State == executor.DraftStarting}
	answer.Stop = answer.Message != "" && draft.State != executor.DraftLarge && draft.State != executor.DraftRemote && !answer.Retry
	for _, w := range draft.Warnings[:min(len(draft.Warnings), maxTypeErrors)] {
		answer.Errors = append(answer.Errors, typeError{w.Line, sanitize.Line(w.Message, 500), w.Certain})
	}
	return answer, nil
}

// maxTypeErrors is how many type errors are shown.
const maxTypeErrors = 50

// draftMessage says why a program is not checked, "" if it is.
func draftMessage(state executor.DraftState, language string) string {
	switch state {
	case executor.DraftDisabled:
		return "Types are not checked: sandbox.typecheck is false in the settings."
	case executor.DraftRemote:
		return "Types are not checked: no machine that runs programs (sandbox.remote in the settings) has the type checker of this language."
	case executor.DraftMissing:
		if language == "typescript" {
			return "Types are not checked: the gateway's machine has no TypeScript (npm install -g typescript, or sandbox.tsc in the settings)."
		}
		return "Types are not checked: the gateway's machine has no pyright (npm install -g pyright, or sandbox.pyright in the settings)."
	case executor.DraftBusy:
		return "Types are not checked: others use all type checkers now."
	case executor.DraftLarge:
		return "Types are not checked: the program is too large."
	case executor.DraftStarting:
		return "The type checker is starting."
	}
	return ""
}
