package workflowcmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

// eventLog makes the events of a run, in the milliseconds after its start.
type eventLog struct{ events []workflow.Event }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (h *eventLog) at(ms int, e workflow.Event) {
	e.Time = noon.Add(time.Duration(ms) * time.Millisecond)
	h.events = append(h.events, e)
}

func (h *eventLog) step(from, to int, path, outcome string) {
	h.at(from, workflow.Event{Kind: runlog.Began, Path: path, Attempt: 1})
	end := workflow.Event{Kind: runlog.Ended, Path: path, Outcome: outcome}
	if outcome == "failed" {
		end.Error = &workflow.Fault{Kind: tool.Upstream, Message: "it has\x1b[31m ended"}
	}
	h.at(to, end)
}

const timelineSource = `
steps:
  - {id: fetch, tool: web.get, with: {}}
  - id: each
    for_each: "${{ [1] }}"
    steps: [{id: say, tool: toy.echo, with: {}}]
  - id: pick
    switch: [{when: "true", steps: [{id: x, wait: 1s}]}]
  - {id: ask, form: {title: "What?", fields: {word: {type: string}}}}
`

// TestTimeline: retries, waits, passes of a long loop, what was taken over, what is under way, what was done to a run.
func TestTimeline(t *testing.T) {
	t.Parallel()
	h := &eventLog{}
	h.at(0, workflow.Event{Kind: runlog.Created, Start: &workflow.Started{Path: "w.yaml", Source: timelineSource}})
	h.step(-5000, -4000, "before", "ok")
	h.at(10, workflow.Event{Kind: runlog.Began, Path: "fetch", Attempt: 1})
	h.at(100, workflow.Event{Kind: runlog.Retrying, Path: "fetch", Attempt: 1, Error: &workflow.Fault{Kind: tool.Timeout, Message: "too slow"}})
	h.at(1100, workflow.Event{Kind: runlog.Began, Path: "fetch", Attempt: 2})
	h.at(1200, workflow.Event{Kind: runlog.Ended, Path: "fetch", Outcome: "ok"})
	for i := range 40 {
		outcome := "ok"
		if i == 17 {
			outcome = "failed"
		}
		h.step(1200+10*i, 1205+10*i, fmt.Sprintf("each[%d].say", i), outcome)
		h.at(1206+10*i, workflow.Event{Kind: runlog.Ended, Path: fmt.Sprintf("each[%d]", i), Outcome: outcome})
	}
	h.at(1700, workflow.Event{Kind: runlog.Ended, Path: "each", Outcome: "ok"})
	h.at(1800, workflow.Event{Kind: runlog.Stopping, By: "ann"})
	h.at(1900, workflow.Event{Kind: runlog.Reentered, By: "bob"})
	h.step(2000, 2010, "pick.case[0].x", "cached")
	h.at(2010, workflow.Event{Kind: runlog.Ended, Path: "pick", Outcome: "ok"})
	h.at(2020, workflow.Event{Kind: runlog.Began, Path: "ask", Attempt: 1})
	h.at(2020, workflow.Event{Kind: runlog.Waits, Path: "ask", Pending: &workflow.Pending{Step: "ask", For: "form"}})
	c := newChart()
	for _, e := range h.events {
		c.Add(e)
	}
	golden.Check(t, filepath.Join("testdata", "golden", "timeline.txt"), cli.Clean(c.text(noon.Add(4*time.Second))))
}

// TestBrief: a duration has as many digits as tell something.
func TestBrief(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1499 * time.Microsecond: "1ms", 12340 * time.Millisecond: "12.34s", 61 * time.Second: "1m01s", 90 * time.Minute: "1h30m", 50 * time.Hour: "2d02h",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestParseInputs: what stands on the command line becomes what the inputs' types say, or is an error that says what would be right.
func TestParseInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "a\nb", "object": `{"n": 7, "x": [1]}`, "large": strings.Repeat("x", maxInput+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const schema = `{"properties":{"s":{"type":"string"},"n":{"type":"integer"},"u":{"type":["integer","string"]},"x":{},"b":{"type":"boolean"}}}`
	for _, test := range []struct{ given, want string }{
		{"s=5", `{"s":"5"}`},
		{"s=a=b", `{"s":"a=b"}`},
		{"s=", `{"s":""}`},
		{"n=5", `{"n":5}`},
		{"u=5", `{"u":5}`},
		{"u=five", `{"u":"five"}`},
		{"x={\"a\":[1]}", `{"x":{"a":[1]}}`},
		{"x=plain", `{"x":"plain"}`},
		{"s=@DIR/text", `{"s":"a\nb"}`},
		{"@DIR/object", `{"n":7,"x":[1]}`},
		{`{"s":"t"}`, `{"s":"t"}`},
		{"n=five", `the input n must be integer, not "five"`},
		{"b=yes", `the input b must be boolean, not "yes"`},
		{"m=5", `the workflow has no input "m"`},
		{"s", `the input "s" has no value`},
		{"@DIR/text", `is not a JSON object`},
		{"@DIR/none", `no such file`},
		{"s=@DIR/large", `is larger than 1 MiB`},
		{`{"s":`, `is not a JSON object`},
	} {
		got, err := parseInputs([]string{strings.ReplaceAll(test.given, "DIR", dir)}, json.RawMessage(schema))
		data, _ := json.Marshal(got)
		if text := string(data) + fmt.Sprint(err); !strings.Contains(text, test.want) || (err == nil) != strings.HasPrefix(test.want, "{") {
			t.Errorf("%s: %s %v, want %s", test.given, data, err, test.want)
		}
	}
}

// TestParseAnswers: a field is what stands behind the last dot; what is no field is refused.
func TestParseAnswers(t *testing.T) {
	t.Parallel()
	got, err := parseAnswers([]string{"ask.name=x", "guard.try.ask.size=a=b", "ask.more="})
	if want := "map[ask:map[more: name:x] guard.try.ask:map[size:a=b]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v %v", got, err)
	}
	for _, wrong := range []string{"ask=x", "ask.=x", ".x=y", "ask.name", "="} {
		if got, err := parseAnswers([]string{wrong}); err == nil {
			t.Errorf("%q gives %v", wrong, got)
		}
	}
	if _, err := parseAnswers([]string{"a.b=1", "a.b=2"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}
