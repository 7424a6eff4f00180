package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// evilID is the id of what is hostile in every text.
const evilID = "e-evil"

func (house) Executions(ctx context.Context, f history.Filter) (history.Page, error) {
	if f.Status == "none" {
		return history.Page{}, nil
	}
	p := history.Page{Total: 120, Principals: []string{"", "ada", "bob", evil}}
	for _, b := range []history.Brief{
		{ID: "e-1", Principal: "ada", Language: "python", Status: "ok", Started: noon, Duration: 1234 * time.Millisecond, Made: 3, Tokens: 1234},
		{ID: evilID, Principal: evil, Language: evil, Workspace: evil, Status: evil, Started: noon},
	} {
		if tool.Operator(ctx) != "" || b.Principal == tool.Principal(ctx) {
			p.Executions = append(p.Executions, b)
		}
	}
	return p, nil
}

func (house) Users(context.Context) ([]history.User, error) {
	return []history.User{{Principal: evil, Programs: 3, Failed: 1, Last: noon, Client: evil}, {Principal: "ada", Programs: 1234, Calls: 5, Last: noon}, {Programs: 1, Last: noon}}, nil
}

func (house) Running(ctx context.Context) []executor.Live {
	all := []executor.Live{
		{ID: "e-live", Principal: "ada", Language: "python", State: "running", Code: "print(1)", Started: noon, Made: 2, Bytes: 5000,
			Output: []execution.Printed{{Stream: "stdout", Text: "one\n"}, {Stream: "stdout", Text: "two\n"}, {Stream: "stderr", Text: "oh\n"}},
			Calls:  []executor.LiveCall{{Tool: tool.ID{Upstream: "crm", Name: "find"}, Begun: noon.Add(time.Second), Duration: time.Second, Outcome: "ok"}, {Tool: tool.ID{Upstream: "crm", Name: "slow"}, Begun: noon.Add(2 * time.Second)}}},
		{ID: "e-liveevil", Principal: evil, Language: evil, State: evil, Workspace: evil, Environment: evil, Session: evil, Code: evil, Started: noon, Output: []execution.Printed{{Stream: evil, Text: evil}, {Stream: "stderr", Text: evil}},
			Calls: []executor.LiveCall{{Tool: tool.ID{Upstream: evil, Name: evil}, Begun: noon, Outcome: evil}}},
	}
	return slices.DeleteFunc(all, func(l executor.Live) bool { return tool.Operator(ctx) == "" && l.Principal != tool.Principal(ctx) })
}

func (h house) LiveOf(ctx context.Context, id string) (executor.Live, bool) {
	for _, l := range h.Running(ctx) {
		if l.ID == id {
			return l, true
		}
	}
	return executor.Live{}, false
}

func (h house) CancelExecution(_ context.Context, id string) error {
	if id != "e-live" {
		return &tool.Error{Kind: tool.Invalid, Message: id + " has ended"}
	}
	*h.told = append(*h.told, "cancel "+id)
	return nil
}

