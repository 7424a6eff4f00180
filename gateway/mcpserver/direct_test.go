package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/httpserver"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/mcpserver/session"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// rawServer is an upstream that answers with bytes of its own.
type rawServer struct {
	url     string
	answers map[string]string // result by method

	mu      sync.Mutex
	got     map[string]json.RawMessage // the last params by method
	headers http.Header
}

func newRawServer(t *testing.T, answers map[string]string) *rawServer {
	t.Helper()
	s := &rawServer{answers: answers, got: map[string]json.RawMessage{}}
	web := tlstest.NewServer(t, s)
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	s.got[req.Method], s.headers = req.Params, r.Header
	s.mu.Unlock()
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if result, ok := s.answers[req.Method]; ok {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32077,"message":"no such method","data":{"big":9007199254740993}}}`, req.ID)
}

func (s *rawServer) last(method string) (json.RawMessage, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[method], s.headers
}

const (
	oddTool = `{"name":"odd.tool","inputSchema":{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{}}},` +
		`"execution":{"taskSupport":"optional"},"annotations":{"readOnlyHint":true},"_meta":{"n":9007199254740995},"new":["<&>",1.0,1e400]}`
	oddResult = `{"content":[{"type":"hologram","depth":9007199254740993,"x":"<b>&"},{"type":"text","text":"hi","_meta":{"k":1.50}}],` +
		`"structuredContent":{"id":9007199254740993},"_meta":{"trace":12345678901234567890},"novel":null}`
	oddRead   = `{"contents":[{"uri":"odd://1","text":"t","size":9007199254740993}],"_meta":{"v":1.0}}`
	oddPrompt = `{"messages":[{"role":"user","content":{"type":"hologram","n":9007199254740993}}],"x":1.0}`
)

func oddAnswers() map[string]string {
	return map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{}},` +
			`"serverInfo":{"name":"odd","version":"1"},"instructions":"Be\u001b[31m odd."}`,
		"tools/list":               `{"tools":[` + oddTool + `]}`,
		"tools/call":               oddResult,
		"resources/list":           `{"resources":[{"uri":"odd://1","name":"one","size":9007199254740993}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"odd://{id}","name":"any"}]}`,
		"resources/read":           oddRead,
		"prompts/list":             `{"prompts":[{"name":"ask me","arguments":[{"name":"q"}],"n":1.0}]}`,
		"prompts/get":              oddPrompt,
		"completion/complete":      `{"completion":{"values":["x"],"total":9007199254740993}}`,
	}
}

// direct is direct mode on a real gateway, served over HTTP.
type direct struct {
	t    *testing.T
	face *mcpserver.Direct
	url  string
}

func newDirect(t *testing.T, wireNames bool, ups ...config.Upstream) *direct {
	t.Helper()
	return newDirectPolicy(t, wireNames, policy.Settings{}, ups...)
}

