package mcpserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// company is a gateway with two upstreams, erp and crm, each with two tools, a resource, a prompt and instructions, and endpoints.
type company struct {
	t    *testing.T
	cfg  config.Config
	g    *gateway.Gateway
	site string
	// more adds a tool to an upstream.
	more map[string]func(name string)
}

// subsets are its endpoints, as the command serves them.
type subsets struct{ *company }

func (s subsets) Admits(ctx context.Context, name string) bool { return s.g.View.Admits(ctx, name) }

func (s subsets) Open(name string) mcpserver.Servers {
	verbs := s.g.Service().At(name)
	one, _ := s.g.Endpoints.Named(name)
	mode := func(string, string) config.Mode { return cmp.Or(one.Mode(), config.ModeCode) }
	return mcpserver.Servers{
		Direct: mcpserver.NewDirect(verbs, &mcpserver.DirectOptions{Search: verbs, Mode: mode, Upstreams: s.g.View.Visible, Logger: testutil.Logger(s.t)}),
		Tools:  mcpserver.New(verbs, &mcpserver.Options{Upstreams: s.g.View.Visible, Watch: s.g.Catalog.Watch}), Mode: mode,
	}
}

func newCompany(t *testing.T, change func(*config.Config)) *company {
	t.Helper()
	s := &company{t: t, cfg: config.Default(), more: map[string]func(string){}}
	s.cfg.Trust = config.TrustAllow
	s.cfg.HTTP.Tokens = config.Secrets{"ann": "a", "bob": "b"}
	s.cfg.Upstreams = []config.Upstream{s.upstream("erp", "read_invoice", "pay_invoice"), s.upstream("crm", "read_customer", "pay_bonus")}
	s.cfg.Endpoints = map[string]config.Endpoint{"finance": {Tools: []string{"erp.read_*"}}}
	change(&s.cfg)
	var err error
	if s.g, err = gateway.Open(&s.cfg, &gateway.Options{DataDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	s.g.Catalog.WaitConnected(t.Context())
	face := mcpserver.NewDirect(s.g.Service(), &mcpserver.DirectOptions{Search: s.g.Service(), Upstreams: s.g.View.Visible, Logger: testutil.Logger(t)})
	tools := mcpserver.New(s.g.Service(), &mcpserver.Options{Upstreams: s.g.View.Visible, Watch: s.g.Catalog.Watch})
	t.Cleanup(func() {
		face.Close()
		tools.Close()
		if err := s.g.Close(); err != nil {
			t.Error(err)
		}
	})
	s.site = serve(t, face, &siteOptions{Tools: tools, Settings: s.cfg.HTTP, Subsets: subsets{s}})
	return s
}

func (s *company) upstream(id string, names ...string) config.Upstream {
	server := mcp.NewServer(&mcp.Implementation{Name: id, Version: "1"}, &mcp.ServerOptions{Instructions: "Ask " + id + " politely."})
	add := func(name string) {
		server.AddTool(&mcp.Tool{Name: name, Description: "Do " + strings.ReplaceAll(name, "_", " ") + " now.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done by " + id}}}, nil
			})
	}
	for _, name := range names {
		add(name)
	}
	s.more[id] = add
	server.AddResource(&mcp.Resource{URI: id + "://all", Name: id}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: id + "://all", Text: "all of " + id}}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: id + "_prompt"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	web := tlstest.NewServer(s.t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	s.t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return upstream(id, web.URL, "about "+id)
}

// as is a client with a token at a path.
func (s *company) as(token, path, version string) *dialogue {
	s.t.Helper()
	c := &dialogue{t: s.t, url: s.site + path, version: version, token: token, name: "x"}
	if version < "2026" {
		c.ask("initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", "")
	}
	return c
}

