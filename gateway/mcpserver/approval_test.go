package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/mcpserver/statekey"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// shop is a real upstream that sells when it is let, and asks its client for a name and a model for a poem.
func newShop(t *testing.T) (url string, sold *atomic.Int32) {
	t.Helper()
	sold = &atomic.Int32{}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	add := func(name string, readOnly bool, do func(ctx context.Context, req *mcp.CallToolRequest) (string, error)) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				said, err := do(ctx, req)
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
			})
	}
	add("sell", false, func(context.Context, *mcp.CallToolRequest) (string, error) {
		return fmt.Sprint("sold ", sold.Add(1)), nil
	})
	add("greet", true, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sallyport: allow this call?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Action, " ", answer.Content["name"]), nil
	})
	add("poem", true, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		answer, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{SystemPrompt: "Rhyme.", MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "roses"}}}}) //nolint:staticcheck // deprecated, and still to be passed on
		if err != nil {
			return "", err
		}
		return answer.Content.(*mcp.TextContent).Text, nil
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return web.URL, sold
}

// openShop returns a gateway that asks about what is sold.
func openShop(t *testing.T, opts *gateway.Options) (*gateway.Gateway, *atomic.Int32) {
	t.Helper()
	url, sold := newShop(t)
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstream("shop", url, ""), upstream("asker", asker(t, true), "")}
	cfg.Policy = policy.Settings{On: true, Default: policy.Ask}
	cfg.Approval.Wait = 200 * time.Millisecond
	opts.PeerRequests, opts.Snapshots = true, testutil.Snapshots()
	g, err := gateway.Open(withRunsc(t, &cfg), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, sold
}

// clientUser is a client's user.
type clientUser struct {
	mu   sync.Mutex
	seen []string
}

func (h *clientUser) note(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, s)
}

func (h *clientUser) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.note(req.Params.Message)
			if strings.HasPrefix(req.Params.Message, "Sallyport: ") {
				decision := "once"
				if strings.Contains(req.Params.Message, "the shop") {
					decision = "deny"
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // as above
			h.note(req.Params.SystemPrompt)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "red"}}, nil //nolint:staticcheck // as above
		},
	})
}

const shopping = `from servers.shop import sell, greet, poem
from sallyport import ToolError
print(sell(what="a book"))
try: sell(what="the shop")
except ToolError as e: print(e)
print(greet(), poem())`

