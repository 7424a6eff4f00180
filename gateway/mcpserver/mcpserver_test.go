package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tokens"
)

// TestMain gives the sandboxes of this package a directory of their own.
func TestMain(m *testing.M) {
	natscluster.Serve()
	dir, err := os.MkdirTemp("/tmp", "gw-") // short: a socket's path has room for little
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		panic(err)
	}
	code := tlstest.M{Tests: m}.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// meter is a real upstream with one tool, which counts how often it is called.
type meter struct {
	*mcp.Server
	url  string
	hits atomic.Int32
	down atomic.Bool
}

func newMeter(t *testing.T) *meter {
	t.Helper()
	m := &meter{Server: mcp.NewServer(&mcp.Implementation{Name: "meter", Version: "1"}, nil)}
	m.tool("tick")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m.Server }, nil)
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = web.Config.Close() // open connections too, which Close alone would wait for
		web.Close()
	})
	m.url = web.URL
	return m
}

func (m *meter) tool(name string) {
	m.AddTool(&mcp.Tool{Name: name, Description: "Count up and say how far.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(m.hits.Add(1))}}}, nil
		})
}

// open returns a gateway with the upstreams, "meter" being the first.
func open(t *testing.T, ups ...config.Upstream) *gateway.Gateway {
	t.Helper()
	cfg := config.Default()
	cfg.Upstreams = ups
	g, err := gateway.Open(withRunsc(t, &cfg), &gateway.Options{Snapshots: testutil.Snapshots()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// withRunsc makes a configuration one that can run programs. No sandbox waits, so that a test starts only those that it needs.
func withRunsc(t *testing.T, cfg *config.Config) *config.Config {
	t.Helper()
	cfg.Sandbox.Runsc, cfg.Sandbox.Pool.Min, cfg.Sandbox.Pool.Max = testutil.Runsc(t), 0, 1
	return cfg
}

func upstream(id, url, about string) config.Upstream {
	return config.Upstream{Name: id, ID: id, URL: url, Description: about, Timeout: 5 * time.Second}
}

// connect returns a client of a server on g; version "" is the newest.
func connect(t *testing.T, g *gateway.Gateway, version string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, g.Service(), version)
}

func connectTo(t *testing.T, g mcpserver.Service, version string) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(g, nil).Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
	})
	return client
}

// call returns the text of a result and whether it is an error.
func call(t *testing.T, client *mcp.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	if len(result.Content) != 1 {
		t.Fatalf("content: %v", result.Content)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// definitions is what a client puts into a model's context.
func definitions(t *testing.T, client *mcp.ClientSession) string {
	t.Helper()
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, def := range list.Tools {
		data, err := json.Marshal(map[string]any{"name": def.Name, "description": def.Description, "input_schema": def.InputSchema})
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(data, '\n'))
	}
	return all.String() + client.InitializeResult().Instructions
}

func TestBothToolsInEveryProtocol(t *testing.T) {
	t.Parallel()
	g := open(t, upstream("meter", newMeter(t).url, "Counts"))
	for _, version := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26"} {
		client := connect(t, g, version)
		got := client.InitializeResult()
		if version != "" && got.ProtocolVersion != version || version == "" && got.ProtocolVersion < "2026" || got.ServerInfo.Name != "sallyport" {
			t.Errorf("asked for %q, got %+v", version, got)
		}
		list, err := client.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "execute_code" || list.Tools[1].Name != "search_tools" {
			t.Fatalf("tools: %+v, %v", list, err)
		}
		if got, isError := call(t, client, "search_tools", map[string]any{"query": "count up"}); isError || !strings.Contains(got, "from servers.meter import ...\n  tick(") {
			t.Errorf("search: %v, %s", isError, got)
		}
		if got, isError := call(t, client, "execute_code", map[string]any{"code": "from servers.meter import tick\nint(tick()) > 0"}); isError || got != "true" {
			t.Errorf("execute: %v, %s", isError, got)
		}
	}
}

func TestDefinitionsKeepToTheirBudget(t *testing.T) {
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields("filesystem memory github slack postgres sentry notion linear stripe everything")
	const about = "Short description of what this upstream offers, 60 letters.."
	for n, budget := range map[int]int{0: 230, 5: 270, 10: 250, 60: 460, 300: 520} {
		var ups []config.Upstream
		for i := range n {
			name := names[i%len(names)]
			if i >= len(names) {
				name = fmt.Sprint(name, "_", i/len(names))
			}
			ups = append(ups, upstream(name, "http://127.0.0.1:1/", about))
		}
		got, err := counter.Count(definitions(t, connectTo(t, upstreamList(ups), "")))
		if err != nil || got >= budget {
			t.Errorf("%d upstreams: %d tokens, the budget is %d, %v", n, got, budget, err)
		}
		t.Logf("%d upstreams: %d tokens", n, got)
	}
}

// upstreamList is a gateway that has upstreams and nothing else.
type upstreamList []config.Upstream

func (upstreamList) Search(context.Context, toolsearch.Request) (toolsearch.Found, error) {
	return toolsearch.Found{}, nil
}

