package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// filing asks for an entry: its kind, a place of those that a tool knows for that kind, and whoever wants a copy.
const filing = `
inputs:
  who: {type: string, prompt: "Who files it?"}
steps:
  - id: ask
    form:
      title: An entry of ${{ inputs.who }}
      timeout: 2h
      fields:
        kind: {type: choice, options: [book, pen]}
        place: {type: choice, options: {tool: shop.places, with: {kind: "${{ form.kind }}"}, output: "${{ output.places }}"}}
        count: {type: integer, if: form.kind == "pen", min: 1, max: 10}
        copy: {type: email, required: false}
outputs:
  entry: {value: "${{ steps.ask.output }}"}
`

func shop() *stubCaller {
	return &stubCaller{tools: map[string]func(context.Context, map[string]any) (any, error){
		"places": func(_ context.Context, args map[string]any) (any, error) {
			return map[string]any{"places": []any{args["kind"].(string) + " shelf", "box"}}, nil
		},
	}}
}

// client answers one question after the other.
type client struct {
	mu      sync.Mutex
	answers []string
	asked   []string
}

func (c *client) Notify(string, json.RawMessage) {}

func (c *client) Ask(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var question struct{ Message string }
	if err := json.Unmarshal(params, &question); err != nil {
		return nil, err
	}
	c.asked = append(c.asked, question.Message)
	if len(c.answers) == 0 {
		return nil, tool.ErrCannotAsk
	}
	next := c.answers[0]
	c.answers = c.answers[1:]
	return json.RawMessage(next), nil
}

// Whoever starts a run is asked for what is missing: an input first, then the form, in two rounds and one for a mistake.
func TestFormByClient(t *testing.T) {
	d := shop()
	e := engine(t, d, workflow.Options{}, map[string]string{"w": filing})
	c := &client{answers: []string{
		`{"action": "accept", "content": {"who": "Ann"}}`,
		`{"action": "accept", "content": {"kind": "pen", "copy": "nobody"}}`,
		`{"action": "accept", "content": {"place": "box", "count": 3}}`,
	}}
	r := run(t, e, workflow.Start{Workflow: "w", Peer: c})
	if r.Status != workflow.OK || string(r.Outputs) != `{"entry":{"copy":null,"count":3,"kind":"pen","place":"box"}}` {
		t.Fatalf("%+v %+v %s", r, r.Error, r.Outputs)
	}
	want := []string{
		"workflow w: inputs of w",
		"workflow w: An entry of Ann",
		"workflow w: An entry of Ann\ncopy: \"nobody\" is not an email address; an address is wanted, such as ann@example.org",
	}
	if strings.Join(c.asked, "|") != strings.Join(want, "|") {
		t.Errorf("asked: %q", c.asked)
	}
	if calls := d.recordedCalls(); len(calls) != 1 || calls[0] != `places {"kind":"pen"}` {
		t.Errorf("calls: %q", calls)
	}
}