// TestEndpointShowsItsTools: in each mode, for each kind of client, nothing of other tools is shown, found or called.
func TestEndpointShowsItsTools(t *testing.T) {
	t.Parallel()
	s := newCompany(t, func(c *config.Config) {
		c.Endpoints["sales"] = config.Endpoint{Tools: []string{"crm.*"}, Mode: config.ModeDirect, Principals: []string{"ann"}}
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, c := range []struct{ path, method, params, want string }{
			{"/mcp/finance", "tools/list", `{}`, "Upstreams: erp (about erp)."},
			{"/mcp/finance?mode=direct", "tools/list", `{}`, "erp__read_invoice"},
			{"/mcp/finance?mode=direct", "resources/list", `{}`, "erp://all"},
			{"/mcp/finance?mode=direct", "prompts/list", `{}`, "erp__erp_prompt"},
			{"/mcp/finance?mode=direct", "tools/call", `{"name":"erp__read_invoice","arguments":{}}`, "done by erp"},
			{"/mcp/finance?mode=direct", "tools/call", `{"name":"erp__pay_invoice","arguments":{}}`, "unknown tool"},
			{"/mcp/finance?mode=direct", "tools/call", `{"name":"crm.read_customer","arguments":{}}`, "unknown tool"},
			{"/mcp/finance?mode=direct", "resources/read", `{"uri":"sallyport://crm/crm://all"}`, "Resource not found"},
			{"/mcp/finance?mode=search", "tools/list", `{}`, "Upstreams: erp (about erp)."},
			{"/mcp/finance?mode=search", "tools/call", `{"name":"search_tools","arguments":{"query":"pay a bonus or an invoice, customer"}}`, ""},
			{"/mcp/finance?mode=search", "tools/call", `{"name":"search_tools","arguments":{"query":"read invoice"}}`, "erp__read_invoice"},
			{"/mcp/finance", "tools/call", `{"name":"search_tools","arguments":{"query":""}}`, "erp (1 tool)"},
			{"/mcp/finance", "tools/call", `{"name":"search_tools","arguments":{"query":"pay","upstream":"crn"}}`, "there is no upstream crn"},
			{"/mcp/finance", "tools/call", `{"name":"search_tools","arguments":{"query":"custmer bonuss"}}`, ""},
			{"/mcp/sales", "tools/list", `{}`, "crm__pay_bonus"},
		} {
			got := s.as("a", c.path, version).ask(c.method, c.params)
			hidden := []string{"crm__", "crm.", "crm (", "about crm", "customer now", "pay_", "bonus now", "done by crm", "all of crm"}
			if c.path == "/mcp/sales" {
				hidden = []string{"erp", "invoice"}
			}
			for _, word := range hidden {
				if strings.Contains(got, word) && !strings.Contains(c.params, word) {
					t.Errorf("%s %s %s %s shows %q:\n%s", version, c.path, c.method, c.params, word, got)
				}
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s %s %s %s: without %q:\n%s", version, c.path, c.method, c.params, c.want, got)
			}
		}
		if got := s.as("a", "/mcp?mode=direct", version).ask("tools/list", `{}`); strings.Count(got, "__") != 4 {
			t.Errorf("%s: /mcp has not all tools: %s", version, got)
		}
	}
	c := &dialogue{t: t, url: s.site + "/mcp/finance?mode=direct", version: "2025-11-25", token: "a"}
	const hello = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`
	if got := c.ask("initialize", hello); strings.Contains(got, "Ask crm") || !strings.Contains(got, "Ask erp") {
		t.Errorf("instructions: %s", got)
	}
	if got := c.ask("initialize", hello); !strings.Contains(got, "initialize") {
		t.Errorf("a second initialize: %s", got)
	}
}

// TestEndpointIsBound: who may not use an endpoint, and how its URL may not be written, gets the response for a name that no
// endpoint has; a session of one URL is none of another.
func TestEndpointIsBound(t *testing.T) {
	t.Parallel()
	s := newCompany(t, func(c *config.Config) {
		c.Endpoints["sales"] = config.Endpoint{Tools: []string{"crm.*"}, Principals: []string{"ann"}}
	})
	try := func(token, path, session string) (int, string) {
		c := &dialogue{t: t, url: s.site + path, version: "2025-11-25", token: token, session: session}
		if session != "" {
			return c.post(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, "tools/list", "")
		}
		return c.post(initializeBody, "", "")
	}
	status, unknown := try("b", "/mcp/nobody", "")
	if status != 404 {
		t.Errorf("an unknown endpoint: %d %s", status, unknown)
	}
	for token, paths := range map[string][]string{
		"b": {"/mcp/sales", "/mcp/Sales", "/mcp/%73ales"},
		"a": {"/mcp/%73ales", "/mcp/SALES", "/mcp/sales%2f", "/mcp/sal%65s"},
	} {
		for _, path := range paths {
			if status, body := try(token, path, ""); status != 404 || body != unknown {
				t.Errorf("%s at %s: %d %q, want %q", token, path, status, body, unknown)
			}
		}
	}
	if status, body := try("a", "/mcp/sales/", ""); status != 404 {
		t.Errorf("with a slash at the end: %d %s", status, body)
	}
	for _, path := range []string{"/mcp/sales", "/mcp/nobody"} {
		if status, body := try("wrong", path, ""); status != 401 {
			t.Errorf("%s with a wrong token: %d %s", path, status, body)
		}
	}
	sessions := map[string]string{}
	for _, path := range []string{"/mcp", "/mcp/direct", "/mcp/finance", "/mcp/sales", "/mcp/finance?mode=direct"} {
		sessions[path] = s.as("a", path, "2025-11-25").session
	}
	for from, session := range sessions {
		for to := range sessions {
			status, body := try("a", to, session)
			if same := from == to || from == "/mcp/finance?mode=direct" && to == "/mcp/finance" || from == "/mcp/direct" && to == "/mcp"; (status == 200) != same || !same && status != 404 {
				t.Errorf("a session of %s at %s: %d %s", from, to, status, body)
			}
		}
	}
	// A modern request belongs to no session: whatever it names, it sees the tools of its URL.
	c := s.as("a", "/mcp/finance?mode=direct", "2026-07-28")
	c.session = sessions["/mcp/direct"]
	if got := c.tools(); got != "erp__read_invoice" {
		t.Errorf("a modern request with a session of all: %s", got)
	}
	if resp, body := request(t, http.MethodDelete, s.site+"/mcp", "", "Authorization: Bearer a", "Mcp-Session-Id: "+sessions["/mcp/finance"]); resp.StatusCode != 404 {
		t.Errorf("a session is ended at another URL: %d %s", resp.StatusCode, body)
	}
	if status, body := try("a", "/mcp/finance", sessions["/mcp/finance"]); status != 200 {
		t.Errorf("after that: %d %s", status, body)
	}
}

// TestEndpointsChange: changed settings take effect for open sessions, and only sessions with other lists are notified.
func TestEndpointsChange(t *testing.T) {
	t.Parallel()
	s := newCompany(t, func(c *config.Config) {
		c.Endpoints["sales"] = config.Endpoint{Tools: []string{"crm.*"}}
	})
	finance := connectTold(t, s.site+"/mcp/finance?mode=direct", "a", "2025-11-25")
	sales, code := connectTold(t, s.site+"/mcp/sales?mode=direct", "a", "2025-11-25"), connectTold(t, s.site+"/mcp/sales", "a", "2025-11-25")
	for _, c := range []*toldClient{finance, sales, code} {
		c.list()
	}
	s.more["erp"]("read_ledger")
	finance.awaitChange("a tool of the endpoint is new", "erp__read_ledger", true)
	s.more["erp"]("void_ledger")
	next := s.cfg
	next.Endpoints = map[string]config.Endpoint{"finance": {Tools: []string{"erp.*"}}, "sales": s.cfg.Endpoints["sales"], "late": {Tools: []string{"crm.read_*"}}}
	if err := s.g.Reload(&next); err != nil {
		t.Fatal(err)
	}
	finance.awaitChange("the endpoint has more tools", "erp__pay_invoice", true)
	if got := s.as("b", "/mcp/late?mode=direct", "2026-07-28").tools(); got != "crm__read_customer" {
		t.Errorf("an endpoint that was added: %s", got)
	}
	gone := next
	gone.Endpoints = map[string]config.Endpoint{"sales": s.cfg.Endpoints["sales"]}
	if err := s.g.Reload(&gone); err != nil {
		t.Fatal(err)
	}
	if status, body := (&dialogue{t: t, url: s.site + "/mcp/finance", token: "a"}).post(initializeBody, "", ""); status != 404 {
		t.Errorf("an endpoint that was removed: %d %s", status, body)
	}
	if result, err := s.g.Call(tool.WithEndpoint(t.Context(), "finance"), tool.Call{Tool: tool.ID{Upstream: "erp", Name: "read_invoice"}, Args: json.RawMessage(`{}`)}); err == nil {
		t.Errorf("a call at an endpoint that was removed: %v", result)
	}
	if n := len(sales.told) + len(code.told); n != 0 {
		t.Errorf("%d notifications without a change", n)
	}
}

// TestPolicyHides: tools that policy denies to a principal are in no list of it, nor is an upstream of which none is left.
func TestPolicyHides(t *testing.T) {
	t.Parallel()
	s := newCompany(t, func(c *config.Config) {
		c.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{
			{Tools: []string{"crm.*"}, When: `principal == "token:bob"`, Then: policy.Deny}, {Tools: []string{"erp.pay_*"}, When: `principal == "token:bob"`, Then: policy.Deny},
		}}
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, path := range []string{"/mcp", "/mcp?mode=search", "/mcp/direct"} {
			ann, bob := s.as("a", path, version).ask("tools/list", `{}`), s.as("b", path, version).ask("tools/list", `{}`)
			if !strings.Contains(ann, "crm") || strings.Contains(bob, "crm") || !strings.Contains(bob, "erp") || strings.Contains(bob, "pay_invoice") {
				t.Errorf("%s %s: ann %s\nbob %s", version, path, ann, bob)
			}
		}
		for query, hidden := range map[string]string{"": "crm", "read a customer": "crm.read_customer:", "pay an invoice": "pay_invoice("} {
			if got := s.as("b", "/mcp", version).ask("tools/call", fmt.Sprintf(`{"name":"search_tools","arguments":{"query":%q}}`, query)); strings.Contains(got, hidden) {
				t.Errorf("%s: %q shows bob %q: %s", version, query, hidden, got)
			}
		}
	}
	for token, has := range map[string]bool{"a": true, "b": false} {
		c := &dialogue{t: t, url: s.site + "/mcp/direct", version: "2025-11-25", token: token}
		if got := c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`); strings.Contains(got, "Ask crm") != has || !strings.Contains(got, "Ask erp") {
			t.Errorf("instructions for %s: %s", token, got)
		}
	}
	// A rule that takes the last tool of an upstream away causes notifications where it changes the list.
	ann, bob := connectTold(t, s.site+"/mcp", "a", "2025-11-25"), connectTold(t, s.site+"/mcp", "b", "2025-11-25")
	ann.list()
	bob.list()
	next := s.cfg
	next.Policy.Rules = append(next.Policy.Rules[:2:2], policy.Rule{Tools: []string{"crm.*"}, When: `principal == "token:ann"`, Then: policy.Deny})
	if err := s.g.Reload(&next); err != nil {
		t.Fatal(err)
	}
	ann.awaitChange("a rule hides an upstream", "crm", false)
	if n := len(bob.told); n != 0 {
		t.Errorf("%d notifications without a change", n)
	}
}