// TestProgramsAskInBothEras over pipes and HTTP: the gateway asks about a call, and an upstream during one.
func TestProgramsAskInBothEras(t *testing.T) {
	g, sold := openShop(t, &gateway.Options{DataDir: t.TempDir()})
	tools := mcpserver.New(g.Service(), nil)
	direct := newDirectOn(t, g.Service(), false)
	url := serve(t, direct, &siteOptions{Tools: tools}) + "/mcp"
	t.Cleanup(tools.Close)
	for i, c := range []struct {
		version string
		http    bool
	}{{"2025-06-18", true}, {"2025-11-25", false}, {"2026-07-28", false}, {"2026-07-28", true}} {
		name, h := fmt.Sprint(c), &clientUser{}
		var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url}
		if !c.http {
			near, far := mcp.NewInMemoryTransports()
			if _, err := tools.Connect(t.Context(), far, nil); err != nil {
				t.Fatal(err)
			}
			transport = near
		}
		session, err := h.client().Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
		if err != nil {
			t.Fatal(err)
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": shopping}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := fmt.Sprintf("sold %d\nshop.sell was not approved by the user\naccept Ada red", i+1)
		if got := result.Content[0].(*mcp.TextContent).Text; got != want || result.IsError {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		h.mu.Lock()
		if len(h.seen) != 4 || !strings.HasPrefix(h.seen[0], "Sallyport: allow this call of shop.sell?\n{\"what\":\"a book\"}") ||
			h.seen[2] != "shop: Sallyport: allow this call?" || h.seen[3] != "Asked by the MCP server shop, behind sallyport. Rhyme." {
			t.Errorf("%s: asked %q", name, h.seen)
		}
		h.mu.Unlock()
		_ = session.Close()
	}
	if sold.Load() != 4 {
		t.Errorf("%d were sold", sold.Load())
	}
	t.Run("without anybody", func(t *testing.T) { cannotAsk(t, tools) })
	t.Run("direct", func(t *testing.T) { directAsks(t, url+"/direct") })
}

// cannotAsk: a client that answers nothing gets what to approve, and how to go on.
func cannotAsk(t *testing.T, tools *mcpserver.Tools) {
	t.Helper()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		near, far := mcp.NewInMemoryTransports()
		if _, err := tools.Connect(t.Context(), far, nil); err != nil {
			t.Fatal(err)
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		got, failed := call(t, client, "execute_code", map[string]any{"code": "from servers.shop import sell\nsell()"})
		if !failed || !strings.Contains(got, "sallyport approvals approve a-") || !strings.Contains(got, `resume="e-`) {
			t.Errorf("%s: %s", version, got)
		}
		got, failed = call(t, client, "execute_code", map[string]any{"code": "from servers.shop import greet\ngreet()"})
		if !failed || !strings.Contains(got, "a program cannot give it") {
			t.Errorf("%s: %s", version, got)
		}
		_ = client.Close()
	}
}

// directAsks: in direct mode the gateway's question has no upstream's name, and an upstream's has.
func directAsks(t *testing.T, url string) {
	t.Helper()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		h := &clientUser{}
		session, err := h.client().Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ tool, what, want string }{{"sell", "a pen", "sold "}, {"sell", "the shop", "not approved by the user"}, {"greet", "", "accept Ada"}} {
			if got, _ := call(t, session, "shop__"+c.tool, map[string]any{"what": c.what}); !strings.Contains(got, c.want) {
				t.Errorf("%s: %+v: %s", version, c, got)
			}
		}
		// One approval is for one call, however many rounds that takes with a modern upstream.
		if got, _ := call(t, session, "asker__greet", map[string]any{}); !strings.Contains(got, "accept Ada") || len(h.seen) != 5 {
			t.Errorf("%s: asked %q: %s", version, h.seen[3:], got)
		}
		if got, _ := call(t, session, "asker__greet", map[string]any{}); !strings.Contains(got, "accept Ada") || len(h.seen) != 7 {
			t.Errorf("%s: asked %q: %s", version, h.seen[5:], got)
		}
		if len(h.seen) != 7 || !strings.HasPrefix(h.seen[0], "Sallyport: allow this call of shop.sell?") || h.seen[2] != "shop: Sallyport: allow this call?" {
			t.Errorf("%s: asked %q", version, h.seen)
		}
		_ = session.Close()
	}
}

// inputResult is a result that wants answers.
type inputResult struct {
	Type     string `json:"resultType"`
	State    string `json:"requestState"`
	Requests map[string]struct {
		Method string
		Params struct{ Message string }
	} `json:"inputRequests"`
}

// modernDialogue calls execute_code in bytes, as a client of 2026-07-28 that can be asked.
type modernDialogue struct {
	*dialogue
	code string
}

func (d *modernDialogue) run(more string) (string, inputResult) {
	d.t.Helper()
	d.id++
	arguments, err := json.Marshal(map[string]any{"code": d.code})
	if err != nil {
		d.t.Fatal(err)
	}
	_, body := d.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute_code","arguments":%s%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, d.id, arguments, more), "tools/call", "execute_code")
	var a inputResult
	if _, data, ok := strings.Cut(body, `"result":`); ok {
		_ = json.NewDecoder(bytes.NewReader([]byte(data))).Decode(&a)
	}
	return body, a
}

func answers(state, decision string) string {
	return `,"requestState":"` + state + `","inputResponses":{"q1":{"action":"accept","content":{"decision":"` + decision + `"}}}`
}

