package flowtest

import (
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// each yields events one by one.
func each(events []workflow.Event) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// passes has the test pass that is made of events.
func passes(t *testing.T, name string, events []workflow.Event, definitions []*spec.Definition) []byte {
	t.Helper()
	data, err := Record(each(events))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	file, err := Parse("recorded_test.yaml", data)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
	var again []byte
	for _, r := range Run(t.Context(), []*File{file}, Options{Definitions: definitions, onEvents: func(events []workflow.Event) { again, _ = Record(each(events)) }}) {
		if !r.OK() {
			t.Errorf("%s: %+v\n%s", name, r.Failures, data)
		}
	}
	if len(again) == 0 {
		t.Errorf("%s: what was recorded cannot be recorded", name)
	}
	return data
}

// TestRecordedPasses makes a test of each run that the shipped tests and those of testdata make: it has to pass at once.
func TestRecordedPasses(t *testing.T) {
	definitions, faults := spec.LoadDir("../../../workflows")
	files, more := LoadDir("../../../workflows")
	if faults = append(faults, more...); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, name := range []string{"reports.txtar", "record.txtar"} {
		a, err := txtar.ParseFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range a.Files {
			if !IsTest(file.Name) {
				d, err := spec.Parse(file.Name, file.Data, nil)
				if err != nil {
					t.Fatal(err)
				}
				definitions = append(definitions, d)
				continue
			}
			f, err := Parse(file.Name, file.Data)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	recorded := 0
	for _, f := range files {
		for i := range f.Tests {
			var events []workflow.Event
			one := &File{Path: f.Path, Workflow: f.Workflow, Tests: f.Tests[i : i+1]}
			results := Run(t.Context(), []*File{one}, Options{Definitions: definitions, onEvents: func(seen []workflow.Event) { events = seen }})
			if _, err := Record(each(events)); err == nil && results[0].OK() {
				passes(t, f.Path+": "+f.Tests[i].Name, events, definitions)
				recorded++
			}
			if f.Path == "record_test.yaml" && !results[0].OK() {
				t.Errorf("%s: %+v", f.Tests[i].Name, results[0].Failures)
			}
		}
	}
	if recorded < 20 {
		t.Errorf("only %d runs were recorded", recorded)
	}
}

// TestRecordRefuses says of which runs there can be no test.
func TestRecordRefuses(t *testing.T) {
	const source = "steps: [{id: a, tool: x.y}, {id: l, for_each: [1], concurrency: 2, steps: [{id: b, tool: x.y}], cache: {for: 1h}}]"
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	begin := workflow.Event{Kind: workflow.Created, Time: at, Start: &workflow.Started{ID: "r-1", Workflow: "w", Path: "w.yaml", Source: source}}
	over := workflow.Event{Kind: workflow.Over, Status: workflow.OK}
	big, _ := json.Marshal(strings.Repeat("x", 2<<20))
	for name, events := range map[string][]workflow.Event{
		"it is not over":                  {begin},
		"a part of step l failed":         {begin, {Kind: workflow.Ended, Path: "l", Outcome: "failed"}, over},
		"it was canceled":                 {begin, {Kind: workflow.Over, Status: workflow.Canceled}},
		"step a was stopped":              {begin, {Kind: workflow.Ended, Path: "a", Outcome: "canceled"}, over},
		"step l was taken from an earlie": {begin, {Kind: workflow.Ended, Path: "l", Outcome: "cached"}, over},
		"more than the 1024 KiB of a fi":  {begin, {Kind: workflow.Began, Path: "a", Tool: "x.y", Input: json.RawMessage("{}")}, {Kind: workflow.Ended, Path: "a", Outcome: "ok", Output: big}, over},
		"its definition cannot be read":   {{Kind: workflow.Created, Start: &workflow.Started{Path: "w.yaml", Source: "stops: []"}}},
	} {
		_, err := Record(each(events))
		if err == nil || tool.AsError(err).Kind != tool.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRecordResumed makes a test of a run that failed and was resumed: what had failed is there once, as it went in the end.
func TestRecordResumed(t *testing.T) {
	d, err := spec.Parse("w.yaml", []byte("steps: [{id: a, tool: x.a}, {id: b, tool: x.b}]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	began := func(path, name string) workflow.Event {
		return workflow.Event{Kind: workflow.Began, Path: path, Tool: name, Attempt: 1, Input: json.RawMessage("{}")}
	}
	ended := func(path, outcome string) workflow.Event {
		return workflow.Event{Kind: workflow.Ended, Path: path, Outcome: outcome, Output: json.RawMessage(`"` + outcome + `"`)}
	}
	failed := ended("b", "failed")
	failed.Output, failed.Error = nil, &workflow.Fault{Kind: tool.Failed, Message: "x.b failed: no"}
	data := passes(t, "resumed", []workflow.Event{
		{Kind: workflow.Created, Time: time.Now(), Start: &workflow.Started{ID: "r-1", Workflow: "w", Path: "w.yaml", Source: string(d.Source)}},
		began("a", "x.a"), ended("a", "ok"), began("b", "x.b"), failed, {Kind: workflow.Over, Status: workflow.Failed, Error: failed.Error},
		{Kind: workflow.Reentered}, began("b", "x.b"), ended("b", "ok"), {Kind: workflow.Over, Status: workflow.OK},
	}, []*spec.Definition{d})
	if text := string(data); strings.Contains(text, "error") || strings.Count(text, "tool: x.b") != 2 {
		t.Errorf("recorded:\n%s", text)
	}
}

// TestManyCalls compares more calls than anybody wants to read, in a moment.
func TestManyCalls(t *testing.T) {
	var want []call
	var got []madeCall
	for i := range maxCalls {
		want = append(want, call{tool: fmt.Sprint("x.t", i)})
		got = append(got, madeCall{tool: fmt.Sprint("x.t", (i*7)%maxCalls)})
	}
	began := time.Now()
	if n := len(matchCalls(want, got, true)); n != maxCalls {
		t.Errorf("%d pairs in any order", n)
	}
	if n := len(matchCalls(want, got, false)); n < 2 || n == maxCalls {
		t.Errorf("%d pairs in order", n)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
