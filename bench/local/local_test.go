package local_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/local"
	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// server is how a real npm server is started.
func server(t *testing.T, name string, args ...string) config.Upstream {
	t.Helper()
	path := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	return config.Upstream{Name: name, ID: name, Command: testutil.Program(t, "node"), Args: append([]string{path}, args...), Dir: t.TempDir(),
		Timeout: time.Minute, Concurrency: 4, MaxMessage: config.MiB, Env: config.Secrets{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}}
}

// open opens a gateway to be measured; cold opens another that has no sandbox wait, and no upstreams.
func open(t *testing.T, ups ...config.Upstream) (g *gateway.Gateway, b *local.Bench, cold func() (*gateway.Gateway, error)) {
	t.Helper()
	cache, cfg := t.TempDir(), settings(t, ups...)
	g, err := gateway.Open(cfg, &gateway.Options{ConnectWait: time.Minute, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	g.Catalog.WaitConnected(t.Context())
	if b, err = local.New(g, &mcpserver.Options{}); err != nil {
		t.Fatal(err)
	}
	return g, b, func() (*gateway.Gateway, error) {
		none := *cfg
		none.Upstreams = nil
		return gateway.Open(&none, &gateway.Options{NoPool: true, CacheDir: cache})
	}
}

func settings(t *testing.T, ups ...config.Upstream) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Dir, cfg.Upstreams, cfg.Search.Learn = t.TempDir(), ups, false
	cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{
		{Tools: []string{"counting.refused"}, Then: policy.Deny}, {Tools: []string{"counting.asked"}, Then: policy.Ask},
	}}
	cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	return &cfg
}

// listed asks a server for its tools by hand, and returns them as it wrote them.
func listed(t *testing.T, up config.Upstream) (tools []struct {
	Name, Description string
	InputSchema       json.RawMessage
}) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), up.Command, up.Args...)
	cmd.Dir = up.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); io.Copy(io.Discard, out); cmd.Wait() }()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID     json.RawMessage
			Result struct {
				Tools json.RawMessage
			}
		}
		if json.Unmarshal(line, &answer) == nil && string(answer.ID) == "2" {
			if err := json.Unmarshal(answer.Result.Tools, &tools); err != nil {
				t.Fatal(err)
			}
			return tools
		}
	}
}

// topSchema is how these servers name their schemas' dialect, which is in no definition.
var topSchema = regexp.MustCompile(`,?"\$schema":"[^"]*"`)

// recount is what the definitions of servers come to, by another way than the one that is tested.
func recount(t *testing.T, ups ...config.Upstream) (tools, sum int) {
	t.Helper()
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	for _, up := range ups {
		for _, def := range listed(t, up) {
			var schema bytes.Buffer
			if err := json.Compact(&schema, def.InputSchema); err != nil {
				t.Fatal(err)
			}
			clean := strings.ReplaceAll(topSchema.ReplaceAllString(schema.String(), ""), "{,", "{")
			text := fmt.Sprintf(`{"name":"%s__%s","description":%s,"input_schema":%s}`, up.Name, def.Name, quoted(def.Description), clean)
			n, err := counter.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			tools, sum = tools+1, sum+n
		}
	}
	return tools, sum
}

func quoted(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)
	return strings.TrimSpace(b.String())
}

// TestRealServers counts what three real servers show by another way, and calls what of theirs only reads, from real sandboxes.
func TestRealServers(t *testing.T) {
	ups := []config.Upstream{server(t, "filesystem", t.TempDir()), server(t, "memory")}
	g, b, cold := open(t, ups...)
	got, err := b.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, sum := recount(t, ups...); got.Tools != n || got.PerTurn.Direct.O200k != sum || n == 0 {
		t.Errorf("%d tools of %d tokens; want %d of %d", got.Tools, got.PerTurn.Direct.O200k, n, sum)
	}
	if here := got.PerTurn.Here.O200k; here < 150 || here > 250 || got.PerTurn.Direct.Cl100k == 0 || got.Search.Found < got.Search.Queries/2 {
		t.Errorf("here %d, %+v", here, got)
	}
	c := got.Conversations[0]
	if want := float64(got.PerTurn.Direct.O200k * local.Turns); c.Direct.Plain != want || c.Direct.Cached >= want || c.Here.Plain >= want || c.Even.Plain != 1 {
		t.Errorf("conversation %+v, want %v directly", c, want)
	}
	calls, err := b.Calls(t.Context(), b.CanRun(t.Context()), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if calls.Problem != "" || calls.Counted == 0 || calls.Counted != len(calls.Made) || calls.Direct.O200k == 0 || calls.Program.O200k == 0 {
		t.Errorf("calls %+v", calls)
	}
	for _, call := range calls.Made {
		id, _ := tool.ParseID(call.Tool)
		if known, _ := g.Catalog.Tool(id); known.Annotations.ReadOnly == nil || !*known.Annotations.ReadOnly || !strings.HasPrefix(call.Printed, "[") {
			t.Errorf("called %+v", call)
		}
	}
	l, err := b.Latency(t.Context(), local.Setup{Runs: 2, Connected: 1, Call: calls.Quickest(), Open: cold})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Rows) != 10 {
		t.Errorf("rows %+v, missing %q", l.Rows, l.Missing)
	}
	for _, r := range l.Rows {
		if r.N < 2 || r.Min <= 0 || r.P50 < r.Min || r.P99 < r.P50 {
			t.Errorf("row %+v", r)
		}
	}
}

// counting is an upstream that notes which of its tools are called.
func counting(t *testing.T) (config.Upstream, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var called []string
	s := mcp.NewServer(&mcp.Implementation{Name: "counting", Version: "1"}, nil)
	add := func(name, required string, a *mcp.ToolAnnotations) {
		s.AddTool(&mcp.Tool{Name: name, Annotations: a, InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}` + required + `}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				called = append(called, name)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat(name, len(called))}}}, nil
			})
	}
	add("unsaid", "", nil)
	add("writes", "", &mcp.ToolAnnotations{ReadOnlyHint: false})
	add("contradicts", "", &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(true)})
	add("idempotent", "", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false)})
	add("needs", `,"required":["x"]`, &mcp.ToolAnnotations{ReadOnlyHint: true})
	add("refused", "", &mcp.ToolAnnotations{ReadOnlyHint: true})
	add("asked", "", &mcp.ToolAnnotations{ReadOnlyHint: true})
	add("reads", "", &mcp.ToolAnnotations{ReadOnlyHint: true})
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return config.Upstream{Name: "counting", ID: "counting", URL: web.URL, Timeout: time.Minute, Concurrency: 4, MaxMessage: config.MiB}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(called)
	}
}

// TestOnlyWhatReads: nothing else is called, however it looks; and results that differ save nothing.
func TestOnlyWhatReads(t *testing.T) {
	up, called := counting(t)
	_, b, _ := open(t, up)
	if _, err := b.Tokens(t.Context()); err != nil || len(called()) > 0 {
		t.Fatalf("counting tokens called %q, %v", called(), err)
	}
	var said []string
	c, err := b.Calls(t.Context(), b.CanRun(t.Context()), func(name string) { said = append(said, name) })
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(called()); got != "[reads reads]" || fmt.Sprint(said) != "[counting.reads]" {
		t.Errorf("called %s, said %q", got, said)
	}
	if c.NotReadOnly != 4 || c.NeedArguments != 1 || c.Refused != 2 || c.Counted != 0 || c.Direct.O200k != 0 || !strings.Contains(c.Made[0].Problem, "changed between the calls: 5 bytes, then 10") {
		t.Errorf("calls %+v", c)
	}
}