func (house) Record(ctx context.Context, id string) (history.Record, error) {
	at := func(ms time.Duration) time.Time { return noon.Add(ms * time.Millisecond) }
	call := func(name string, from, took time.Duration, outcome string) toolcall.RecordedCall {
		return toolcall.RecordedCall{Tool: tool.ID{Upstream: "crm", Name: name}, Begun: at(from), Duration: took * time.Millisecond, Outcome: outcome, Decision: "allow", Size: 2048}
	}
	switch {
	case id == "e-1" && (tool.Operator(ctx) != "" || tool.Principal(ctx) == "ada"):
		return history.Record{ID: id, Principal: "ada", Language: "python", Code: "from servers.crm import find\nfor c in find(name=\"a\"):\n\tprint(c)\n1 / 0\n", Line: 4, Status: "failed", Started: noon,
			Duration: time.Second, Made: 4, Tokens: 321, Stdout: 900, Resumes: "e-0", Calls: []toolcall.RecordedCall{
				call("find", 50, 300, "ok"), call("find", 60, 500, "ok"), call("delete", 400, 100, "denied"), call("slow", 600, 0, "unfinished"),
			}, Read: []toolcall.Origin{{Label: "customer", Tool: "crm.find", Execution: "e-1", Time: noon}}}, nil
	case id == "e-own":
		return history.Record{ID: id, Principal: tool.Principal(ctx), Language: "python", Code: "print(7)", Status: "ok", Started: noon, Made: 1, Calls: []toolcall.RecordedCall{call("find", 50, 300, "ok")}, Output: &history.Output{Stdout: "kept output " + evil}}, nil
	case id == evilID && tool.Operator(ctx) != "":
		return history.Record{ID: evilID, Principal: evil, Language: evil, Code: strings.Repeat(evil+"\n", 5000), Status: evil, Started: noon, Workspace: evil, Environment: evil, Memory: evil, Resumes: evil,
			Calls: []toolcall.RecordedCall{{Tool: tool.ID{Upstream: evil, Name: evil}, Outcome: evil, Decision: evil, Rule: evil, Reason: evil, Labels: []string{evil}, Approval: evil}},
			Read:  []toolcall.Origin{{Label: evil, Tool: evil, File: evil, Execution: evil}}, Made: 100_000}, nil
	}
	return history.Record{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + id}
}

func (house) JournalCalls(_ context.Context, id string, after, _ int) (history.JournaledCalls, error) {
	if id != evilID {
		return history.JournaledCalls{Total: 120, Fault: "division by zero", Calls: []history.JournaledCall{
			{Number: after + 1, Tool: tool.ID{Upstream: "crm", Name: "find"}, State: "ended", Arguments: `{"name":"a"}`, ArgumentsSize: 12, Result: `[{"email":"[EMAIL_1]"}]`, ResultSize: 9000},
			{Number: after + 2, Tool: tool.ID{Upstream: "crm", Name: "delete"}, State: "refused", Problem: "crm.delete was denied", Hint: "ask"},
			{Number: after + 3, Tool: tool.ID{Upstream: "crm", Name: "slow"}, State: "begun"},
		}}, nil
	}
	return history.JournaledCalls{Total: 1, Fault: evil, Resumed: evil, Calls: []history.JournaledCall{
		{Number: 1, Tool: tool.ID{Upstream: evil, Name: evil}, State: evil, Arguments: quote(evil), Result: evil + strings.Repeat("x", 1<<20), Hint: evil, Problem: ""},
	}}, nil
}

func (house) SkillList(ctx context.Context) ([]skills.SkillInfo, error) {
	list := []skills.SkillInfo{{Name: "double", Description: "Doubles.", Language: "python", Version: 2, Scope: "private", Tested: true}, {Name: "evil", Description: evil, Language: evil, Scope: "shared", Author: evil, Problem: evil}}
	if tool.Operator(ctx) != "" {
		list = append(list, skills.SkillInfo{Name: "wait", Description: "Waits.", Scope: "pending", Author: "bob"})
	}
	return list, nil
}

func (house) SkillOf(_ context.Context, name string, version int) (skills.SkillDetail, error) {
	if name != "double" && name != "evil" {
		return skills.SkillDetail{}, &tool.Error{Kind: tool.NotFound, Message: "there is no skill " + name}
	}
	d := skills.SkillDetail{SkillInfo: skills.SkillInfo{Name: name, Description: "Doubles.", Language: "python", Version: max(version, 1), Scope: "private", Import: "from skills.double import double", Tested: true},
		Versions: []int{2, 1}, Digest: strings.Repeat("ab", 32), Code: "def double(n): return 2 * n", Tests: "assert True", Tools: []skills.SkillTool{{Tool: "crm.find", State: "changed"}}}
	if name == "evil" {
		d.Description, d.Language, d.Author, d.Import, d.Functions, d.Problem, d.Warnings = evil, evil, evil, evil, []string{evil}, evil, []string{evil}
		d.Code, d.Tests, d.Text, d.Files, d.Tools = evil, evil, evil, []skills.SkillFile{{Path: evil, Size: 3}}, []skills.SkillTool{{Tool: evil, State: evil}}
	}
	return d, nil
}

