package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/mcpapp"
	"sallyport/internal/testutil/tlstest"
)

// newAppServer is a server whose tool show has an interface, which calls refresh. Each has the same URI.
func newAppServer(t *testing.T, id string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: id, Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	link := &mcp.ResourceLink{URI: "ui://one/main", Name: "again"}
	answer := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "of " + id}, link, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "ui://one/part", Text: "p"}}}}, nil
	}
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "show", InputSchema: schema, Meta: mcp.Meta{"ui": map[string]any{"resourceUri": "ui://one/main"}, "ui/resourceUri": "ui://one/main", "kept": 1}}, answer)
	server.AddTool(&mcp.Tool{Name: "refresh", InputSchema: schema, Meta: mcp.Meta{"ui": map[string]any{"visibility": []string{"app"}}}}, answer)
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		meta := mcp.Meta{"ui": map[string]any{"csp": map[string]any{"connectDomains": []string{"https://a.example"}}, "permissions": map[string]any{"camera": map[string]any{}}, "domain": "d.example"}}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mcpapp.MIMEType, Text: "<p>" + id, Meta: meta}}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "ui://one/main", Name: "main", MIMEType: mcpapp.MIMEType}, read)
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return web.URL
}

func appClient(shows bool) *mcp.Client {
	can := &mcp.ClientCapabilities{}
	if shows {
		can.AddExtension(mcpapp.Extension, mcpapp.Capability())
	}
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: can})
}

// TestAppsOfTwoUpstreams: two interfaces with one URI are two for a client, wherever it meets them. The ID of one upstream is in the
// URI of both.
func TestAppsOfTwoUpstreams(t *testing.T) {
	t.Parallel()
	for _, wireNames := range []bool{false, true} {
		d := newDirect(t, wireNames, upstream("one", newAppServer(t, "one"), ""), upstream("two", newAppServer(t, "two"), ""))
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			session, _ := d.connect(appClient(true), version)
			tools, metas := listTools(t, session)
			if tools != "one__refresh one__show two__refresh two__show" && tools != "refresh show two__refresh two__show" {
				t.Errorf("tools %s", tools)
			}
			for _, id := range []string{"one", "two"} {
				uri, name := "ui://"+id+"/one/main", id+"__show"
				if wireNames && id == "one" {
					name = "show"
				}
				if want := `{"kept":1,"ui":{"resourceUri":"` + uri + `"},"ui/resourceUri":"` + uri + `"}`; metas[name] != want {
					t.Errorf("%s: meta of %s is %s, not %s", version, name, metas[name], want)
				}
				read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil {
					t.Fatal(err)
				}
				got, _ := json.Marshal(read.Contents)
				if want := `[{"uri":"` + uri + `","mimeType":"text/html;profile=mcp-app","text":"\u003cp\u003e` + id + `","_meta":{"ui":{"csp":{"connectDomains":["https://a.example"]},"domain":"d.example","permissions":{"camera":{}}}}}]`; string(got) != want {
					t.Errorf("%s: read %s, not %s", version, got, want)
				}
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: strings.Replace(name, "show", "refresh", 1)})
				if err != nil {
					t.Fatal(err)
				}
				got, _ = json.Marshal(result.Content)
				if want := `[{"type":"text","text":"of ` + id + `"},{"type":"resource_link","uri":"` + uri + `","name":"again"},{"type":"resource","resource":{"uri":"ui://` + id + `/one/part","text":"p"}}]`; string(got) != want {
					t.Errorf("%s: result %s, not %s", version, got, want)
				}
			}
			if listed, err := session.ListResources(t.Context(), nil); err != nil || len(listed.Resources) != 2 || listed.Resources[0].URI != "ui://one/one/main" || listed.Resources[1].URI != "ui://two/one/main" {
				t.Errorf("%s: resources %+v, %v", version, listed, err)
			}
			for _, uri := range []string{"ui://three/one/main", "ui://one", "ui://main"} {
				if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "not found") {
					t.Errorf("%s: %s: %v", version, uri, err)
				}
			}
		}
	}
}

