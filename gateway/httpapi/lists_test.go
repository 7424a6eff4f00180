package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/budgets"
	"sallyport/gateway/catalog"
	"sallyport/gateway/history"
	"sallyport/gateway/skills"
	"sallyport/gateway/timeline"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

func (h house) Executions(ctx context.Context, f history.Filter) (page history.Page, err error) {
	for i := 2; i >= 0; i-- {
		r, err := h.Record(ctx, fmt.Sprint("e-", i))
		if err != nil || f.Status != "" && r.Status != f.Status || f.Principal != "" && r.Principal != f.Principal {
			continue
		}
		if f.After == "" && len(page.Executions) < f.Limit {
			page.Executions = append(page.Executions, history.Brief{ID: r.ID, Principal: r.Principal, Language: r.Language, Status: r.Status, Started: r.Started, Duration: r.Duration, Made: r.Made})
		}
		if f.After == r.ID {
			f.After = ""
		}
	}
	return page, nil
}

func (h house) JournalCalls(ctx context.Context, id string, after, limit int) (history.JournaledCalls, error) {
	_, err := h.Record(ctx, id)
	return history.JournaledCalls{Calls: []history.JournaledCall{{Number: after + 1, Tool: tool.ID{Upstream: "crm", Name: "x"}, State: "ended"}}, Total: limit}, err
}

func (house) ToolView(_ context.Context, id tool.ID) (toolsearch.ToolView, error) {
	if id.Name != "evil" {
		return toolsearch.ToolView{}, &tool.Error{Kind: tool.NotFound, Message: "there is no tool"}
	}
	return toolsearch.ToolView{
		Tool:   tool.Tool{ID: id, Wire: "evil\x1b[2J", Description: "a\x1b[31m\nb", Input: json.RawMessage(`{"type":"object"}`)},
		Digest: "9f86", Policy: "ask", Texts: []toolsearch.ToolText{{Language: "python", Detail: toolsearch.Names, Text: "crm.evil", Tokens: 3}},
	}, nil
}

func (house) HeldTools(context.Context) ([]catalog.HeldTool, error) {
	return []catalog.HeldTool{
		{ID: tool.ID{Upstream: "crm", Name: "held"}, Digest: "aa", Reason: "changed", Findings: []catalog.HeldFinding{}},
		{ID: tool.ID{Upstream: "crm", Name: "poor"}, Digest: "cc", Reason: "new", Findings: []catalog.HeldFinding{}, Rejected: &catalog.Rejection{By: "op", At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Reason: "no"}},
	}, nil
}

func (house) ReviewHeld(_ context.Context, id tool.ID, r catalog.HeldReview) error {
	switch {
	case id.String() != "crm.held":
		return &tool.Error{Kind: tool.NotFound, Message: "no pending approval"}
	case r.Reject != (r.Reason != ""):
		return &tool.Error{Kind: tool.Internal, Message: "the reason is lost"}
	case r.Digest != "aa":
		return &tool.Error{Kind: tool.Failed, Message: "it is not the one that you saw"}
	}
	return nil
}

func (house) Restart(_ context.Context, id string) error {
	switch id {
	case "crm":
		return nil
	case "down":
		return &tool.Error{Kind: tool.Upstream, Message: "cannot connect to upstream down"}
	}
	return &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + id}
}

func (h house) Stderr(ctx context.Context, id, after string) (text, next string, err error) {
	if after != "" {
		return "again", "7.18", h.Restart(ctx, id)
	}
	return "ready\x1b[31m\n", "7.12", h.Restart(ctx, id)
}

func (house) SkillList(ctx context.Context) ([]skills.SkillInfo, error) {
	if tool.Principal(ctx) == "bob" {
		return nil, nil
	}
	return []skills.SkillInfo{{Name: "sum", Language: "python", Version: 2, Scope: "private"}}, nil
}

func (house) SkillOf(_ context.Context, name string, version int) (skills.SkillDetail, error) {
	if name != "sum" {
		return skills.SkillDetail{}, &tool.Error{Kind: tool.NotFound, Message: "there is no skill"}
	}
	return skills.SkillDetail{SkillInfo: skills.SkillInfo{Name: name, Language: "python", Version: max(version, 1), Scope: "private"}, Digest: "9f"}, nil
}