func (h house) PendingSkill(ctx context.Context, name string) (skills.SkillDetail, error) {
	d, err := h.SkillOf(ctx, "double", 0)
	d.Name, d.Scope = name, "pending"
	return d, err
}

func (house) AuditLog(_ context.Context, f auditor.Filter) (auditor.Page, error) {
	if f.Kind == "call" {
		return auditor.Page{Looked: 3, Damaged: 1, Unchained: 2}, nil
	}
	if f.Gateway == "all" {
		return auditor.Page{Looked: 7, Damaged: 2, Events: []audit.Event{{Seq: 9, Time: noon, Kind: audit.Call, Tool: "crm.find"}, {Seq: 4, Time: noon, Kind: evil}}, Of: []audit.Copied{{Chain: strings.Repeat("ab", 8), Host: "east-1"}, {Chain: evil, Host: evil}}}, nil
	}
	return auditor.Page{Looked: 2, Next: 41, Head: audit.Head{Seq: 43, Hash: strings.Repeat("cd", 32)}, Events: []audit.Event{
		{Seq: 43, Time: noon, Kind: audit.Call, Principal: "ada", Execution: "e-1", Tool: "crm.delete", Decision: "deny", Rule: "no deletes"},
		{Seq: 42, Time: noon, Kind: evil, Principal: evil, Execution: evil, Tool: evil, Decision: evil, Outcome: evil, Rule: evil, By: evil, From: evil, Client: evil, Language: evil, Environment: evil, Workspace: evil, Limits: evil,
			Code: evil, Before: evil, After: evil, Note: evil, Micros: 5, Bytes: 6, Calls: 7, Through: 8},
	}}, nil
}

// VerifyAudit finds a log that is not intact if the house is told of it.
func (h house) VerifyAudit(context.Context) (audit.Report, error) {
	r := audit.Report{First: 5, Last: 1234, Count: 1230, Hash: strings.Repeat("cd", 32), Time: noon, Pruned: 4, Mirrored: 1200, Notes: []string{evil}}
	if h.told != nil {
		*h.told = append(*h.told, "verify")
		r.Problems = []audit.Problem{{Seq: 700, File: "/data/" + evil, Line: 7, Text: evil}, {Seq: 1235, Text: "records 1235 to 1240 are missing"}}
	}
	return r, nil
}

// VerifyChains finds that one of three chains is not intact.
func (house) VerifyChains(context.Context) ([]audit.Verified, error) {
	return []audit.Verified{
		{Copied: audit.Copied{Chain: "0123456789abcdef", Host: "north"}, Report: audit.Report{First: 1, Last: 2345, Count: 2345, Time: noon}, Whole: true},
		{Copied: audit.Copied{Chain: "fedcba9876543210", Host: "south"}, Report: audit.Report{First: 1, Last: 9, Count: 9, Time: noon, Problems: []audit.Problem{{Seq: 7, Text: "it was edited"}}}},
		{Copied: audit.Copied{Chain: evil, Host: evil}, Report: audit.Report{Problems: []audit.Problem{{Seq: 1, Text: evil}}, Notes: []string{evil}}},
	}, nil
}

// TestVerify: an operator has the log verified, and sees where it is broken.
func TestVerify(t *testing.T) {
	var told []string
	for _, test := range []struct {
		who     string
		h       house
		headers []string
		status  int
		has     []string
	}{
		{"op", house{}, nil, 200, []string{"The log is intact.", "1,230, read in", "record 5; those up to 4", "record 1,234", "1,200 records", "0123456789abcdef", "north", "1 to 2,345", "verified", "fedcba9876543210", "refused</span><br>record 7: it was edited"}},
		{"token", house{told: &told}, nil, 200, []string{"The log is not intact:", "record 700: ", "records 1235 to 1240 are missing", "/ui/audit?before=750"}},
		{"ada", house{}, nil, 403, nil},
		{"op", house{}, []string{"Sec-Fetch-Site: cross-site"}, 403, nil},
	} {
		got := ask(t, test.h, test.who, "/ui/audit", url.Values{}, test.headers...)
		page := got.Body.String()
		if got.Code != test.status {
			t.Errorf("%s: %d, want %d", test.who, got.Code, test.status)
		}
		for _, text := range test.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in %.6000s", test.who, text, page)
			}
		}
		checkHarmless(t, page)
	}
}

