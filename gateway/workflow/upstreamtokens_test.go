package workflow_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestTokensOfWorkflows: tokens go into a workflow that a session calls and come back, and mean the same on both sides.
func TestTokensOfWorkflows(t *testing.T) {
	t.Parallel()
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{{Name: "everything", ID: "everything", Command: "node", Args: []string{script, "stdio"}, Dir: t.TempDir(), Timeout: 20 * time.Second}}
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"*"}}
	records := store.Memory()
	g, err := gateway.Open(&cfg, &gateway.Options{Records: records, NoPool: true, ConnectWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	e := engine(t, g.Service(), workflow.Options{Records: records, Approvals: g.Approver, Catalog: g.Service(), Labels: g.Guard, MaxRuns: 2}, map[string]string{
		"mail": `{description: Mail, expose: true, inputs: {to: {type: string}}, steps: [{id: x, tool: everything.echo, with: {message: "bob@corp.example to ${{ inputs.to }}"}}],
 outputs: {said: {value: "${{ steps.x.output }}"}, to: {value: "${{ inputs.to }}"}}}`,
	})
	if _, err := g.Catalog.Attach(toolcall.WorkflowsID, "reviewed workflows", e.AsUpstream(g.Service())); err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), "1")
	token, _, _ := g.Privacy.Mask(ctx, "ann@corp.example")
	args, _ := json.Marshal(map[string]string{"to": token})
	result, err := callExposed(ctx, g, "mail", string(args))
	said := string(result.Structured)
	all := regexp.MustCompile(`\[EMAIL_\d+\]`).FindAllString(said, -1)
	if err != nil || len(all) != 3 || all[1] != token || strings.ContainsAny(said, "@") || strings.Contains(said, "[TEXT") {
		t.Fatalf("%s %v", said, err)
	}
	// The one that the workflow read is good here.
	again, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "everything", Name: "echo"}, Args: json.RawMessage(`{"message":"to ` + all[0] + `"}`)})
	if err != nil || !strings.Contains(again.Text(), "to "+all[0]) {
		t.Errorf("%s %v", again.Text(), err)
	}
}
