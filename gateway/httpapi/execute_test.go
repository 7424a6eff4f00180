package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

func (house) MaxTimeout() time.Duration { return 30 * time.Second }

func (house) CountTokens(text string) int { return len(strings.Fields(text)) }

// Execute knows a few programs.
func (house) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	e := execution.Result{ID: "e-new", Language: p.Language}
	if p.OnStart != nil && p.Code != "busy" {
		p.OnStart(e.ID)
		p.OnOutput(execution.Printed{Stream: "stdout", Text: "a\n"})
		p.OnOutput(execution.Printed{Stream: "stderr", Text: "b"})
	}
	e.Status, e.Duration, e.Calls = sandbox.OK, 1500*time.Millisecond, 3
	switch p.Code {
	case "print":
		e.Stdout, e.Stderr = sandbox.Output{Text: "\x1b[31mred\x1b[0m\n"}, sandbox.Output{Text: "warn", Cut: 7}
		e.Value = &bridge.Value{Kind: "json", Text: `{"a":[1]}`, Size: 9}
		e.Files = []execution.FileChange{{Path: "a.txt", Size: 3}}
		e.Emitted = []tool.Content{{Type: "image", Data: []byte("png"), MIME: "image/png", URI: "x:1"}, {Type: "resource", Text: "a,b", URI: "x:2", MIME: "text/csv"}}
	case "object":
		e.Value = &bridge.Value{Kind: "text", Text: "<object \x00>", Size: 100}
	case "fail":
		e.Status, e.Resume = sandbox.Failed, e.ID
		e.Fault = &bridge.Fault{Type: "NameError", Message: "x\x1b[2J", Hint: "define it", Lines: []bridge.Line{{Line: 2, Source: "print(x)"}}}
		return e, json.Unmarshal([]byte(`[{"Line":2,"Message":"x is not defined"},{"Line":1,"Message":"first"},{"Line":3,"Message":"third"},{"Line":4,"Message":"fourth"}]`), &e.Warnings)
	case "hold":
		e.Status, e.Resume = execution.Held, e.ID
		e.Approvals = []approvals.Approval{{ID: "a-0", State: approval.Waiting}}
	case "lost":
		return execution.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there is no such environment"}
	case "broken":
		return e, &tool.Error{Kind: tool.Timeout, Message: "the sandbox could not be started"}
	case "flood": // far more than anybody reads
		line := strings.Repeat("x", 1<<20)
		for range 64 {
			p.OnOutput(execution.Printed{Stream: "stdout", Text: line})
		}
	case "wait":
		<-ctx.Done()
		e.Status = sandbox.Canceled
	case "busy":
		return execution.Result{}, &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}
	default:
		said, err := json.Marshal(map[string]any{"Language": p.Language, "Timeout": p.Timeout, "Workspace": p.Workspace, "Environment": p.Environment, "Session": p.Session, "Variables": p.Variables, "Resume": p.Resume, "File": p.File})
		e.Value = &bridge.Value{Kind: "json", Text: string(said), Size: int64(len(said))}
		return e, err
	}
	return e, nil
}

// TestExecute: a program that ran is a success, however it ended, and the answer says how.
func TestExecute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		who, body string
		status    int
		says      []string
	}{
		{"ada", `{"code":"print"}`, 200, []string{
			`"id":"e-new"`, `"status":"ok"`, `"output":"red"`, `"stderr":"warn"`, `"result":{"a":[1]}`, `"executionTime":1.5`, `"truncated":true`, `"files":[{"path":"a.txt","size":3}]`,
			`"metrics":{"calls":3,"queuedMs":0,"tokens":`, `{"data":"cG5n","mimeType":"image/png","type":"image","uri":"x:1"}`, `{"resource":{"mimeType":"text/csv","text":"a,b","uri":"x:2"},"type":"resource"}`,
		}},
		{"ada", `{"code":"object"}`, 200, []string{`"result":"\u003cobject \u0000\u003e"`, `"truncated":true`, `"files":[]`, `"output":""`}},
		{"ada", `{"code":"none","language":"typescript","timeout":0.25,"workspace":"w","environment":"e","session":"s","variables":{"n":1},"resume":"e-1","file":"f.py"}`, 200, []string{
			`"Language":"typescript"`, `"Timeout":250000000`, `"Workspace":"w"`, `"Environment":"e"`, `"Session":"s"`, `"Variables":{"n":1}`, `"Resume":"e-1"`, `"File":"f.py"`,
		}},
		{"ada", `{"code":"fail"}`, 200, []string{`"status":"failed"`, `"error":{"hint":"define it","lines":[{"line":2,"source":"print(x)"}],"message":"x","type":"NameError"}`, `"resume":"e-new"`, `"result":null`,
			`"warnings":[{"line":2,"message":"x is not defined"},{"line":1,"message":"first"},{"line":3,"message":"third"}]`,
		}},
		{"ada", `{"code":"hold"}`, 200, []string{`"status":"held"`, `"approvals":[{`, `"error":{"message":"held: it needs approval`}},
		{"ada", `{"code":"busy"}`, 503, []string{"the gateway is closed"}},
		{"ada", `{"code":"x","timeout":31}`, 400, []string{"timeout must be more than 0 and at most 30, in seconds"}},
		{"ada", `{"code":"x","timeout":-5}`, 400, []string{"timeout must be more than 0"}},
		{"ada", `{"code":"x","timeout":0}`, 400, []string{"timeout must be more than 0", "leave it out for 30"}},
		{"ada", `{"code":7}`, 400, []string{"code cannot be a number"}},
		{"ada", `{"cod":"x"}`, 400, []string{"the body has no cod", "did you mean code?"}},
		{"ada", `{"code":"` + strings.Repeat("x", 4<<20) + `"}`, 413, []string{"too large"}},
		{"only read", `{"code":"print"}`, 403, []string{"this needs scope execute", "sallyport token create NAME --scope execute"}},
	} {
		status, _, got := ask(t, test.who, http.MethodPost, "/execute", test.body)
		all, err := json.Marshal(got)
		if err != nil || status != test.status {
			t.Errorf("%.60s: %d %.300s", test.body, status, all)
		}
		for _, say := range test.says {
			if !strings.Contains(string(all), say) {
				t.Errorf("%.60s does not say %s: %.900s", test.body, say, all)
			}
		}
	}
}
