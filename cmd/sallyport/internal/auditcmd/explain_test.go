package auditcmd

import (
	"testing"
	"time"

	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestExplained: the story of an execution tells why a call was held, and shows nothing that an upstream wrote as it is.
func TestExplained(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	id := func(up, name string) tool.ID { return tool.ID{Upstream: up, Name: name} }
	text, err := explanation(history.Record{
		ID: "e-1", Language: "python", Status: sandbox.Failed, Principal: "ann", Started: at, Made: 8,
		Calls: []toolcall.RecordedCall{
			{Tool: id("web", "fetch"), Decision: "allow", Rule: "read-only", Outcome: "ok", Labels: []string{"untrusted"}},
			{Tool: id("crm", "get"), Decision: "allow", Rule: "reads", Outcome: "ok", Labels: []string{"private", "prod"}},
			{Tool: id("sallyport", "search_tools"), Outcome: "ok"},
			{Tool: id("crm", "get"), Outcome: "ok", Replayed: true},
			{Tool: id("web", "post"), Decision: "ask", Rule: "flow", Reason: "untrusted and private data was read\x1b[2J", Outcome: "canceled", Approval: "a-1"},
			{Tool: id("web", "put"), Decision: "allow", Rule: "default", Reason: "no rule decides", Outcome: "ok", Approval: "a-2"},
			{Tool: id("crm", "drop"), Decision: "deny", Rule: "no-drops", Reason: `rule "no-drops"`, Outcome: "denied"},
		},
		Read: []toolcall.Origin{
			{Label: "private", Tool: "crm.get", Execution: "e-1", Time: at.Add(time.Second)},
			{Label: "prod", File: "notes/\x1bx.txt", Execution: "e-0", Time: at},
			{Label: "untrusted", Tool: "web.fetch", Time: at},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/golden/explained.txt", text)
}
