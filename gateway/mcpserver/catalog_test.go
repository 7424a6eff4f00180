package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
)

// connectWith returns a client of a server with options of its own.
func connectWith(t *testing.T, verbs mcpserver.Service, opts *mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(verbs, opts).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
	})
	return client
}

// TestCatalog asks a gateway with one upstream as users of other servers do.
func TestCatalog(t *testing.T) {
	t.Parallel()
	g := open(t, upstream("meter", newMeter(t).url, "Counts"))
	client := connectWith(t, g.Service(), &mcpserver.Options{Catalog: g.Service(), Profiles: config.Profiles{config.ProfileCatalog}})
	const full = "Count up and say how far."
	for _, test := range []struct {
		tool string
		args map[string]any
		want string
		fail bool
	}{
		{"get_tool_definition", map[string]any{"tool_name": "meter.tick"}, full, false},
		{"get_tool_definition", map[string]any{"tool_name": "tick", "category": "meter"}, full, false},
		{"get_tool_definition", map[string]any{"tool_name": "meter.tick", "category": "meter"}, full, false},
		{"get_tool_definition", map[string]any{"tool_name": "servers/meter/tick", "language": "typescript"}, `from "servers/meter"`, false},
		{"get_tool_definition", map[string]any{"name": "tick", "category": nil}, full, false},
		{"get_tool_definition", map[string]any{"tool_name": "parallel"}, "from sallyport import parallel", false},
		{"get_tool_definition", map[string]any{"tool_name": "tock"}, "did you mean meter.tick?", true},
		{"get_tool_definition", map[string]any{"tool_name": "tick", "category": "metre"}, "did you mean meter?", true},
		{"get_tool_definition", map[string]any{}, "tool_name is missing", true},
		{"get_tool_definition", map[string]any{"tool_name": "a", "name": "b"}, "name and tool_name are the same; give one of them", true},
		{"get_tool_definition", map[string]any{"tol_name": "a"}, "did you mean tool_name? parameters: language, tool_name", true},
		{"get_tool_definition", map[string]any{"tool_name": strings.Repeat("../", 5000) + "\x00"}, "there is no", true},
		{"list_tool_categories", map[string]any{}, "meter (1 tool): Counts", false},
		{"list_tool_categories", nil, "meter (1 tool): Counts", false},
		{"list_tool_categories", map[string]any{"x": 1}, `unknown parameter "x"`, true},
		{"search_tools", map[string]any{"query": "count up", "category": "meter", "detail_level": "summary"}, "meter.tick", false},
	} {
		got, failed := call(t, client, test.tool, test.args)
		if failed != test.fail || !strings.Contains(got, test.want) || len(got) > 2000 {
			t.Errorf("%s(%.100v): %v, %.500s", test.tool, test.args, failed, got)
		}
	}
}

// TestCosts: what is counted is what a client gets.
func TestCosts(t *testing.T) {
	t.Parallel()
	g := open(t, upstream("meter", newMeter(t).url, "Counts"))
	opts := &mcpserver.Options{Catalog: g.Service(), Packages: g.Environments, Profiles: config.Profiles{config.ProfileCatalog}}
	costs, err := mcpserver.Costs(g.Service(), opts)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	list, err := connectWith(t, g.Service(), opts).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range list.Tools {
		shown[def.Name] = true
	}
	for _, c := range costs {
		if shown[c.Name] != (c.Current > 0) || c.Tokens <= 0 || (c.Name == "search_tools") != (c.Current > c.Tokens) {
			t.Errorf("%+v", c)
		}
		delete(shown, c.Name)
	}
	if len(shown) > 0 {
		t.Errorf("not told: %v", shown)
	}
}
