package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/mcpapp"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// connectShowing returns a client of the two tools, which shows user interfaces or not.
func connectShowing(t *testing.T, g *gateway.Gateway, version string, shows bool) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(g.Service(), &mcpserver.Options{Resources: g.Service()}).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := appClient(shows).Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
	})
	return client
}

// TestProgramsShowInterfaces: a program in each language emits the URI of an interface, which a search names. A client that shows
// interfaces gets a link with the result of the last call, and reads it; any other gets the text. A model reads neither.
func TestProgramsShowInterfaces(t *testing.T) {
	t.Parallel()
	g := open(t, upstream("one", newAppServer(t, "one"), ""), upstream("two", newAppServer(t, "two"), ""))
	user := &mcp.Annotations{Audience: []mcp.Role{"user"}}
	for _, test := range []struct {
		version, language, code string
		shows                   bool
	}{
		{"2025-11-25", "python", "from servers.two import show\nfrom sallyport import emit\nshow()\nemit('ui://two/one/main')\nemit('ui://one/one/main')", true},
		{"2026-07-28", "typescript", "import { show } from './servers/two'\nimport { emit } from 'sallyport'\nawait show({})\nawait emit('ui://two/one/main')\nawait emit('ui://one/one/main')", true},
		{"2026-07-28", "python", "from servers.two import show\nfrom sallyport import emit\nshow()\nemit('ui://two/one/main')\nemit('ui://one/one/main')", false},
	} {
		client := connectShowing(t, g, test.version, test.shows)
		if got, _ := call(t, client, "search_tools", map[string]any{"query": "two.show"}); !strings.Contains(got, `emit("ui://two/one/main") shows its result to the user`) {
			t.Errorf("a search says %s", got)
		}
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": test.code, "language": test.language}})
		if err != nil || result.IsError || len(result.Content) != 3 {
			said, _ := json.Marshal(result)
			t.Fatalf("%s: %s, %v", test.language, said, err)
		}
		if said := result.Content[0].(*mcp.TextContent).Text; said != "(emitted: two.show, 8 B text; 17 B text)" {
			t.Errorf("the model reads %s", said)
		}
		var want mcp.Content = &mcp.TextContent{Text: "of two\np", Annotations: user}
		if test.shows {
			want = &mcp.ResourceLink{URI: "ui://two/one/main", Name: "two.show", MIMEType: mcpapp.MIMEType, Annotations: user,
				Meta: mcp.Meta{"sallyport/result": map[string]any{"content": []any{map[string]any{"type": "text", "text": "of two"}}}}}
		}
		wantJSON(t, "the client gets", result.Content[1], want)
		// Without a call there is no result to show.
		wantJSON(t, "without a call", result.Content[2], &mcp.TextContent{Text: "ui://one/one/main", Annotations: user})
		read, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://two/one/main"})
		if !test.shows {
			if err == nil || !strings.Contains(err.Error(), "method not found") {
				t.Errorf("a client that shows none: %v", err)
			}
			continue
		}
		if err != nil || read.Contents[0].Text != "<p>two" || read.Contents[0].URI != "ui://two/one/main" || read.Contents[0].Meta["ui"] == nil {
			t.Errorf("%s: read %+v, %v", test.version, read, err)
		}
		for _, uri := range []string{"ui://main", "ui://three/one/main", "file:///etc/passwd", "ui://two/\u0007"} {
			if _, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s can be read", uri)
			}
		}
		if listed, err := client.ListResources(t.Context(), nil); err != nil || len(listed.Resources) != 0 {
			t.Errorf("%s: listed %+v, %v", test.version, listed, err)
		}
	}
}

func wantJSON(t *testing.T, what string, got, want any) {
	t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s %s, not %s", what, a, b)
	}
}

