package mcpserver_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// TestClientsWithoutTasks call a tool of a real server that requires a task: they get its result, its progress and its question,
// and see no tool that requires a task.
func TestClientsWithoutTasks(t *testing.T) {
	t.Parallel()
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	d := newDirect(t, false, config.Upstream{Name: "everything", ID: "everything", Command: "node", Args: []string{script, "stdio"}, Timeout: time.Minute})
	var both sync.WaitGroup
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		if listed := d.dialogue(version).ask("tools/list", "{}"); !strings.Contains(listed, "simulate_research_query") || strings.Contains(listed, `"taskSupport":"required"`) {
			t.Errorf("%s: the list is %s", version, listed)
		}
		both.Go(func() { d.research(version) })
	}
	both.Wait()
}

// TestGatewayOfGateways checks that clients of both revisions answer what a tool behind three gateways asks.
func TestGatewayOfGateways(t *testing.T) {
	t.Parallel()
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	d := newDirect(t, true, config.Upstream{Name: "everything", ID: "everything", Command: "node", Args: []string{script, "stdio"}, Timeout: time.Minute})
	d = newDirect(t, true, config.Upstream{Name: "near", ID: "near", URL: d.url, Timeout: time.Minute})
	d = newDirect(t, false, config.Upstream{Name: "everything", ID: "everything", URL: d.url, Timeout: time.Minute})
	var both sync.WaitGroup
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		both.Go(func() { d.research(version) })
	}
	both.Wait()
}

// research calls the tool as a client of that revision.
func (d *direct) research(version string) {
	progressed := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"interpretation": "snake"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { progressed <- req.Params.Message },
	})
	session, err := client.Connect(d.t.Context(), &mcp.StreamableClientTransport{Endpoint: d.url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		d.t.Error(err)
		return
	}
	defer func() { _ = session.Close() }()
	params := &mcp.CallToolParams{Name: "everything__simulate_research_query", Arguments: map[string]any{"topic": "python", "ambiguous": true}}
	params.SetProgressToken("p")
	result, err := session.CallTool(d.t.Context(), params)
	if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "python (snake)") {
		said, _ := json.Marshal(result)
		d.t.Errorf("%s: %s, %v", version, said, err)
	}
	select {
	case said := <-progressed:
		if !strings.Contains(said, "...") {
			d.t.Errorf("%s: progress %q", version, said)
		}
	case <-time.After(30 * time.Second):
		d.t.Errorf("%s: no progress", version)
	}
}