// newDirectPolicy is newDirect with rules.
func newDirectPolicy(t *testing.T, wireNames bool, rules policy.Settings, ups ...config.Upstream) *direct {
	t.Helper()
	cfg := config.Default()
	cfg.Upstreams, cfg.Trust, cfg.Policy = ups, config.TrustAllow, rules
	notices := &mcpserver.Notices{}
	g, err := gateway.Open(&cfg, &gateway.Options{PeerRequests: true, OnNotice: notices.Notice})
	if err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context()) // a handshake waits for none
	d := &direct{t: t, face: mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{WireNames: wireNames, Notices: notices, Logger: testutil.Logger(t)})}
	t.Cleanup(func() {
		d.face.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	d.url = serve(t, d.face, &siteOptions{Settings: cfg.HTTP}) + "/mcp"
	return d
}

// siteOptions are for serve.
type siteOptions struct {
	Tools    *mcpserver.Tools
	Mode     mcpserver.ModeOf
	Settings config.HTTP
	Subsets  mcpserver.Subsets
	Sessions *session.Store
}

// newFront is the front door of a listener, with MCP behind it.
func newFront(listener net.Listener, face *mcpserver.Direct, opts *siteOptions) *httpserver.Server {
	endpoints := mcpserver.NewEndpoints(face, &mcpserver.EndpointOptions{Tools: opts.Tools, Mode: opts.Mode, Subsets: opts.Subsets, Sessions: opts.Sessions, Body: opts.Settings.Body})
	return httpserver.New(listener, &httpserver.Options{MCP: endpoints, Settings: opts.Settings})
}

// serve serves a site until the test ends, and returns its origin.
func serve(t *testing.T, face *mcpserver.Direct, opts *siteOptions) string {
	t.Helper()
	if opts.Settings.Body == 0 {
		opts.Settings.Body, opts.Settings.Grace = config.MiB, time.Second
	}
	listener, err := httpserver.Listen(t.Context(), "127.0.0.1:0", opts.Settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- newFront(listener, face, opts).Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSuffix(httpserver.Address(listener), "/mcp")
}

// dialogue is a client that speaks in bytes.
type dialogue struct {
	t       *testing.T
	url     string
	version string
	session string
	token   string
	id      int
	// name and release are what a modern client reports of itself.
	name, release string
	// can has the client's capabilities; "" is none.
	can string
}

func (d *direct) dialogue(version string) *dialogue { return d.dialogueOf(version, "{}") }

// dialogueOf is dialogue of a client with capabilities.
func (d *direct) dialogueOf(version, can string) *dialogue {
	c := &dialogue{t: d.t, url: d.url, version: version, can: can}
	if version < "2026" {
		c.ask("initialize", `{"protocolVersion":"`+version+`","capabilities":`+can+`,"clientInfo":{"name":"raw","version":"1"}}`)
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", "")
	}
	return c
}

// ask returns the result of a request, or its error as it came.
func (c *dialogue) ask(method, params string) string {
	c.t.Helper()
	c.id++
	if c.version >= "2026" {
		params = strings.Replace(params, "{", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+c.version+`","io.modelcontextprotocol/clientCapabilities":`+c.capabilities()+c.info()+`},`, 1)
		params = strings.Replace(params, ",}", "}", 1)
	}
	var name struct{ Name, URI, TaskID string }
	_ = json.Unmarshal([]byte(params), &name)
	_, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params), method, name.Name+name.URI+name.TaskID)
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "data:")); strings.HasPrefix(line, "{") {
			var answer struct{ Result, Error json.RawMessage }
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				c.t.Fatal(err)
			}
			if answer.Error != nil {
				return string(answer.Error)
			}
			if answer.Result != nil {
				return string(answer.Result)
			}
		}
	}
	c.t.Fatalf("%s: %s", method, body)
	return ""
}

// capabilities returns those of the client.
func (c *dialogue) capabilities() string {
	if c.can == "" {
		return "{}"
	}
	return c.can
}

// info returns what a modern client reports of itself, as a further member.
func (c *dialogue) info() string {
	if c.name == "" {
		return ""
	}
	return fmt.Sprintf(`,"io.modelcontextprotocol/clientInfo":{"name":%q,"version":%q}`, c.name, c.release)
}

func (c *dialogue) post(body, method, name string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version >= "2026" || c.session != "" {
		req.Header.Set("Mcp-Protocol-Version", c.version)
	}
	if c.version >= "2026" {
		req.Header.Set("Mcp-Method", method)
		req.Header.Set("Mcp-Name", name)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return resp.StatusCode, string(all)
}

// TestNothingIsLost: what an upstream sends arrives byte for byte but for the
// name, and what a client sends arrives there.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	odd := newRawServer(t, oddAnswers())
	d := newDirect(t, false, upstream("odd", odd.url, ""))
	for _, version := range []string{"2025-11-25", "2025-06-18", "2026-07-28"} {
		c := d.dialogue(version)
		list := c.ask("tools/list", `{}`)
		if want := strings.NewReplacer("odd.tool", "odd__odd_tool", `"optional"`, `"forbidden"`).Replace(oddTool); !strings.Contains(list, want) {
			t.Errorf("%s: tools\n%s\n without\n%s", version, list, want)
		}
		const args = `{"z":9007199254740993,"a":{"<&>":1.0}}`
		want(t, version, c.ask("tools/call", `{"name":"odd__odd_tool","arguments":`+args+`}`), oddResult)
		var got struct {
			Name      string
			Arguments json.RawMessage
		}
		params, _ := odd.last("tools/call")
		if err := json.Unmarshal(params, &got); err != nil || got.Name != "odd.tool" || string(got.Arguments) != args {
			t.Errorf("%s: the upstream got %s", version, params)
		}
		want(t, version, c.ask("resources/read", `{"uri":"odd://1"}`), oddRead)
		want(t, version, c.ask("prompts/get", `{"name":"odd__ask_me","arguments":{"q":"1"}}`), oddPrompt)
		want(t, version, c.ask("completion/complete", `{"ref":{"type":"ref/prompt","name":"odd__ask_me"},"argument":{"name":"q","value":""}}`),
			`{"completion":{"values":["x"],"total":9007199254740993}}`)
		if params, _ := odd.last("completion/complete"); !strings.Contains(string(params), `"name":"ask me"`) {
			t.Errorf("%s: completion of %s", version, params)
		}
		if got := c.ask("resources/list", `{}`); !strings.Contains(got, `{"uri":"odd://1","name":"one","size":9007199254740993}`) {
			t.Errorf("%s: resources %s", version, got)
		}
	}
}

