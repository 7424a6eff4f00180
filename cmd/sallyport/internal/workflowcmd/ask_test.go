package workflowcmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/testutil/golden"
)

// newFilling is a form with a field of each kind, some of which depend on others.
func newFilling(t *testing.T) *forms.Filling {
	t.Helper()
	text := func(s string) spec.Text { return spec.Text{Text: s} }
	val := func(s string) *spec.Value { return &spec.Value{Kind: spec.String, Text: text(s)} }
	from := func(s string) *spec.Source { return &spec.Source{Value: val(s)} }
	kind := text(`form.kind == "trip"`)
	f, problems := forms.Compile(template.Any(), &spec.Form{Title: *val("An \x1b[31mentry of ${{ inputs.who }}"), Fields: []spec.Field{
		{Name: text("kind"), Type: "choice", Title: "What is it?", Required: true, Options: from(`${{ ["meal", {"value": "trip", "title": "A trip"}] }}`)},
		{Name: text("what"), Type: "string", Title: "In short", Description: "One line that others understand.", Required: true, MinLength: 3},
		{Name: text("days"), Type: "integer", Required: true, If: &kind, Default: val(`2`), Min: val("1"), Max: val("30")},
		{Name: text("rate"), Type: "choice", Required: true, Options: from(`${{ [7, 19] }}`)},
		{Name: text("with"), Type: "choices", Options: from(`${{ ["Ann", "Bob", "Cyd"] }}`), Default: val("Ann")},
		{Name: text("paid"), Type: "boolean", Required: true, Default: val("yes")},
		{Name: text("on"), Type: "date", Required: true},
		{Name: text("notes"), Type: "text"},
		{Name: text("mail"), Type: "email", Required: true, From: from(`${{ inputs.mail }}`)},
	}})
	if len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	vars := map[string]any{"inputs": map[string]any{"who": "Ann", "mail": "ann@example.org"}, "steps": map[string]any{}, "env": map[string]any{}, "run": map[string]any{}}
	return &forms.Filling{Form: f, Env: forms.Env{Vars: vars}, State: &forms.State{}}
}

// newTyping is an asker that is answered with these lines, which are seen among what is shown.
func newTyping(lines ...string) (*prompter, *strings.Builder) {
	var shown strings.Builder
	return &prompter{out: &shown, readLine: func(ctx context.Context) (string, error) {
		if len(lines) == 0 {
			return "", errAborted
		}
		line := lines[0]
		lines = lines[1:]
		shown.WriteString(line + "\n")
		return line, ctx.Err()
	}}, &shown
}

func TestAskForm(t *testing.T) {
	f := newFilling(t)
	a, shown := newTyping(
		"3", "2", // no such kind; a trip
		"?", "ab", "Paris",
		"8", "19",
		"2, 3",
		"",
		"22.11.2026", "2026-11-22",
		"first", "second", "",
		"31", "", // days: they depend on the kind
	)
	if err := a.fill(t.Context(), f); err != nil {
		t.Errorf("%v", err)
	}
	golden.Check(t, "testdata/ask.golden", shown.String())
	got, err := f.Form.Result(t.Context(), f.Env, f.State)
	want := map[string]any{
		"kind": "trip", "what": "Paris", "days": int64(2), "rate": int64(19), "with": []any{"Bob", "Cyd"}, "paid": true, "on": "2026-11-22",
		"notes": "first\nsecond", "mail": "ann@example.org",
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v %s", err, cmp.Diff(got, want))
	}
}

// Who leaves has answered what was answered, unless that would complete the form.
func TestAskFormLeft(t *testing.T) {
	f := newFilling(t)
	a, shown := newTyping("1", "Lunch", "7", "-")
	if err := a.fill(t.Context(), f); !errors.Is(err, errAborted) || !strings.HasSuffix(shown.String(), "your answers are saved\n") {
		t.Errorf("%v %s", err, shown)
	}
	if want := map[string]any{"kind": "meal", "what": "Lunch", "rate": int64(7), "with": nil}; !cmp.Equal(f.State.Answers, want) {
		t.Error(cmp.Diff(f.State.Answers, want))
	}
	before := len(f.State.Answers)
	ended, stop := context.WithCancel(t.Context())
	stop()
	a = newPrompter(strings.NewReader(""), io.Discard)
	if err := a.fill(ended, f); err == nil || len(f.State.Answers) != before {
		t.Errorf("%v %v", err, f.State.Answers)
	}
	a, _ = newTyping("", "2026-11-22")
	if err := a.fill(t.Context(), f); !errors.Is(err, errAborted) || len(f.State.Answers) != before {
		t.Errorf("only what is optional is left, and would be left empty: %v %v", err, f.State.Answers)
	}
	a = newPrompter(strings.NewReader("\r\n2026-11-22\n\n"), io.Discard)
	if err := a.fill(t.Context(), f); err != nil {
		t.Errorf("from a pipe: %v", err)
	}
}

func TestAnswerFlags(t *testing.T) {
	got, err := parseValues([]string{"a=1", "b=x=y", "c="})
	if want := map[string]any{"a": "1", "b": "x=y", "c": ""}; err != nil || !cmp.Equal(got, want) {
		t.Error(err, got)
	}
	for _, wrong := range [][]string{{"a"}, {"=1"}, {"a=1", "a=2"}} {
		if _, err := parseValues(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