func (upstreamList) Execute(context.Context, execution.Program) (execution.Result, error) {
	return execution.Result{}, nil
}

func (l upstreamList) Upstreams() []catalog.Upstream {
	var ups []catalog.Upstream
	for _, up := range l {
		ups = append(ups, catalog.Upstream{ID: up.ID, Name: up.Name, Description: up.Description})
	}
	return ups
}

// TestDefinitionsStayTheSame byte for byte while an upstream comes, grows, is
// lost and comes again, in the order of names and in the next run: prompt caches
// depend on it.
func TestDefinitionsStayTheSame(t *testing.T) {
	m := newMeter(t)
	m.down.Store(true)
	ups := []config.Upstream{upstream("nothing", "http://127.0.0.1:1/", ""), upstream("meter", m.url, "Counts")}
	g := open(t, ups...)
	g.Catalog.WaitConnected(t.Context())
	client := connect(t, g, "")
	first := definitions(t, client)
	if !strings.Contains(first, `\nUpstreams: meter (Counts); nothing."`) || strings.Count(first, "meter") != 1 {
		t.Errorf("definitions: %s", first)
	}
	same := func(when string, g *gateway.Gateway, tools int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); len(g.Catalog.Tools()) != tools; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d tools", when, len(g.Catalog.Tools()))
			}
		}
		for _, c := range []*mcp.ClientSession{client, connect(t, g, "")} {
			if diff := cmp.Diff(first, definitions(t, c)); diff != "" {
				t.Errorf("%s: (-first +now)\n%s", when, diff)
			}
		}
	}
	m.down.Store(false)
	same("when the upstream came", g, 1)
	m.tool("tock")
	same("when it grew", g, 2)
	m.RemoveTools("tick", "tock")
	same("when it was empty", g, 0)
	m.down.Store(true)
	if got, isError := call(t, client, "search_tools", map[string]any{"query": "count"}); isError {
		t.Errorf("search: %s", got)
	}
	same("when it was lost", g, 0)
	m.down.Store(false)
	m.tool("tick")
	same("when it was back", g, 1)
	again := open(t, ups[1], ups[0])
	same("in another run, the settings in another order", again, 1)
}

// TestDescribeUpstreams says what is behind the door in as many words as there is room for.
func TestDescribeUpstreams(t *testing.T) {
	ups := func(n int, about string) (ups []catalog.Upstream) {
		for i := range n {
			ups = append(ups, catalog.Upstream{ID: fmt.Sprintf("upstream%03d", n-1-i), Description: about})
		}
		return ups
	}
	long := "About\x1b[31m\nthis one " + strings.Repeat("very ", 50)
	for _, test := range []struct {
		n           int
		want, never string
	}{
		{2, "\nUpstreams: upstream000 (About this one very very", "more"},
		{4, "upstream003 (About this one very", "more"},
		{16, "; upstream015.", "About"},
		{60, "; upstream058; upstream059.", "About"},
		{300, "; and 223 more.", "About"},
	} {
		got := mcpserver.DescribeUpstreams(ups(test.n, long))
		if !strings.Contains(got, test.want) || strings.Contains(got, test.never) || len(got) > 1050 || strings.ContainsAny(got[1:], "\x1b\n") {
			t.Errorf("%d upstreams, %d bytes: %s", test.n, len(got), got)
		}
	}
	if got := mcpserver.DescribeUpstreams(nil); got != "" {
		t.Errorf("none: %s", got)
	}
	for about, want := range map[string]string{
		"All of the kinds of tickets of a team, their comments, and who works on each of them today": "(All of the kinds of tickets of a team, their comments, and who works on each…)",
		"Notes that somebody wrote down for whoever comes next (ideas, plans, minutes, dreams)":      "(Notes that somebody wrote down for whoever comes next…)",
		"Notes (short ones) that stay.": "(Notes (short ones) that stay).",
		strings.Repeat("x", 100):        "(" + strings.Repeat("x", 79) + "…)",
	} {
		if got := mcpserver.DescribeUpstreams(ups(1, about)); !strings.Contains(got, want) {
			t.Errorf("%q: no %q in %s", about, want, got)
		}
	}
	huge := ups(3, long)
	huge[0].ID = strings.Repeat("x", 5000)
	if got := mcpserver.DescribeUpstreams(huge); len(got) > 1050 {
		t.Errorf("a long name: %d bytes", len(got))
	}
}

