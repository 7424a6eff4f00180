package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// newModes serves a gateway with one upstream in all modes, and returns the origin.
func newModes(t *testing.T, cfg *config.Config) string {
	t.Helper()
	g, err := gateway.Open(cfg, &gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	mode := func(name, version string) config.Mode {
		if m := cfg.ModeOf(name, version); m != "" {
			return m
		}
		return cfg.Mode
	}
	face := mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{Logger: testutil.Logger(t), Search: g.Service(), Mode: mode})
	tools := mcpserver.New(g.Service(), nil)
	t.Cleanup(func() {
		face.Close()
		tools.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return serve(t, face, &siteOptions{Tools: tools, Mode: mode, Settings: cfg.HTTP})
}

// as returns a client with a name and a version.
func as(t *testing.T, url, revision, name, version string) *dialogue {
	t.Helper()
	c := &dialogue{t: t, url: url, version: revision, name: name, release: version}
	if revision < "2026" {
		c.ask("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":%q,"version":%q}}`, revision, name, version))
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", "")
	}
	return c
}

// tools returns the names of the listed tools.
func (c *dialogue) tools() string {
	c.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(c.ask("tools/list", `{}`)), &list); err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, one := range list.Tools {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

// TestModes: the URL selects the mode, else the name and the version of the client, else the settings.
func TestModes(t *testing.T) {
	t.Parallel()
	odd := newRawServer(t, oddAnswers())
	cfg := config.Default()
	cfg.Trust, cfg.Upstreams = config.TrustAllow, []config.Upstream{upstream("odd", odd.url, "")}
	cfg.Clients = []config.ClientMode{{Name: "codex*", Versions: ">=0.40", Mode: config.ModeDirect}, {Name: "finder", Mode: config.ModeSearch}}
	site := newModes(t, &cfg)
	const code, direct, search = "execute_code search_tools", "odd__odd_tool", "search_tools call_tool"
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, tc := range []struct{ path, name, version, want string }{
			{"/mcp", "any", "1", code},
			{"/mcp", "codex-mcp-client", "0.41.0", direct},
			{"/mcp", "codex-mcp-client", "0.39.0", code},
			{"/mcp", "finder", "", search},
			{"/mcp?mode=code", "codex-mcp-client", "0.41.0", code},
			{"/mcp?mode=direct", "any", "1", direct},
			{"/mcp?codemode=off", "any", "1", direct},
			{"/mcp?codemode=on", "finder", "1", code},
			{"/mcp?mode=search", "any", "1", search},
			{"/mcp/direct", "finder", "1", direct},
			{"/mcp/direct?mode=search", "any", "1", search},
		} {
			if got := as(t, site+tc.path, revision, tc.name, tc.version).tools(); got != tc.want {
				t.Errorf("%s %s of %s %s: %s, want %s", revision, tc.path, tc.name, tc.version, got, tc.want)
			}
		}
	}
	for query, want := range map[string]string{
		"mode=dirct": `unknown mode \"dirct\": did you mean \"direct\"?`, "mode=": `unknown mode \"\": use code, direct, search`, "codemode=no": `unknown codemode \"no\": use on or off`,
		"mode=code&codemode=off": "the URL names more than one mode", "mode=code&mode=search": "the URL names more than one mode",
	} {
		if status, body := (&dialogue{t: t, url: site + "/mcp?" + query}).post(initializeBody, "", ""); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	// A header does not select the mode, and the session of one mode is none of another.
	c := as(t, site+"/mcp?mode=search", "2025-11-25", "any", "1")
	c.url = site + "/mcp"
	if got := c.tools(); strings.Contains(got, "execute_code") {
		t.Errorf("a session of another server was used: %s", got)
	}
	c.url = site + "/mcp?mode=code"
	if status, body := c.post(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, "tools/list", ""); status != 404 {
		t.Errorf("a session of another mode: %d %s", status, body)
	}
}

// TestSearchMode finds a tool, and calls it.
func TestSearchMode(t *testing.T) {
	t.Parallel()
	odd := newRawServer(t, oddAnswers())
	cfg := config.Default()
	cfg.Trust, cfg.Upstreams, cfg.Mode = config.TrustAllow, []config.Upstream{upstream("odd", odd.url, "")}, config.ModeSearch
	site := newModes(t, &cfg)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		c := as(t, site+"/mcp", revision, "any", "1")
		call := func(name, args string) string {
			return c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
		}
		if got := call("search_tools", `{"query":"odd tool"}`); !strings.Contains(got, `{\"name\":\"odd__odd_tool\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"z\":{\"type\":\"integer\",\"maximum\":9007199254740993}`) {
			t.Errorf("the definition is missing: %s", got)
		}
		for _, args := range []string{`{}`, `{"detial":1}`} { // results of the gateway itself, one of them an error
			got := call("search_tools", args)
			if !strings.Contains(got, "odd (1 tool)") && !strings.Contains(got, "detial") {
				t.Errorf("the upstreams are missing: %s", got)
			}
			if typed := strings.Contains(got, `"resultType":"complete"`); typed != (revision >= "2026") {
				t.Errorf("%s: the type of the result: %s", revision, got)
			}
		}
		for _, name := range []string{"odd__odd_tool", "odd.odd_tool"} {
			want(t, name, call("call_tool", fmt.Sprintf(`{"name":%q,"arguments":{"z":9007199254740993}}`, name)), oddResult)
			if params, _ := odd.last("tools/call"); !strings.Contains(string(params), `"name":"odd.tool"`) || !strings.Contains(string(params), `{"z":9007199254740993}`) {
				t.Errorf("the upstream got %s", params)
			}
		}
		want(t, "by its own name", call("odd__odd_tool", `{}`), oddResult)
		for args, wrong := range map[string]string{
			`{"name":"odd__od_tool"}`: "odd__odd_tool", `{"arguments":{}}`: "name is missing", `{"name":"x","argumnts":{}}`: "arguments", `{"name":"odd__odd_tool","arguments":[1]}`: "object",
			`{"name":"call_tool","arguments":{"name":"odd__odd_tool"}}`: "call_tool",
		} {
			if got := call("call_tool", args); !strings.Contains(got, wrong) || strings.Contains(got, "hologram") {
				t.Errorf("%s: %s", args, got)
			}
		}
		if got := c.ask("resources/list", `{}`); !strings.Contains(got, "odd://1") {
			t.Errorf("resources: %s", got)
		}
	}
}