// run runs a program and returns its text.
func (c *dialogue) run(arguments map[string]any) string {
	c.t.Helper()
	data, err := json.Marshal(map[string]any{"name": "execute_code", "arguments": arguments})
	if err != nil {
		c.t.Fatal(err)
	}
	var result struct{ Content []struct{ Text string } }
	raw := c.ask("tools/call", string(data))
	if err := json.Unmarshal([]byte(raw), &result); err != nil || len(result.Content) == 0 {
		c.t.Fatalf("%v: %s", err, raw)
	}
	return result.Content[0].Text
}

var executionID = regexp.MustCompile(`\be-[a-z2-7]{12}\b`)

// TestProgramsAtEndpoint: a program calls, imports and finds the tools of its endpoint only, in whatever way it tries; so do
// those that resume it, and its session is none of another URL.
func TestProgramsAtEndpoint(t *testing.T) {
	t.Parallel()
	runsc := testutil.Runsc(t)
	s := newCompany(t, func(c *config.Config) { c.Sandbox.Runsc, c.Sandbox.Pool.Max = runsc, 0 })
	finance, all := s.as("a", "/mcp/finance", "2026-07-28"), s.as("a", "/mcp", "2026-07-28")
	const attack = `
from sallyport import ToolError, call, search_tools, describe
def attempt(what, f):
    try:
        print(what, f())
    except BaseException as e:
        print(what, type(e).__name__, e)
def wrapper():
    from servers.crm import read_customer
    return read_customer()
def resource():
    from servers.crm import resources
    return resources.read("crm://all")
def pay():
    from servers.erp import pay_invoice
    return pay_invoice()
attempt("own:", lambda: __import__("servers.erp", fromlist=["read_invoice"]).read_invoice())
attempt("wrapper:", wrapper)
attempt("pay:", pay)
attempt("resource:", resource)
for name in ("crm.read_customer", "crm.resources/read", "crm.tools/call", "erp.pay_invoice", "crm__read_customer", "none.at_all"):
    attempt(name + ":", lambda: call(name, {"uri": "crm://all"} if "/" in name else {}))
attempt("search:", lambda: search_tools("read a customer, pay a bonus"))
attempt("describe:", lambda: describe("crm.read_customer"))
`
	got := finance.run(map[string]any{"code": attack, "session": "s"})
	for _, want := range []string{
		"own: done by erp", "wrapper: ToolError there is no upstream crm", "pay: ToolError there is no tool erp.pay_invoice", "resource: ToolError there is no upstream crm",
		"crm.read_customer: ToolError there is no upstream crm", "crm.resources/read: ToolError there is no upstream crm", "erp.pay_invoice: ToolError there is no tool erp.pay_invoice", "none.at_all: ToolError there is no upstream none",
		"describe: ToolError there is no upstream crm",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	for _, shown := range []string{"done by crm", "all of crm", "customer now", "bonus now"} {
		if strings.Contains(got, shown) {
			t.Errorf("it shows %q:\n%s", shown, got)
		}
	}
	got = finance.run(map[string]any{"language": "typescript", "code": "import * as all from 'servers';\nimport { read_invoice } from 'servers/erp';\nconsole.log(Object.keys(all).join(), await read_invoice({}));"})
	if !strings.Contains(got, "erp done by erp") {
		t.Errorf("TypeScript: %s", got)
	}
	for _, code := range []string{"import { read_customer } from 'servers/crm';\nconsole.log(await read_customer({}))", "import { pay_invoice } from 'servers/erp';\nconsole.log(await pay_invoice({}))"} {
		if got := finance.run(map[string]any{"language": "typescript", "code": code}); !strings.Contains(got, "ImportError") && !strings.Contains(got, "SyntaxError") || strings.Contains(got, "done by") {
			t.Errorf("TypeScript imports what does not exist there: %s", got)
		}
	}
	// The session of the same name at another URL has other variables.
	if got := all.run(map[string]any{"code": "print('attempt' in globals())", "session": "s"}); !strings.Contains(got, "False") {
		t.Errorf("a session of another URL: %s", got)
	}
	// An execution of /mcp cannot be resumed at the endpoint, by its id or as the last one; one of the endpoint stays confined.
	failed := all.run(map[string]any{"code": "from servers.crm import read_customer\nprint(read_customer())\nraise ValueError('no')"})
	whole := executionID.FindString(failed)
	if !strings.Contains(failed, "done by crm") || whole == "" {
		t.Fatal(failed)
	}
	for _, id := range []string{whole, "last"} {
		if got := finance.run(map[string]any{"code": "", "resume": id}); !strings.Contains(got, "no ") || strings.Contains(got, "done by crm") {
			t.Errorf("resume %s of /mcp at the endpoint: %s", id, got)
		}
	}
	part := executionID.FindString(finance.run(map[string]any{"code": "from servers.erp import read_invoice\nprint(read_invoice())\nraise ValueError('no')"}))
	got = all.run(map[string]any{"resume": part, "code": "from servers.erp import read_invoice\nprint(read_invoice())\nfrom servers.crm import read_customer\nprint(read_customer())"})
	if part == "" || !strings.Contains(got, "done by erp") || !strings.Contains(got, "there is no upstream crm") {
		t.Errorf("resume %s of the endpoint at /mcp: %s", part, got)
	}
}
