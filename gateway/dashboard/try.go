package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/forms"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Calls calls tools.
type Calls interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
}

// clientName is the client of calls and programs from the pages, on record.
const clientName = "dashboard"

// TryPage is the form that calls a tool, and the result of the call.
type TryPage struct {
	// Fields ask for the arguments. With Whole there is one field, for an object in JSON, with Text in it.
	Fields []Field
	Whole  bool
	Text   string
	// Other is the address of the page with the other kind of form, "" if there is none.
	Other string
	// Problem says what is wrong with the arguments, or why the call failed, Hint how to fix it.
	Problem, Hint string
	// Held says that the call waits for approval.
	Held   bool
	Result *TryResult
}

// TryResult is the result of a call.
type TryResult struct {
	// Text is its text, Structured its structured content, if that is something else; others are descriptions of its other content.
	Text, Structured string
	Others           []string
	// Failed says that the tool itself reports a failure.
	Failed bool
	Took   time.Duration
}

// newTry returns the form for a schema, with what the request says of the arguments.
func newTry(r *request, schema json.RawMessage) *TryPage {
	t := &TryPage{Whole: true, Text: "{}"}
	if again := r.PostForm != nil; isSimple(schema) {
		t.Fields = tryFields(r, schema, again)
	}
	if t.Whole = len(t.Fields) == 0 || r.FormValue("as") == "json"; len(t.Fields) > 0 {
		t.Other = r.with("as", map[bool]string{true: "", false: "json"}[t.Whole]) + "#try"
	}
	if r.PostForm.Has("json") {
		t.Text = r.PostForm.Get("json")
	}
	return t
}

// simpleKeys are the keys of a schema that fields can express.
var simpleKeys = []string{"type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$id", "$defs", "definitions"}

// isSimple reports whether fields for the properties can express all arguments that a schema requires.
func isSimple(schema json.RawMessage) bool {
	var keys map[string]json.RawMessage
	var object struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &keys) != nil || json.Unmarshal(schema, &object) != nil || len(object.Properties) > maxTryFields {
		return false
	}
	for key := range keys {
		if !slices.Contains(simpleKeys, key) {
			return false
		}
	}
	return !slices.ContainsFunc(object.Required, func(name string) bool { return object.Properties[name] == nil })
}

// maxTryFields is the maximum number of fields, maxDefault the maximum length of a default value in one, in bytes.
const maxTryFields, maxDefault = 50, 4 << 10

// tryFields returns a field for each property; nil if one of them has text that does not show.
func tryFields(r *request, schema json.RawMessage, again bool) []Field {
	questions, err := forms.Questions(schema, nil)
	if err != nil {
		return nil
	}
	list := fields(tryQuestions(questions), r.PostForm, again)
	for i, f := range list {
		if !again && len(f.Text) > maxDefault {
			list[i].Text = ""
		}
		if f.Kind == "text" && f.Type != "json" {
			list[i].Rows = 1
		}
		if hasHidden(f.Key) || hasHidden(list[i].Text) && !again || slices.ContainsFunc(f.Choices, func(c Choice) bool { return hasHidden(c.Value) }) {
			return nil
		}
	}
	return list
}

// tryQuestions lets answers have several lines: a schema does not say whether a text does.
func tryQuestions(questions []forms.Question) []forms.Question {
	for i := range questions {
		if questions[i].Type == "string" {
			questions[i].Type = "text"
		}
	}
	return questions
}

// hasHidden reports whether a text has characters that do not show.
func hasHidden(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune("\n\r\t", c) && sanitize.Hidden(c) })
}

// try calls a tool with the arguments of the form.
func (d *Dashboard) try(r *request) (any, error) {
	p, err := d.toolPage(r)
	if err != nil {
		return nil, err
	}
	p.Try = newTry(r, p.Tool.Input)
	args, err := p.Try.arguments(r, p.Tool.Input)
	if err != nil {
		p.Try.fail(r, err)
		return p, nil
	}
	begun := time.Now()
	ctx := toolcall.WithoutWaiting(tool.WithClient(r.Context(), clientName))
	result, err := d.service.Call(ctx, tool.Call{Tool: p.Tool.ID, Args: args})
	if _, held := errors.AsType[*approvals.PendingError](err); held {
		p.Try.Held = true
		return p, nil
	}
	if err != nil {
		if e := tool.AsError(err); e.Kind == tool.Internal {
			d.log.ErrorContext(r.Context(), "call from a page failed", "tool", p.Tool.ID, "error", err)
		}
		p.Try.fail(r, err)
		return p, nil
	}
	p.Try.Result = tryResult(result, time.Since(begun))
	return p, nil
}

// fail shows an error next to the form.
func (t *TryPage) fail(r *request, err error) {
	e := tool.AsError(err)
	t.Problem, t.Hint, r.status = e.Message, e.Hint, e.Kind.Status()
}

// arguments returns what the form says.
func (t *TryPage) arguments(r *request, schema json.RawMessage) (json.RawMessage, error) {
	if !t.Whole {
		questions, err := forms.Questions(schema, nil)
		if err != nil {
			return nil, err
		}
		return values(tryQuestions(questions), r.PostForm)
	}
	return jsonObject(t.Text)
}

func tryResult(result tool.Result, took time.Duration) *TryResult {
	r := &TryResult{Text: result.Text(), Failed: result.IsError, Took: took}
	for _, c := range result.Content {
		if c.Text == "" {
			r.Others = append(r.Others, strings.TrimSuffix(fmt.Sprintf("%s %s %s, %s", c.Type, c.MIME, c.URI, size(int64(len(c.Data)))), ", 0 B"))
		}
	}
	r.Others = r.Others[:min(len(r.Others), maxTryFields)]
	var text, structured bytes.Buffer
	if result.Structured != nil && json.Compact(&structured, result.Structured) == nil {
		if json.Compact(&text, []byte(r.Text)) != nil || !bytes.Equal(text.Bytes(), structured.Bytes()) {
			r.Structured = structured.String()
		}
	}
	return r
}