// flows are workflows in memory.
type flows struct{ told *[]string }

const inputs = `{"type":"object","required":["city","tags"],"properties":{"city":{"type":"string","maxLength":40},"n":{"type":"integer","minimum":1,"default":3},"fast":{"type":"boolean"},
	"tags":{"type":"array","items":{"enum":["red","blue"]}},"more":{"type":"object"}}}`

func (flows) Definitions() []workflow.Info {
	return []workflow.Info{
		{Name: "digest", Description: "Every morning.", Path: "/etc/digest.yaml", Digest: strings.Repeat("ef", 32), Exposed: true, Inputs: json.RawMessage(inputs), Prompts: map[string]string{"city": "Which city?"},
			Schedules: []workflow.Clock{{Cron: "0 9 * * *", Zone: "UTC", Next: noon}}, Webhook: true,
			Steps: []workflow.Outline{{ID: "each", Kind: "for_each", Of: "inputs.tags", Steps: []workflow.Outline{{ID: "double", Kind: "skill", Of: "double.twice"}}}}},
		{Name: "evil", Description: evil, Path: evil, Digest: strings.Repeat("ef", 32), Inputs: json.RawMessage(`{"properties":{"x":{"title":` + quote(evil) + `,"description":` + quote(evil) + `,"enum":["\"><b>"]}}}`),
			Schedules: []workflow.Clock{{Cron: evil, Zone: evil, Every: evil}}, Steps: []workflow.Outline{{ID: evil, Kind: evil, Of: evil, If: evil, Description: evil}}},
	}
}

func (flows) Plan(_ context.Context, name string, in json.RawMessage) (lint.Planned, error) {
	return lint.Planned{Workflow: name, Inputs: map[string]any{"given": string(in)}}, nil
}

func (f flows) Start(_ context.Context, s workflow.Start) (workflow.Run, error) {
	*f.told = append(*f.told, fmt.Sprintf("start %s %s by %s", s.Workflow, s.Inputs, s.Trigger))
	return workflow.Run{ID: "r-1"}, nil
}

func (flows) Run(_ context.Context, id string) (workflow.Run, error) {
	ask := func(text string) json.RawMessage {
		data, err := json.Marshal(forms.Ask{Title: text, Fields: []forms.Question{{Name: "why", Type: "text", Title: text, Description: text, Required: true}, {Name: "which", Type: "choices", Title: text, Options: []forms.Option{{Value: "a", Title: text}}}}, Filled: map[string]any{text: text}})
		if err != nil {
			panic(err)
		}
		return data
	}
	switch id {
	case "r-1":
		return workflow.Run{ID: id, Workflow: "digest", Status: workflow.Waiting, Trigger: "cli", Started: noon, Steps: 3, Inputs: json.RawMessage(`{"city":"Oslo"}`), Waiting: []workflow.Pending{{Step: "ask", For: "form", Form: ask("Why?")}, {Step: "hold", For: "approval", Approval: "a-2"}}}, nil
	case "r-evil":
		return workflow.Run{ID: id, Workflow: evil, Status: workflow.Failed, Trigger: evil, Principal: evil, Parent: evil, Of: evil, Started: noon, Ended: noon, Inputs: json.RawMessage(quote(evil)), Outputs: json.RawMessage(quote(evil)),
			Error: &workflow.Fault{Kind: evil, Message: evil, Hint: evil, Step: evil}, Waiting: []workflow.Pending{{Step: "hold", For: "form", Form: ask(evil)}, {Step: evil, For: evil}}}, nil
	}
	return workflow.Run{}, &tool.Error{Kind: tool.NotFound, Message: "there is no run " + id}
}