// Where nobody is asked at once the form waits: for answers from elsewhere, in parts, with an end of the gateway between.
func TestFormWaits(t *testing.T) {
	records, d := store.Memory(), shop()
	open := func() *workflow.Engine {
		return engine(t, d, workflow.Options{Records: records}, map[string]string{"w": filing})
	}
	e := open()
	begun, err := e.Start(t.Context(), workflow.Start{Workflow: "w", Inputs: json.RawMessage(`{"who": "Ann"}`), Peer: &client{answers: []string{`{"action": "decline"}`}}})
	if err != nil {
		t.Fatal(err)
	}
	r := waitSettled(t, e, begun.ID)
	if asks(t, r) != "kind copy" {
		t.Fatalf("%+v", r)
	}
	for _, try := range []struct{ answers, wrong string }{
		{`[]`, "answers must be a JSON object"},
		{`{"kind": "chair", "count": 1}`, "kind: \"chair\" is none of the options"},
		{`{"colour": 1}`, "colour: there is no such field"},
		{`{"copy": "nobody"}`, "copy: \"nobody\" is not an email address"},
		{`{"kind": "pen", "place": "desk"}`, "place: \"desk\" is none of the options"},
	} {
		if _, err := e.Answer(t.Context(), r.ID, "", json.RawMessage(try.answers)); err == nil || !strings.HasPrefix(err.Error(), try.wrong) || tool.AsError(err).Kind != tool.Invalid {
			t.Errorf("%s: %v", try.answers, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	if r = waitSettled(t, e, r.ID); asks(t, r) != "place count copy" {
		t.Errorf("what was right is kept: %+v", r.Waiting)
	}
	if r, err = e.Answer(t.Context(), r.ID, "ask", json.RawMessage(`{"place": "pen shelf", "count": "2"}`)); err != nil || len(r.Waiting) > 0 || r.Status == workflow.Waiting {
		t.Fatalf("who completes a form finds that the run waits: %v %+v", err, r)
	}
	r, err = e.Wait(t.Context(), r.ID)
	if err != nil || string(r.Outputs) != `{"entry":{"copy":null,"count":2,"kind":"pen","place":"pen shelf"}}` {
		t.Errorf("%v %+v %s", err, r.Error, r.Outputs)
	}
	if _, err := e.Answer(t.Context(), r.ID, "", json.RawMessage(`{"count": 4}`)); err == nil {
		t.Error("a run that is over takes an answer")
	}
	if calls := d.recordedCalls(); len(calls) != 1 {
		t.Errorf("calls: %q", calls)
	}
}

// A form that nobody answers in time fails its step, with a gateway or without one.
func TestFormTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := store.Memory()
		open := func() *workflow.Engine {
			return engine(t, shop(), workflow.Options{Records: records}, map[string]string{"w": filing})
		}
		e := open()
		begun, err := e.Start(t.Context(), workflow.Start{Workflow: "w", Inputs: json.RawMessage(`{"who": "Ann"}`)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		e = open()
		synctest.Wait()
		if r := waitSettled(t, e, begun.ID); r.Status != workflow.Waiting {
			t.Errorf("it waits no more: %+v %+v", r, r.Error)
		}
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		r, err := e.Wait(t.Context(), begun.ID)
		if err != nil || r.Status != workflow.Failed || r.Error.Kind != tool.Timeout {
			t.Errorf("%v %+v %+v", err, r, r.Error)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A tool that options come from and that fails fails the step, which can be made again.
func TestFormToolFails(t *testing.T) {
	d := shop()
	ok, broken := d.tools["places"], true
	d.tools["places"] = func(ctx context.Context, args map[string]any) (any, error) {
		if broken {
			return nil, isError("no shelf today")
		}
		return ok(ctx, args)
	}
	e := engine(t, d, workflow.Options{}, map[string]string{"w": filing})
	c := &client{answers: []string{`{"action": "accept", "content": {"kind": "book"}}`}}
	r := run(t, e, workflow.Start{Workflow: "w", Inputs: json.RawMessage(`{"who": "Ann"}`), Peer: c})
	if r.Status != workflow.Failed || r.Error == nil || !strings.Contains(r.Error.Message, "no shelf today") {
		t.Fatalf("%+v %+v", r, r.Error)
	}
	broken = false
	if _, err := e.Resume(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if r = waitSettled(t, e, r.ID); r.Status != workflow.Waiting {
		t.Fatalf("%+v %+v", r, r.Error)
	}
	if _, err := e.Answer(t.Context(), r.ID, "ask", json.RawMessage(`{"kind": "book", "place": "box"}`)); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK {
		t.Errorf("%v %+v %+v", err, r, r.Error)
	}
}

func waitSettled(t *testing.T, e *workflow.Engine, id string) workflow.Run {
	t.Helper()
	r, err := e.WaitSettled(t.Context(), id)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return r
}

// asks are the fields that a run asks for.
func asks(t *testing.T, r workflow.Run) string {
	t.Helper()
	if r.Status != workflow.Waiting || len(r.Waiting) != 1 {
		return ""
	}
	var ask forms.Ask
	if err := json.Unmarshal(r.Waiting[0].Form, &ask); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, q := range ask.Fields {
		names = append(names, q.Name)
	}
	return strings.Join(names, " ")
}
