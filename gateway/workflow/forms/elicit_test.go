package forms_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

// client is a client that answers as it is told, and keeps what it was asked.
type client struct {
	answers []string // an error begins with "!"
	asked   []json.RawMessage
}

func (c *client) Notify(string, json.RawMessage) {}

func (c *client) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if len(c.answers) == 0 || method != "elicitation/create" {
		return nil, tool.ErrCannotAsk
	}
	c.asked = append(c.asked, params)
	reply := c.answers[0]
	c.answers = c.answers[1:]
	if strings.HasPrefix(reply, "!") {
		return nil, errors.New(reply)
	}
	return json.RawMessage(reply), nil
}

func TestAskPeer(t *testing.T) {
	c := &client{answers: []string{
		`{"action": "accept", "content": {"kind": "other", "mail": "nobody"}}`,
		`{"action": "accept", "content": {"detail": "pen", "size": "S", "note": "soon"}}`,
	}}
	f := &forms.Filling{Form: order(t), Env: env(t), State: &forms.State{}}
	complete, err := forms.AskPeer(t.Context(), c, "workflow order", f)
	if err != nil || !complete || len(c.asked) != 2 {
		t.Fatalf("%v %v %s", complete, err, c.asked)
	}
	var second struct{ Message string }
	if err := json.Unmarshal(c.asked[1], &second); err != nil || second.Message !=
		"workflow order: Order for Ann\nmail: \"nobody\" is not an email address; an address is wanted, such as ann@example.org" {
		t.Errorf("%v %s", err, second.Message)
	}
	if got := result(t, f.Form, f.Env, f.State); got != `{"detail":"pen","kind":"other","mail":"ann@example.org","note":"soon","size":"S"}` {
		t.Error(got)
	}
}

// What a client does that does not want to, or cannot, ends it; what it answered before is kept.
func TestAskPeerEnds(t *testing.T) {
	for name, answers := range map[string][]string{
		"declines": {`{"action": "accept", "content": {"kind": "book"}}`, `{"action": "decline"}`},
		"cancels":  {`{"action": "accept", "content": {"kind": "book"}}`, `{"action": "cancel"}`},
		"breaks":   {`{"action": "accept", "content": {"kind": "book"}}`, `!gone`},
		"nonsense": {`{"action": "accept", "content": {"kind": "book"}}`, `[`},
		"is gone":  {`{"action": "accept", "content": {"kind": "book"}}`},
		"is wrong": {
			`{"action": "accept", "content": {"kind": "book"}}`, `{"action": "accept"}`, `{"action": "accept"}`, `{"action": "accept", "content": {"size": 1}}`,
			`{"action": "accept", "content": []}`, `{"action": "accept", "content": {"size": "A4"}}`,
		},
	} {
		c := &client{answers: answers}
		f := &forms.Filling{Form: order(t), Env: env(t), State: &forms.State{}}
		complete, err := forms.AskPeer(t.Context(), c, "workflow order", f)
		if complete || err != nil || f.State.Answers["kind"] != "book" || len(c.asked) > 5 {
			t.Errorf("%s: %v %v %v", name, complete, err, f.State)
		}
	}
	if complete, err := forms.AskPeer(t.Context(), nil, "", &forms.Filling{Form: order(t), Env: env(t), State: &forms.State{}}); complete || err != nil {
		t.Errorf("nobody: %v %v", complete, err)
	}
}

// all is a form with a field of each type.
func all(t testing.TB) *forms.Form {
	t.Helper()
	options := from(`[1, {"value": "two", "title": "Number two"}]`)
	return compile(t,
		spec.Field{Name: text("string"), Type: "string", Required: true, Title: "A string", Description: "What it is.", MinLength: 2, MaxLength: 9, Default: val(`"abc"`)},
		spec.Field{Name: text("text"), Type: "text"},
		spec.Field{Name: text("coded"), Type: "string", Pattern: opt(`<[a-z]+>`)},
		spec.Field{Name: text("integer"), Type: "integer", Required: true, Min: val(`1`), Max: val(`5`), Default: val(`2`)},
		spec.Field{Name: text("number"), Type: "number", Min: val(`0.5`)},
		spec.Field{Name: text("boolean"), Type: "boolean", Default: val(`true`)},
		spec.Field{Name: text("date"), Type: "date", Min: val(`"2026-01-01"`)},
		spec.Field{Name: text("datetime"), Type: "datetime"},
		spec.Field{Name: text("email"), Type: "email"},
		spec.Field{Name: text("uri"), Type: "uri"},
		spec.Field{Name: text("choice"), Type: "choice", Required: true, Options: options, Default: val(`1`)},
		spec.Field{Name: text("choices"), Type: "choices", Required: true, Options: options, MinLength: 1, Default: val(`["two"]`)},
	)
}