// newViewServer is an upstream with an interface, and a tool of each visibility. The tool ask asks its client for a name.
func newViewServer(t *testing.T, id string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: id, Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	uri := "ui://" + id + "/main"
	answer := func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"n":9007199254740993}`), Content: []mcp.Content{
			&mcp.TextContent{Text: id + " " + string(req.Params.Arguments)}, &mcp.ResourceLink{URI: uri, Name: "again"}, &mcp.ResourceLink{URI: "file:///x", Name: "file"},
		}}, nil
	}
	for name, ui := range map[string]map[string]any{
		"show": {"resourceUri": uri}, "refresh_" + id: {"visibility": []string{"app"}}, "both_" + id: {"visibility": []string{"model", "app"}}, "plain_" + id: nil,
		"model_" + id: {"visibility": []string{"model"}}, "denied_" + id: {"visibility": []string{"app"}}, "held_" + id: {"visibility": []string{"app"}}, "search_tools": {"visibility": []string{"app"}},
	} {
		tool := &mcp.Tool{Name: name, InputSchema: schema}
		if ui != nil {
			tool.Meta = mcp.Meta{"ui": ui}
		}
		server.AddTool(tool, answer)
	}
	server.AddTool(&mcp.Tool{Name: "ask_" + id, InputSchema: schema, Meta: mcp.Meta{"ui": map[string]any{"visibility": []string{"app"}}}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(said.Action, " ", said.Content["name"])}}}, nil
	})
	server.AddResource(&mcp.Resource{URI: uri, Name: "main", MIMEType: mcpapp.MIMEType}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mcpapp.MIMEType, Text: "<p>" + id}}}, nil
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return web.URL
}

// viewClient is a client of the two tools that shows interfaces and answers questions with yes, by the name Ann.
type viewClient struct {
	*mcp.ClientSession
	asked []string
}

func connectView(t *testing.T, g *gateway.Gateway, version string, shows bool) *viewClient {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(g.Service(), &mcpserver.Options{Resources: g.Service()}).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &viewClient{}
	can := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}}
	if shows {
		can.AddExtension(mcpapp.Extension, mcpapp.Capability())
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: can, ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		c.asked = append(c.asked, req.Params.Message)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann", "decision": "once"}}, nil
	}})
	if c.ClientSession, err = client.Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = server.Wait()
	})
	return c
}

func (c *viewClient) refused(t *testing.T, name, why string) {
	t.Helper()
	if result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %+v, %v; want %s", name, result, err, why)
	}
}

// TestInterfacesCallToolsInCodeMode: a client of the two tools passes on the calls of an interface that it has read: to tools of
// that upstream that interfaces may call, through the policy, approvals and the audit log, and to no others.
func TestInterfacesCallToolsInCodeMode(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstream("one", newViewServer(t, "one"), ""), upstream("two", newViewServer(t, "two"), "")}
	cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Tools: []string{"one.denied_one"}, Then: policy.Deny}, {Tools: []string{"one.held_one"}, Then: policy.Ask}}}
	g, err := gateway.Open(withRunsc(t, &cfg), &gateway.Options{Snapshots: testutil.Snapshots(), PeerRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := connectView(t, g, version, true)
		c.refused(t, "refresh_two", `unknown tool "refresh_two"`) // nothing was read
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://one/one/main"}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"refresh_one", "both_one", "plain_one"} {
			result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"x": 1}})
			if err != nil {
				t.Fatal(err)
			}
			said, _ := json.Marshal(result.Content)
			if want := `[{"type":"text","text":"one {\"x\":1}"},{"type":"resource_link","uri":"ui://one/one/main","name":"again"},{"type":"resource_link","uri":"file:///x","name":"file"}]`; string(said) != want || result.IsError {
				t.Errorf("%s %s: %s", version, name, said)
			}
		}
		c.refused(t, "model_one", `unknown tool "model_one"`)
		c.refused(t, "refresh_two", `unknown tool "refresh_two"`)
		c.refused(t, "one.refresh_one", "unknown tool")
		if got, failed := callWith(t, c.ClientSession, &mcp.CallToolParams{Name: "denied_one"}); !failed || !strings.Contains(got, "policy refuses one.denied_one") {
			t.Errorf("%s: a call that the policy refuses: %s", version, got)
		}
		if got, failed := callWith(t, c.ClientSession, &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "show"}}); failed || strings.HasPrefix(got, "one ") {
			t.Errorf("an interface replaces a tool of the gateway: %s", got)
		}
		if got, failed := callWith(t, c.ClientSession, &mcp.CallToolParams{Name: "ask_one"}); failed || got != "accept Ann" {
			t.Errorf("%s: a question of the upstream: %s", version, got)
		}
		if got, failed := callWith(t, c.ClientSession, &mcp.CallToolParams{Name: "held_one"}); failed || !strings.HasPrefix(got, "one ") {
			t.Errorf("%s: an approval: %s", version, got)
		}
		if len(c.asked) != 2 || c.asked[0] != "one: Who?" || !strings.Contains(c.asked[1], "held_one") {
			t.Errorf("%s: the user was asked %q", version, c.asked)
		}
		other := connectView(t, g, version, false)
		other.refused(t, "refresh_one", `unknown tool "refresh_one"`) // a client that shows no interfaces
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://two/two/main"}); err != nil {
			t.Fatal(err)
		}
		c.refused(t, "show", `unknown tool "show"`) // of which upstream?
		if got, failed := callWith(t, c.ClientSession, &mcp.CallToolParams{Name: "refresh_two"}); failed || !strings.HasPrefix(got, "two ") {
			t.Errorf("%s: %s", version, got)
		}
	}
}