func (house) Savings(_ context.Context, since time.Time, step time.Duration) (history.Savings, error) {
	total := history.SavingsStep{Executions: int(time.Since(since).Hours()), Read: 900, Answered: 100}
	return history.Savings{Since: since, StepSeconds: int64(step.Seconds()), Steps: []history.SavingsStep{total}, Total: total}, nil
}

func (house) ToolGraphs(_ context.Context, id tool.ID, r timeline.Range) (timeline.Graphs, error) {
	return timeline.Graphs{Range: r, Tools: []timeline.Share{{Name: id.String(), Count: 1}}}, nil
}

func (house) Graphs(_ context.Context, r timeline.Range) (timeline.Graphs, error) {
	return timeline.Graphs{Range: r, StepMS: 60_000, Steps: []timeline.Step{{Programs: 2, Failed: 1, Failures: map[string]int{"timeout": 1}, P50MS: 12.5, P99MS: 900, Queue: 3}}, Tools: []timeline.Share{{Name: "crm.order", Count: 7}}}, nil
}

func (house) BudgetReport(ctx context.Context) (budgets.Report, error) {
	row := budgets.Row{Budget: "team", Principal: tool.Principal(ctx), Calls: &budgets.Use{Used: 3, Limit: 10}, CPU: &budgets.Use{Used: 1500, Limit: 60_000}}
	return budgets.Report{Stored: true, Budgets: []budgets.Row{row}}, nil
}

func (house) AuditLog(_ context.Context, f auditor.Filter) (auditor.Page, error) {
	if f.Kind == "nonsense" {
		return auditor.Page{}, &tool.Error{Kind: tool.NotFound, Message: "there is no audit log"}
	}
	if f.Gateway != "" {
		return auditor.Page{Events: []audit.Event{{Seq: 3, Kind: audit.Call}}, Of: []audit.Copied{{Chain: "ab12", Host: f.Gateway}}}, nil
	}
	return auditor.Page{Events: []audit.Event{{Seq: f.Before + 1, Kind: audit.Call, Tool: f.Tool, Time: f.Since, Principal: f.Principal}}, Next: uint64(f.Limit)}, nil //nolint:gosec // a limit is small
}