func TestElicit(t *testing.T) {
	ask := next(t, all(t), env(t), &forms.State{})
	var out strings.Builder
	for _, lists := range []bool{true, false} {
		var shown any
		if err := json.Unmarshal(forms.Elicit(ask, "workflow all", nil, lists), &shown); err != nil {
			t.Fatal(err)
		}
		if !lists { // what differs
			shown = shown.(map[string]any)["requestedSchema"].(map[string]any)["properties"].(map[string]any)["choices"]
		}
		data, err := json.MarshalIndent(shown, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(data, '\n'))
	}
	golden.Check(t, "testdata/elicit.json", out.String())
	if raw := string(forms.Elicit(ask, "", nil, true)); strings.Index(raw, `"string":`) > strings.Index(raw, `"choices":`) || strings.Contains(raw, "\\u003c") {
		t.Errorf("not in order, or not as it is written: %s", raw)
	}
}

// A client that takes no lists is asked for a text.
func TestElicitNoLists(t *testing.T) {
	c := &client{answers: []string{`!unsupported type "array"`, `{"action": "accept", "content": {"string": "abc", "integer": 2, "choice": "1", "choices": "1, two"}}`}}
	f := &forms.Filling{Form: all(t), Env: env(t), State: &forms.State{}}
	if complete, err := forms.AskPeer(t.Context(), c, "w", f); !complete || err != nil || len(c.asked) != 2 {
		t.Fatalf("%v %v %s", complete, err, c.asked)
	}
	if got := f.State.Answers["choices"]; !cmp.Equal(got, []any{int64(1), "two"}) {
		t.Errorf("%#v", got)
	}
}

func TestFromInputs(t *testing.T) {
	schemas := map[string]string{
		"s": `{"type": "string", "minLength": 2, "pattern": "^a"}`, "e": `{"type": "string", "format": "email"}`, "n": `{"type": ["integer", "null"], "minimum": 1.0, "maximum": 3}`,
		"b": `{"type": "boolean"}`, "c": `{"enum": ["${{ a }}", 2]}`, "l": `{"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 1}`,
		"o": `{"type": "object"}`, "t": `true`,
	}
	d := &spec.Definition{Name: "w", Inputs: []spec.Input{{Name: text("given"), Schema: []byte(`{}`)}, {Name: text("optional"), Optional: true}, {Name: text("fallback"), Default: val(`1`)}}}
	for _, name := range []string{"s", "e", "n", "b", "c", "l", "o", "t"} {
		d.Inputs = append(d.Inputs, spec.Input{Name: text(name), Schema: []byte(schemas[name]), Description: "About " + name + ".", Prompt: map[string]string{"s": "Which s?"}[name]})
	}
	given := map[string]any{"given": nil}
	if f := forms.FromInputs(&spec.Definition{Name: "w", Inputs: d.Inputs[:3]}, given, nil); f != nil {
		t.Error("nothing is missing")
	}
	f := forms.FromInputs(d, given, func(name string, v any) error {
		if name == "o" && v != nil && len(v.(map[string]any)) == 0 {
			return errors.New("it has no members")
		}
		return nil
	})
	e, s := forms.Env{}, &forms.State{}
	ask := next(t, f, e, s)
	kinds := []string{}
	for _, q := range ask.Fields {
		kinds = append(kinds, q.Type)
	}
	if fieldNames(ask) != "s e n b c l o t" || strings.Join(kinds, " ") != "string email integer boolean choice choices json json" || ask.Title != "inputs of w" ||
		ask.Fields[0].Title != "Which s?" || ask.Fields[0].Description != "About s." || ask.Fields[1].Title != "About e." || ask.Fields[1].Description != "" {
		t.Errorf("%+v %v", ask, kinds)
	}
	said := answer(t, f, e, s, `{"s": "a", "e": "x", "n": 4, "b": "on", "c": "${{ a }}", "l": "x,y", "o": "{}", "t": "[1"}`)
	if said != `s: it has 1 characters; at least 2 are wanted
e: "x" is not an email address; an address is wanted, such as ann@example.org
n: it is out of range; wanted is 1 to 3
l: it has 2 choices; at most 1 are wanted
o: it has no members
t: it is not JSON; a value in JSON is wanted, such as ["a", "b"] or {"name": 1}` {
		t.Error(said)
	}
	if said := answer(t, f, e, s, `{"s": "ab", "e": "a@b.org", "n": "3", "l": "y", "o": "{\"a\": [1.0]}", "t": "null text"}`); said != `t: it is not JSON; a value in JSON is wanted, such as ["a", "b"] or {"name": 1}` {
		t.Error(said)
	}
	if said := answer(t, f, e, s, `{"t": "\"text\""}`); said != "" || result(t, f, e, s) != `{"b":true,"c":"${{ a }}","e":"a@b.org","l":["y"],"n":3,"o":{"a":[1]},"s":"ab","t":"text"}` {
		t.Error(said, s.Answers)
	}
	if got := forms.FromInputs(&spec.Definition{Inputs: make([]spec.Input, 257)}, nil, nil); got != nil {
		t.Error("too many are asked")
	}
}