func (f flows) Runs(ctx context.Context, filter workflow.Filter) (list []workflow.Run, err error) {
	for _, id := range []string{"r-1", "r-evil"} {
		run, _ := f.Run(ctx, id)
		list = append(list, run)
	}
	if filter.Status == "ok" {
		list = nil
	}
	return list, nil
}

// digestSource is the definition of the runs. Its texts are hostile.
const digestSource = `name: digest
inputs: {tags: {type: array}}
steps:
  - {id: fetch, tool: crm.find}
  - id: each
    for_each: "${{ inputs.tags }}"
    steps: [{id: double, tool: crm.double}]
  - id: choose
    switch:
      - when: steps.fetch.output == "<img src=x onerror=alert(1)>"
        steps: [{id: mail, tool: crm.mail}]
    default: [{id: leave, tool: crm.leave}]
  - id: both
    parallel:
      left: [{id: older, tool: crm.find}]
      right: [{id: newer, tool: crm.find}]
  - id: hold
    wait: {approval: {message: "<script>alert(1)</script>"}}
`

func (flows) Events(_ context.Context, id string, after int) iter.Seq2[workflow.Event, error] {
	word := evil
	if id == "r-1" {
		word = "fetch"
	}
	events := []workflow.Event{{Kind: runlog.Created, Start: &workflow.Started{Path: "digest.yaml", Source: digestSource}}, {Kind: runlog.Began, Path: word, Attempt: 1}, {Kind: runlog.Retrying, Path: word, Error: &workflow.Fault{Kind: "upstream", Message: word}},
		{Kind: runlog.Began, Path: word, Attempt: 2, Execution: "e-1"}, {Kind: runlog.Ended, Path: word, Outcome: "ok"}, {Kind: runlog.Reentered, By: word}, {Kind: runlog.Began, Path: "each"}}
	for i := range 30 {
		events = append(events, workflow.Event{Kind: runlog.Ended, Path: fmt.Sprintf("each[%d]", i), Outcome: "ok"})
	}
	events = append(events, workflow.Event{Kind: runlog.Waits, Path: "hold", Pending: &workflow.Pending{For: "approval"}})
	return func(yield func(workflow.Event, error) bool) {
		for i, e := range events {
			e.N, e.Time = i+1, noon.Add(time.Duration(i)*time.Second)
			if i >= after && !yield(e, nil) {
				return
			}
		}
	}
}

func (f flows) Cancel(_ context.Context, id string) error {
	*f.told = append(*f.told, "cancel "+id)
	return nil
}

func (f flows) Resume(_ context.Context, id string) (workflow.Run, error) {
	return workflow.Run{}, &tool.Error{Kind: tool.Invalid, Message: "run " + id + " goes on already"}
}

func (f flows) Replay(_ context.Context, id, step string) (workflow.Run, error) {
	*f.told = append(*f.told, "replay "+id+" from "+step)
	return workflow.Run{ID: "r-2"}, nil
}

func (f flows) Answer(_ context.Context, id, step string, values json.RawMessage) (workflow.Run, error) {
	*f.told = append(*f.told, fmt.Sprintf("answer %s %s %s", id, step, values))
	return workflow.Run{}, nil
}