// want compares a result; one for a modern client begins as it was sent, and has more at its end.
func want(t *testing.T, version, got, want string) {
	t.Helper()
	if version >= "2026" {
		if rest, ok := strings.CutPrefix(got, strings.TrimSuffix(want, "}")); ok && strings.Contains(rest, `"resultType":"complete"`) {
			return
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", version, diff)
	}
}

// TestErrorsPass as the upstream sent them, and those of ours say what would be right.
func TestErrorsPass(t *testing.T) {
	t.Parallel()
	answers := oddAnswers()
	delete(answers, "resources/read")
	delete(answers, "tools/call")
	d := newDirect(t, false, upstream("odd", newRawServer(t, answers).url, ""))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := d.dialogue(version)
		for _, test := range []struct{ method, params, want string }{
			{"resources/read", `{"uri":"odd://1"}`, `{"code":-32077,"message":"no such method","data":{"big":9007199254740993}}`},
			{"tools/call", `{"name":"odd__odd_tool","arguments":{"a":1}}`, `"data":{"big":9007199254740993}`},
			{"tools/call", `{"name":"nope"}`, `"code":-32602,"message":"unknown tool \"nope\""`},
			{"tools/call", `{"name":"odd__od_tool"}`, `unknown tool \"odd__od_tool\"; did you mean odd__odd_tool?"`},
			{"prompts/get", `{"name":"odd__ask"}`, `did you mean odd__ask_me?`},
			{"tools/call", `{"name":"odd__odd_tool","arguments":{"zz":1}}`, `unknown parameter`},
			{"prompts/get", `{"name":"nope"}`, `"code":-32602`},
			{"resources/subscribe", `{"uri":"odd://1"}`, `-32601`},
			{"tools/list", `{"cursor":"!"}`, `-32602`},
		} {
			if got := c.ask(test.method, test.params); !strings.Contains(got, test.want) {
				t.Errorf("%s %s %s: %s", version, test.method, test.params, got)
			}
		}
	}
}

// TestUndeclaredFamilies are neither declared nor answered.
func TestUndeclaredFamilies(t *testing.T) {
	t.Parallel()
	answers := oddAnswers()
	answers["initialize"] = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	d := newDirect(t, false, upstream("odd", newRawServer(t, answers).url, ""))
	for version, hello := range map[string]string{"2025-11-25": "", "2026-07-28": "server/discover"} {
		c := d.dialogue(version)
		if hello != "" {
			if got := c.ask(hello, `{}`); strings.Contains(got, "prompts") || strings.Contains(got, `"resources"`) || !strings.Contains(got, `"tools":{"listChanged":true}`) {
				t.Errorf("discover: %s", got)
			}
		}
		for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
			if got := c.ask(method, `{}`); !strings.Contains(got, "-32601") {
				t.Errorf("%s %s: %s", version, method, got)
			}
		}
	}
}

