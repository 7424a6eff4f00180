package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/mcpapp"
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