func listTools(t *testing.T, session *mcp.ClientSession) (names string, metas map[string]string) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	metas = map[string]string{}
	var all []string
	for _, one := range list.Tools {
		meta, _ := json.Marshal(one.Meta)
		metas[one.Name] = string(meta)
		all = append(all, one.Name)
	}
	return strings.Join(all, " "), metas
}

// TestInterfacesCallTools by the names that their upstream gave them, unless interfaces of another upstream could mean them too.
func TestInterfacesCallTools(t *testing.T) {
	t.Parallel()
	answers := oddAnswers()
	answers["tools/list"] = strings.Replace(answers["tools/list"], "odd.tool", "refresh", 1)
	plain := newRawServer(t, answers) // has no interface
	one := newDirect(t, false, upstream("one", newAppServer(t, "one"), ""), upstream("plain", plain.url, ""))
	two := newDirect(t, false, upstream("one", newAppServer(t, "one"), ""), upstream("two", newAppServer(t, "two"), ""))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		session, _ := one.connect(appClient(true), version)
		if got, isError := callWith(t, session, &mcp.CallToolParams{Name: "refresh"}); isError || got != "of one" {
			t.Errorf("%s: %s", version, got)
		}
		for what, session := range map[string]*mcp.ClientSession{"of two upstreams": first(two.connect(appClient(true), version)), "of a client without interfaces": first(one.connect(appClient(false), version))} {
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "refresh"}); err == nil || !strings.Contains(err.Error(), `unknown tool "refresh"`) {
				t.Errorf("%s: %s: %v", version, what, err)
			}
		}
	}
}

func first(session *mcp.ClientSession, _ <-chan struct{}) *mcp.ClientSession { return session }