// asker is a real upstream whose tool asks its client for a name.
func asker(t *testing.T, stateless bool) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "asker", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	server.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		question := &mcp.ElicitParams{Message: "Who?", RequestedSchema: schema}
		if !stateless {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 0.5})
			answer, err := req.Session.Elicit(ctx, question)
			if err != nil {
				return nil, err
			}
			return hello(answer), nil
		}
		answer, ok := req.Params.InputResponses["who"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": question}, RequestState: "s"}, nil
		}
		return hello(answer), nil
	})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(func() {
		_ = web.Config.Close()
		web.Close()
	})
	return web.URL
}

func hello(answer *mcp.ElicitResult) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", answer.Action, answer.Content["name"])}}}
}

// TestQuestionsReachTheClient in all four pairs of old and new.
func TestQuestionsReachTheClient(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		d := newDirect(t, false, upstream("asker", asker(t, stateless), ""))
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			var progressed, asked atomic.Int32 // the SDK hands out notifications and the answer in goroutines of their own
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": req.Params.Message + " Ada"}}, nil
				},
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progressed.Add(1) },
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			params := &mcp.CallToolParams{Name: "asker__greet"}
			params.SetProgressToken("p")
			result, err := session.CallTool(t.Context(), params)
			if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "accept asker: Who? Ada" {
				t.Errorf("upstream stateless %v, client %s: %+v, %v", stateless, version, result, err)
			}
			if !stateless {
				testutil.Eventually(t, "progress is heard of", 10*time.Second, func() bool { return progressed.Load() > 0 })
			}
			_ = session.Close()
			if asked.Load() != 1 || !stateless && progressed.Load() != 1 {
				t.Errorf("upstream stateless %v, client %s: asked %d, progressed %d", stateless, version, asked.Load(), progressed.Load())
			}
		}
	}
}

// TestTicketsAreGoodForOneAnswer of the same request, and of who has made it.
func TestTicketsAreGoodForOneAnswer(t *testing.T) {
	t.Parallel()
	d := newDirect(t, false, upstream("asker", asker(t, false), ""))
	tokens := config.Secrets{"ci": "s3cret", "ada": "0ther"}
	d.url = serve(t, d.face, &siteOptions{Settings: config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: tokens}}) + "/mcp"
	c := &dialogue{t: t, url: d.url, version: "2026-07-28", token: "s3cret"}
	c.ask("tools/list", `{}`)
	call := func(more string) string {
		c.id++
		_, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"asker__greet","arguments":{%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, c.id, more), "tools/call", "asker__greet")
		return body
	}
	first := call(`}`)
	var asked struct {
		State    string `json:"requestState"`
		Requests map[string]struct {
			Method string
			Params json.RawMessage
		} `json:"inputRequests"`
	}
	_, data, _ := strings.Cut(first, `"result":`)
	if err := json.NewDecoder(bytes.NewReader([]byte(data))).Decode(&asked); err != nil || asked.State == "" || asked.Requests["q1"].Method != "elicitation/create" {
		t.Fatalf("first round: %s, %v", first, err)
	}
	answer := `},"requestState":"` + asked.State + `","inputResponses":{"q1":{"action":"accept","content":{"name":"Ada"}}}`
	for _, bad := range []string{`"other":1` + answer, strings.Replace(answer, asked.State, asked.State+"x", 1)} {
		if got := call(bad); !strings.Contains(got, "-32602") || !strings.Contains(got, "invalid requestState") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	c.token = "0ther"
	if got := call(answer); !strings.Contains(got, "invalid requestState") {
		t.Errorf("another's ticket: %s", got)
	}
	c.token = "s3cret"
	again := call(`},"requestState":"` + asked.State + `"`)
	if !strings.Contains(again, "input_required") || strings.Contains(again, asked.State) {
		t.Fatalf("without an answer: %s", again)
	}
	_, rest, _ := strings.Cut(again, `"requestState":"`)
	fresh, _, _ := strings.Cut(rest, `"`)
	if got := call(answer); !strings.Contains(got, "invalid requestState") {
		t.Errorf("a used ticket: %s", got)
	}
	if got := call(strings.Replace(answer, asked.State, fresh, 1)); !strings.Contains(got, "accept Ada") {
		t.Errorf("the answer: %s", got)
	}
}