// TestMistakesAreReadable: whatever a model gets wrong comes back as a result that says what is right.
func TestMistakesAreReadable(t *testing.T) {
	t.Parallel()
	client := connect(t, open(t, upstream("meter", newMeter(t).url, "")), "")
	for _, test := range []struct{ tool, args, want string }{
		{"search_tools", `{"querry":"x"}`, `unknown parameter "querry" (did you mean query? parameters: detail, language, limit, query, upstream)`},
		{"search_tools", `{"query":7}`, "query must be a string"},
		{"search_tools", `{"limit":"many"}`, "limit must be a number"},
		{"search_tools", `{"limit":[1]}`, "limit must be a number"},
		{"search_tools", `{"detail":"all"}`, `unknown detail "all" (use names, summary, signature or full)`},
		{"search_tools", `{"upstream":"metre"}`, "there is no upstream metre (did you mean meter?)"},
		{"search_tools", `{"language":"cobol"}`, `unknown language "cobol" (use python or typescript)`},
		{"execute_code", `{}`, "code must be 1 to 1048576 bytes, not 0"},
		{"execute_code", `{"script":"1"}`, `unknown parameter "script" (parameters: code, language, session, timeout)`},
		{"execute_code", `{"code":["1"]}`, "code must be a string"},
		{"execute_code", `{"code":"1","timeout":"NaN"}`, "timeout must be a number"},
		{"execute_code", `{"code":"1/0"}`, "ZeroDivisionError: division by zero\n  line 1: 1/0"},
		{"execute_code", `{"code":"import sys; sys.exit(3)"}`, "exited with status 3"},
		{"execute_code", `{"code":"from servers.metre import tick"}`, "did you mean servers.meter?"},
		{"execute_code", `{"code":"const x = ;","language":"typescript"}`, "SyntaxError"},
		{"execute_code", `{"code":"while True: pass","timeout":0.5}`, "stopped: it ran longer than 0.5 s"},
		{"execute_code", `{"code":"1+1","timeout":-5}`, "timeout must be more than 0 seconds, not -5"},
		{"execute_code", `{"code":"1+1","timeout":0}`, "timeout must be more than 0 seconds, not 0 (omit it to use the configured limit)"},
		{"execute_code", `{"code":"import os\nfor i in range(9):\n  if os.fork() == 0: raise ValueError(i)\n1/0"}`, "ZeroDivisionError"},
		{"execute_code", `{"code":"from sallyport import call\ncall('meter.tick', {'a': 'x' * (17 << 20)})"}`,
			"ToolError: the arguments are 17.0 MiB, and a call can have 16 MiB\n  line 2: call('meter.tick', {'a': 'x' * (17 << 20)})\nhint: split them over several calls"},
		{"execute_code", `{"language":"ts","code":"import { call } from 'sallyport';\nawait call('meter.tick', { a: 'é'.repeat(9 << 20) });"}`,
			"ToolError: the arguments are 18.0 MiB, and a call can have 16 MiB\n  line 2"},
	} {
		if got, isError := call(t, client, test.tool, json.RawMessage(test.args)); !isError || !strings.Contains(got, test.want) {
			t.Errorf("%s(%s): %v, %s", test.tool, test.args, isError, got)
		}
	}
	for _, test := range []struct{ tool, args, want string }{
		{"search_tools", `{"query":"count","limit":"1","detail":null,"upstream":""}`, "tick("},
		{"search_tools", `{"query":"count","limit":1e300,"detail":"names"}`, "meter.tick"},
		{"search_tools", `{}`, "meter (1 tool)"},
		{"execute_code", `{"code":"1+1","timeout":" 20 "}`, "2"},
		{"execute_code", `{"code":"1+1","timeout":null}`, "2"},
		{"execute_code", `{"code":"1+1","timeout":1e308}`, "2"},
		{"execute_code", `{"code":"const x: number = 1;\nx","language":"js"}`, "1"},
	} {
		if got, isError := call(t, client, test.tool, json.RawMessage(test.args)); isError || !strings.Contains(got, test.want) {
			t.Errorf("%s(%s): %v, %s", test.tool, test.args, isError, got)
		}
	}
}

// Of the faults of a program's forked processes a model reads the first few, without the frames of the runtime.
func TestForksSayLittle(t *testing.T) {
	t.Parallel()
	client := connect(t, open(t, upstream("meter", newMeter(t).url, "")), "")
	code := "import os\nfor i in range(12):\n    if (pid := os.fork()) == 0:\n        raise ValueError(i)\n    os.waitpid(pid, 0)"
	got, isError := call(t, client, "execute_code", map[string]any{"code": code})
	if isError || strings.Count(got, "ValueError") != 3 || len(got) > 300 || strings.Contains(got, "guest.py") || !strings.Contains(got, ": ValueError: 2, line 4; those of further processes are not shown") {
		t.Errorf("%v, %s", isError, got)
	}
}

func TestCancellationEndsTheProgram(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "2025-06-18"} {
		m := newMeter(t)
		client := connect(t, open(t, upstream("meter", m.url, "")), version)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "from servers.meter import tick\nwhile True: tick()"}})
			ended <- err
		}()
		wait(t, "the program runs", func() bool { return m.hits.Load() > 5 })
		cancel()
		if err := <-ended; err == nil {
			t.Error("a canceled call has a result")
		}
		before := int32(-1)
		wait(t, "the program stops", func() bool {
			now := m.hits.Load()
			time.Sleep(200 * time.Millisecond)
			before, now = now, m.hits.Load()
			return before == now
		})
		if got, isError := call(t, client, "execute_code", map[string]any{"code": "'next'"}); isError || got != "next" {
			t.Errorf("the next program: %v, %s", isError, got)
		}
	}
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}