// TestClientsWithoutApps get tools without interfaces, and none that only an interface calls.
func TestClientsWithoutApps(t *testing.T) {
	t.Parallel()
	d := newDirect(t, false, upstream("one", newAppServer(t, "one"), ""))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		session, _ := d.connect(appClient(false), version)
		if names, metas := listTools(t, session); names != "one__show" || metas["one__show"] != `{"kept":1}` {
			t.Errorf("%s: %s, %s", version, names, metas)
		}
		if got := d.dialogueOf(version, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/plain"]}}}`).ask("tools/list", "{}"); strings.Contains(got, `"ui`) {
			t.Errorf("%s: to a client of other interfaces: %s", version, got)
		}
	}
}

// TestAppsReachTheUpstream: the gateway declares interfaces in its session, and what a client declares goes with its calls.
func TestAppsReachTheUpstream(t *testing.T) {
	t.Parallel()
	const declared = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`
	old := newRawServer(t, oddAnswers())
	answers := oddAnswers()
	delete(answers, "initialize")
	answers["server/discover"] = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	modern := newRawServer(t, answers)
	d := newDirect(t, false, upstream("old", old.url, ""), upstream("modern", modern.url, ""))
	for _, test := range []struct {
		server *rawServer
		method string
	}{{old, "initialize"}, {modern, "tools/list"}} {
		if params, _ := test.server.last(test.method); !strings.Contains(string(params), `"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}`) {
			t.Errorf("%s declares %s", test.method, params)
		}
	}
	for can, want := range map[string]bool{declared: true, "{}": false} {
		d.dialogueOf("2026-07-28", can).ask("tools/call", `{"name":"modern__odd_tool","arguments":{}}`)
		if params, _ := modern.last("tools/call"); strings.Contains(string(params), mcpapp.Extension) != want {
			t.Errorf("a call of a client with %s: %s", can, params)
		}
	}
}

// TestHostileApps: an invalid interface is none, and no URI of one upstream becomes that of another.
func TestHostileApps(t *testing.T) {
	t.Parallel()
	metas := map[string]string{
		`{"ui":7,"ui/resourceUri":8}`:                                                          `{}`,
		`{"ui":[],"kept":{"n":9007199254740993}}`:                                              `{"kept":{"n":9007199254740993}}`,
		`{"ui":{"resourceUri":"ui://b/\u0000x"}}`:                                              `{"ui":{}}`,
		`{"ui":{"resourceUri":"ui://b/a b"}}`:                                                  `{"ui":{}}`,
		`{"ui":{"resourceUri":"ui://b/\u202ex"}}`:                                              `{"ui":{}}`,
		`{"ui":{"resourceUri":"https://b/x"}}`:                                                 `{"ui":{}}`,
		`{"ui":{"resourceUri":"javascript:alert(1)"}}`:                                         `{"ui":{}}`,
		`{"ui":{"resourceUri":{"x":1},"visibility":"app"}}`:                                    `{"ui":{}}`,
		`{"ui":{"resourceUri":"ui://` + strings.Repeat("x", 3000) + `"}}`:                      `{"ui":{}}`,
		`{"ui":{"resourceUri":"ui://b/x"},"\u0075i/resourceUri":"ui://b/y"}`:                   `{"ui":{"resourceUri":"ui://a/b/x"},"ui/resourceUri":"ui://a/b/y"}`,
		`{"ui":{"resourceUri":"ui://c"},"ui":{"resourceUri":"ui://b/z","visibility":["x",1]}}`: `{"ui":{"resourceUri":"ui://a/b/z"}}`,
		`{"openai/outputTemplate":"ui://b/x"}`:                                                 `{"openai/outputTemplate":"ui://a/b/x"}`,
	}
	for meta, shown := range metas {
		answers := oddAnswers()
		answers["tools/list"] = `{"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":` + meta + `}]}`
		answers["resources/list"] = `{"resources":[{"uri":"ui://b/\u0007","name":"bell"},{"uri":"ui://b/x","name":"x","mimeType":"text/evil"},{"uri":"ui://b/x","name":"twice"}]}`
		answers["tools/call"] = `{"content":[{"type":"resource_link","\u0075ri":"\u0075i://b/x"},{"type":"resource","resource":[7]},{"type":"resource","resource":{"uri":"ui://b/\u0007"}},{"type":"resource","resource":{"uri":9}}],"n":1e400}`
		answers["prompts/get"] = `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"ui://b/x","text":"p"}}},7]}`
		answers["resources/read"] = `{"contents":[{"uri":"ui://b/x","mimeType":"text/evil","text":"e"},{"uri":"ui://b/other","text":"o"},null]}`
		d := newDirect(t, false, upstream("a", newRawServer(t, answers).url, ""), upstream("b", newAppServer(t, "b"), ""))
		c := d.dialogueOf("2025-11-25", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`)
		if got := c.ask("tools/list", "{}"); !strings.Contains(got, `{"name":"a__t","inputSchema":{"type":"object"},"_meta":`+shown+`}`) {
			t.Errorf("%.80s is shown as %s", meta, got)
		}
		if got := c.ask("resources/list", "{}"); strings.Contains(got, "bell") || strings.Contains(got, "twice") || !strings.Contains(got, `{"uri":"ui://a/b/x","name":"x","mimeType":"text/evil"}`) {
			t.Errorf("resources %s", got)
		}
		want(t, "", c.ask("tools/call", `{"name":"a__t","arguments":{}}`),
			`{"content":[{"type":"resource_link","\u0075ri":"ui://a/b/x"},{"type":"resource","resource":[7]},{"type":"resource","resource":{"uri":"ui://b/\u0007"}},{"type":"resource","resource":{"uri":9}}],"n":1e400}`)
		want(t, "", c.ask("prompts/get", `{"name":"a__ask_me"}`), `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"ui://a/b/x","text":"p"}}},7]}`)
		want(t, "", c.ask("resources/read", `{"uri":"ui://a/b/x"}`), `{"contents":[{"uri":"ui://a/b/x","mimeType":"text/evil","text":"e"},{"uri":"ui://a/b/other","text":"o"},null]}`)
		if got := c.ask("resources/read", `{"uri":"ui://b/\u0007"}`); !strings.Contains(got, "Resource not found") {
			t.Errorf("with an invalid URI: %s", got)
		}
	}
}