// TestLists: each list asks the gateway for what was asked for, and says where it goes on.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		who, method, path, body string
		status                  int
		says                    string
	}{
		{"op", "GET", "/executions?limit=1", "", 200, `"next":"e-2"`},
		{"op", "GET", "/executions?limit=1&cursor=e-2&status=ok&since=2026-01-01T00:00:00Z&language=python", "", 200, `"next":"e-1"`},
		{"bob", "GET", "/budgets", "", 200, `{"budgets":[{"budget":"team","calls":{"limit":10,"used":3},"cpu_ms":{"limit":60000,"used":1500},"principal":"bob"}],"resets":"0001-01-01T00:00:00Z","stored":true}`},
		{"op", "GET", "/executions?principal=bob", "", 200, `{"executions":[{"calls":1,`},
		{"op", "GET", "/executions?limit=2&cursor=e-1", "", 200, `"id":"e-0"`},
		{"op", "GET", "/executions?since=yesterday", "", 400, "since must be one time such as"},
		{"ada", "GET", "/executions/e-0/calls?after=3&limit=7", "", 200, `{"calls":[{"number":4,"state":"ended","tool":"crm.x"}],"total":7}`},
		{"bob", "GET", "/executions/e-0/calls", "", 404, "there is no execution"},
		{"ada", "GET", "/upstreams", "", 200, `"reason":"no such host","status":"failed","tools":3`},
		{"op", "GET", "/upstreams/held", "", 200, `"id":"crm.held"`},
		{"ada", "GET", "/upstreams/held", "", 403, "only an operator may do this"},
		{"op", "POST", "/upstreams/held/crm.held", `{"digest":"aa"}`, 200, `"held":[`},
		{"op", "POST", "/upstreams/held/crm.held", `{"digest":"bb"}`, 409, "not the one that you saw"},
		{"op", "POST", "/upstreams/held/nonsense", `{"digest":"bb"}`, 404, "there is no tool nonsense"},
		{"op", "GET", "/upstreams/held", "", 200, `"rejected":{"at":"2026-05-01T12:00:00Z","by":"op","reason":"no"},`},
		{"op", "POST", "/upstreams/held/crm.held/reject", `{"digest":"aa","reason":"asks for keys"}`, 200, `"rejected":[`},
		{"op", "POST", "/upstreams/held/crm.held/reject", `{"digest":"bb","reason":"x"}`, 409, "not the one that you saw"},
		{"op", "POST", "/upstreams/held/crm.held/reject", `{"reason":"x"}`, 400, "digest"},
		{"ada", "POST", "/upstreams/held/crm.held/reject", `{"digest":"aa","reason":"x"}`, 403, "only an operator may do this"},
		{"op", "POST", "/upstreams/restart/crm", `{}`, 200, `"upstream":"crm"`},
		{"ada", "POST", "/upstreams/restart/crm", `{}`, 403, "only an operator may do this"},
		{"op", "GET", "/upstreams/log/crm", "", 200, `"next":"7.12","stderr":"ready"`},
		{"op", "GET", "/upstreams/log/crm?after=7.12", "", 200, `"next":"7.18","stderr":"again"`},
		{"ada", "GET", "/upstreams/log/crm", "", 403, "only an operator may do this"},
		{"op", "POST", "/upstreams/held/crm.held", `{}`, 400, "digest"},
		{"ada", "POST", "/upstreams/held/crm.held", `{"digest":"aa"}`, 403, "only an operator may do this"},
		{"ada", "GET", "/tools/info/crm/evil", "", 200, `"description":"a\nb","digest":"9f86","id":"crm.evil","inputSchema":{"type":"object"},"name":"evil","policy":"ask","texts":[{"detail":"names","language":"python","text":"crm.evil","tokens":3}]`},
		{"ada", "GET", "/tools/info/crm/none", "", 404, "there is no tool"},
		{"ada", "GET", "/skills", "", 200, `"name":"sum"`},
		{"bob", "GET", "/skills", "", 200, `{"skills":[]}`},
		{"ada", "GET", "/skills/sum?version=3", "", 200, `"version":3`},
		{"ada", "GET", "/skills/none", "", 404, "there is no skill"},
		{"ada", "GET", "/savings", "", 200, `"executions":168`},
		{"op", "GET", "/timeline", "", 200, `"range":"24h"`},
		{"op", "GET", "/timeline?range=30d", "", 200, `"p99_ms":900,"programs":2,"queue":3`},
		{"op", "GET", "/timeline?range=2d", "", 400, "range must be one of 1h, 24h, 7d, 30d"},
		{"op", "GET", "/timeline?range=1h&tool=crm.order", "", 200, `"name":"crm.order"`},
		{"op", "GET", "/timeline?tool=order", "", 400, "a tool is UPSTREAM.NAME"},
		{"ada", "GET", "/timeline", "", 403, "only an operator"},
		{"ada", "GET", "/savings?days=1", "", 200, `"step_ms":3600000,"step_seconds":3600`},
		{"ada", "GET", "/savings?days=2", "", 200, `"saved_tokens":800`},
		{"ada", "GET", "/savings?days=31", "", 400, "days must be one number, 1 to 30"},
		{"op", "GET", "/audit?cursor=41&tool=crm.*&limit=5&principal=p&since=2026-01-01T00:00:00Z", "", 200, `"events":[{"kind":"call","principal":"p","seq":42,"time":"2026-01-01T00:00:00Z","tool":"crm.*"}]`},
		{"op", "GET", "/audit?limit=5", "", 200, `"next":"5"`},
		{"op", "GET", "/audit?gateway=east-1", "", 200, `"chain":"ab12","host":"east-1"`},
		{"op", "GET", "/audit?cursor=x", "", 400, "cursor must be next of the page before"},
		{"ada", "GET", "/audit", "", 403, "only an operator may do this"},
		{"only read", "GET", "/metrics", "", 403, "this needs scope metrics"},
	} {
		status, _, got := ask(t, test.who, test.method, test.path, test.body)
		all, err := json.Marshal(got)
		if err != nil || status != test.status || !strings.Contains(string(all), test.says) {
			t.Errorf("%s %s %s: %d %.600s", test.who, test.method, test.path, status, all)
		}
	}
}