// activities are the pages of this file, with what must be on each for an operator.
var activities = map[string][]string{
	"/ui/executions":             {"Running now", "e-live", "4.9 KiB", "e-1", "1,234", "1.2 s", "1 to 2 of 120", "After →", "ada"},
	"/ui/executions/e-live":      {"one\ntwo\n", `<span class="stderr">oh`, "Cancel", "crm.slow", "running", "print(1)"},
	"/ui/executions/e-liveevil":  {"200B›"},
	"/ui/executions?status=none": {"No execution matches"},
	"/ui/executions/e-1":         {"crm.find", `class="l failed"`, "It failed here: ", "50 ms", "at most 2 at once", "[EMAIL_1]", "This is the beginning of 8.8 KiB", "division by zero", "resume=", "crm.delete was denied", "1 to 3 of 120", "audit log", `href="/ui/executions/e-0"`, "customer"},
	"/ui/executions/" + evilID:   {"more lines are not shown", "200B›"},
	"/ui/executions/e-2":         {"there is no execution"},
	"/ui/runs":                   {"r-1", "digest", "waiting", "for approval"},
	"/ui/runs?status=ok":         {"No run matches"},
	"/ui/runs/r-1": {"Why?", "fetch", "2 attempts", "24 passes not shown: 24 ok", "an approval", "Oslo", "Cancel", "Repeat everything from", "resumed",
		`<div class="node good"><strong>fetch</strong> <span class="muted small">tool crm.find</span>`, `<div class="node busy"><strong>each</strong>`, "<strong>double</strong>", "if steps.fetch.output == &#34;", `<div class="node warn"><strong>hold</strong>`, "not started", `<p class="muted small">left</p>`},
	"/ui/runs/r-evil":                   {"Resume", "failed", "not run"},
	"/ui/runs/r-1/log":                  {"created", "retrying", "attempt 2", "each[29]", "events 1 to 38"},
	"/ui/runs/r-1/log?offset=7":         {"events 8 to 38", "Before"},
	"/ui/runs/r-evil/log":               {"retrying"},
	"/ui/workflows":                     {"digest", "0 9 * * *", "/hooks/digest", "exposed"},
	"/ui/workflows/digest":              {"Which city?", "at least 1", `value="3"`, "for_each", "All its runs"},
	"/ui/workflows/digest?plan=1&in.n=": {"city: it is missing", "tags: it is missing"},
	"/ui/workflows/digest?plan=1&in.city=Oslo&in.tags=red&in.tags=blue": {"What it would do", `{&#34;city&#34;:&#34;Oslo&#34;,&#34;tags&#34;:[&#34;red&#34;,&#34;blue&#34;]}`, `value="Oslo"`},
	"/ui/workflows/evil":              {"operators only"},
	"/ui/workflows/digets":            {"did you mean digest?"},
	"/ui/skills":                      {"double", "tested", "Wait to be shared", "unusable"},
	"/ui/skills/double":               {"def double", "version 2", "changed", `href="/ui/workflows/digest"`, "save_skill"},
	"/ui/skills/evil":                 {"cannot be imported"},
	"/ui/skills/wait?scope=pending":   {"sallyport skills approve wait@abababababab"},
	"/ui/audit":                       {"no deletes", "chained", "record 43", "before=41", "cdcdcdcdcdcd"},
	"/ui/audit?gateway=all":           {"Of 7 copied records 2 are damaged", "east-1 abababab", `<option value="all" selected>all</option>`},
	"/ui/audit?kind=call&before=9":    {"1 are damaged", "No scanned record matches", "← Newest"},
	"/ui/executions?status=%22%3E%3C": {"e-1"},
}

// allPages are those of both files.
func allPages() map[string][]string {
	all := maps.Clone(pages)
	maps.Copy(all, activities)
	maps.Copy(all, taskPages)
	maps.Copy(all, connectionPages)
	maps.Copy(all, playgroundPages)
	maps.Copy(all, policyPages)
	maps.Copy(all, addPagesOf)
	maps.Copy(all, clusterPagesOf)
	return all
}