// TestRequestStates: a state is good for one answer, to the same request, of the same principal and session, while its program waits.
func TestRequestStates(t *testing.T) {
	data := t.TempDir()
	g, sold := openShop(t, &gateway.Options{DataDir: data})
	key, err := statekey.Of(data)
	if err != nil || len(key) != 32 {
		t.Fatal(err)
	}
	tools := mcpserver.New(g.Service(), &mcpserver.Options{StateKey: key})
	tokens := config.Secrets{"ci": "s3cret-s3cret-s3cret", "eve": "0ther-0ther-0ther"}
	url := serve(t, newDirectOn(t, g.Service(), false), &siteOptions{Tools: tools, Settings: config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: tokens}}) + "/mcp"
	t.Cleanup(tools.Close)
	d := &modernDialogue{&dialogue{t: t, url: url, version: "2026-07-28", token: "s3cret-s3cret-s3cret"}, "from servers.shop import sell\nsell(what='a book')"}
	body, first := d.run("")
	if first.Type != "input_required" || first.Requests["q1"].Method != "elicitation/create" || !strings.Contains(first.Requests["q1"].Params.Message, "a book") {
		t.Fatal(body)
	}
	refused := func(what, more string) {
		t.Helper()
		if got, _ := d.run(more); !strings.Contains(got, "invalid requestState") || !strings.Contains(got, "-32602") {
			t.Errorf("%s: %s", what, got)
		}
	}
	state := first.State
	head, mac, _ := strings.Cut(strings.TrimPrefix(state, "sallyport."), ".")
	for what, forged := range map[string]string{
		"another signature": "sallyport." + head + "." + strings.Repeat("A", len(mac)), "a longer one": state + "A", "no signature": "sallyport." + head, "of before it was signed": "sallyport.ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"another content": "sallyport." + head[:len(head)-4] + "AAAA." + mac, "of nobody": "s", "long": "sallyport." + strings.Repeat("x", 1<<20>>2),
	} {
		refused(what, answers(forged, "session"))
	}
	d.code = "from servers.shop import sell\nsell(what='the whole street')"
	refused("with another program", answers(state, "once"))
	d.code = "from servers.shop import sell\nsell(what='a book')"
	d.token = "0ther-0ther-0ther"
	refused("another principal's", answers(state, "once"))
	d.token, d.session = "s3cret-s3cret-s3cret", "another"
	refused("another session's", answers(state, "once"))
	d.session = ""
	if sold.Load() != 0 {
		t.Error("it was sold without approval")
	}
	if got, _ := d.run(answers(state, "once")); !strings.Contains(got, "sold 1") {
		t.Errorf("the answer: %s", got)
	}
	for _, decision := range []string{"once", "session"} {
		if got, _ := d.run(answers(state, decision)); !strings.Contains(got, `resume=\"e-`) || strings.Contains(got, "sold") {
			t.Errorf("a state that is used up: %s", got)
		}
	}
	_, second := d.run("")
	if again, third := d.run(`,"requestState":"` + second.State + `"`); third.Type != "input_required" || third.State == second.State {
		t.Errorf("without an answer: %s", again)
	}
	// A restart: what waited has ended, and its state says how to go on.
	_, last := d.run("")
	tools.Close()
	restarted := mcpserver.New(g.Service(), &mcpserver.Options{StateKey: key})
	t.Cleanup(restarted.Close)
	d.url = serve(t, newDirectOn(t, g.Service(), false), &siteOptions{Tools: restarted, Settings: config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: tokens}}) + "/mcp"
	if got, _ := d.run(answers(last.State, "once")); !strings.Contains(got, `resume=\"e-`) {
		t.Errorf("after a restart: %s", got)
	}
	if again, err := statekey.Of(data); err != nil || !bytes.Equal(again, key) {
		t.Errorf("another key: %v", err)
	}
	if sold.Load() != 1 {
		t.Errorf("%d were sold", sold.Load())
	}
}