// TestOthersActivity: who is no operator sees their own, may not read the audit log, and needs a scope to start anything.
func TestOthersActivity(t *testing.T) {
	if page := ask(t, house{}, "ada", "/ui/executions", nil).Body.String(); !strings.Contains(page, "e-1") || strings.Contains(page, evilID) {
		t.Error("executions of ada:", page)
	}
	if page := ask(t, house{}, "ada", "/ui/workflows", nil).Body.String(); !strings.Contains(page, "digest") || strings.Contains(page, "/ui/workflows/evil") || strings.Contains(page, "/ui/audit") {
		t.Error("workflows for ada:", page)
	}
	for path, status := range map[string]int{"/ui/audit": 403, "/ui/executions/" + evilID: 404, "/ui/workflows/evil": 404, "/ui/executions/e-1": 200} {
		if got := ask(t, house{}, "ada", path, nil); got.Code != status {
			t.Errorf("%s: %d, want %d", path, got.Code, status)
		}
	}
}

// TestSteering: forms start and steer runs, for those who may.
func TestSteering(t *testing.T) {
	city := url.Values{"in.city": {"Oslo"}, "in.tags": {"red"}, "in.n": {""}, "in.fast": {"true"}, "in.more": {`{"a":[1]}`}}
	for _, test := range []struct {
		who, path string
		form      url.Values
		headers   []string
		status    int
		next      string // where it leads
		told      string
	}{
		{"ada", "/ui/workflows/digest/runs", city, nil, 303, "/ui/runs/r-1", `start digest {"city":"Oslo","fast":true,"more":{"a":[1]},"tags":["red"]} by http`},
		{"ada", "/ui/workflows/digest/runs", url.Values{"in.n": {"many"}}, nil, 400, "", ""},
		{"ada", "/ui/workflows/evil/runs", url.Values{}, nil, 404, "", ""},
		{"reader", "/ui/workflows/digest/runs", city, nil, 403, "", ""},
		{"ada", "/ui/workflows/digest/runs", city, []string{"Sec-Fetch-Site: cross-site"}, 403, "", ""},
		{"ada", "/ui/runs/r-1/answer", url.Values{"step": {"ask"}, "in.why": {"so"}, "in.which": {"a"}, "several": {"which"}}, nil, 303, "/ui/runs/r-1", `answer r-1 ask {"which":["a"],"why":"so"}`},
		{"reader", "/ui/runs/r-1/answer", url.Values{"step": {"ask"}}, nil, 403, "", ""},
		{"ada", "/ui/runs/r-1/cancel", url.Values{}, nil, 303, "/ui/runs/r-1", "cancel r-1"},
		{"ada", "/ui/runs/r-1/cancel", url.Values{}, []string{"Origin: https://evil.example"}, 403, "", ""},
		{"ada", "/ui/runs/r-1/resume", url.Values{}, nil, 303, "/ui/runs/r-1", ""},
		{"ada", "/ui/runs/r-1/replay", url.Values{"step": {"fetch"}}, nil, 303, "/ui/runs/r-2", "replay r-1 from fetch"},
		{"ada", "/ui/runs/r-1/replay", url.Values{}, nil, 400, "", ""},
		{"ada", "/ui/executions/e-live/cancel", url.Values{}, nil, 303, "/ui/executions", "cancel e-live"},
		{"ada", "/ui/executions/e-1/cancel", url.Values{}, nil, 303, "/ui/executions/e-1", ""},
		{"reader", "/ui/executions/e-live/cancel", url.Values{}, nil, 403, "", ""},
		{"ada", "/ui/executions/e-live/cancel", url.Values{}, []string{"Sec-Fetch-Site: cross-site"}, 403, "", ""},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, test.path, test.form, test.headers...)
		if got.Code != test.status || got.Header().Get("Location") != test.next || strings.Join(told, "|") != test.told {
			t.Errorf("%s %s %v: %d to %q, told %q; want %d, %q, %q", test.who, test.path, test.headers, got.Code, got.Header().Get("Location"), told, test.status, test.next, test.told)
		}
	}
}

// TestEndedMeanwhile: who looks at a program while it ends is led to what there is of it then.
func TestEndedMeanwhile(t *testing.T) {
	if got := ask(t, house{}, "op", "/ui/executions/e-1?live=execution-live&seen=0", nil); got.Code != 204 || got.Header().Get("HX-Refresh") != "true" {
		t.Error(got.Code, got.Header())
	}
}
