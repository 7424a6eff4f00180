package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox/egress"
)

// TestMain gives the sandboxes of this package a directory of their own, and
// fails if one of them leaves something in it.
func TestMain(m *testing.M) {
	egress.Child()
	natscluster.Serve()
	upstreamtest.Main()
	if mode, ok := os.LookupEnv(modeVar); ok {
		beUpstream(mode)
		return
	}
	dir, err := os.MkdirTemp("/tmp", "gw-") // short: a socket's path has room for little
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		panic(err)
	}
	code := tlstest.M{Tests: m}.Run()
	if left := stateLeft(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "left behind:", left)
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// modeVar makes the test binary an upstream over stdio instead of running tests.
const modeVar = "GATEWAY_TEST_MODE"

func beUpstream(mode string) {
	switch mode {
	case "hang":
		time.Sleep(time.Hour)
	case "broken":
		fmt.Fprintln(os.Stderr, "Error: no licence")
		os.Exit(7)
	}
	s := &site{Server: mcp.NewServer(&mcp.Implementation{Name: mode, Version: "1"}, nil)}
	switch mode {
	case "calc":
		calc(s)
	case "turncoat":
		turncoat(s, os.Getenv(turncoatDir))
	default:
		notes(s)
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// process returns an upstream that is a process of its own.
func process(t testing.TB, name, mode string) config.Upstream {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return config.Upstream{Name: name, ID: tool.Identifier(name), Command: self, Timeout: 10 * time.Second,
		Env: config.Secrets{modeVar: mode, "GORACE": "atexit_sleep_ms=0"}}
}

// stateLeft lists the hosts that still have a state directory.
func stateLeft() []string {
	left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "sallyport", "*"))
	return left
}

// site is a real MCP server over streamable HTTP that can be turned off and on.
type site struct {
	*mcp.Server
	web  *httptest.Server
	down atomic.Bool
	hang atomic.Bool
	hits atomic.Int32 // tools/call
	// alter changes what goes out, into what the SDK's server would never send.
	alter *strings.Replacer
}

// altered is a response on its way through a replacer.
type altered struct {
	http.ResponseWriter
	*strings.Replacer
}

func (a altered) Write(p []byte) (int, error) {
	_, err := a.WriteString(a.ResponseWriter, string(p))
	return len(p), err
}

func (a altered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func newSite(t testing.TB, fill ...func(*site)) *site {
	t.Helper()
	s := &site{alter: strings.NewReplacer(), Server: mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, nil)
	s.web = tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.hang.Load():
			_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is seen
			<-r.Context().Done()
		case s.down.Load():
			http.Error(w, "out of \x1b[31morder", http.StatusServiceUnavailable)
		default:
			handler.ServeHTTP(altered{w, s.alter}, r)
		}
	}))
	t.Cleanup(func() {
		for session := range s.Sessions() { // of clients that went without a word
			_ = session.Close()
		}
		_ = s.web.Config.Close() // open connections too, which Close alone would wait for
		s.web.Close()
	})
	for _, f := range fill {
		f(s)
	}
	return s
}

// tool adds a tool whose input schema is {"type":"object", PROPERTIES}.
func (s *site) tool(name, description, schema string, answer func(args json.RawMessage) *mcp.CallToolResult) {
	s.add(&mcp.Tool{Name: name, Description: description}, schema, answer)
}

func (s *site) add(t *mcp.Tool, schema string, answer func(args json.RawMessage) *mcp.CallToolResult) {
	t.InputSchema = json.RawMessage(strings.TrimSuffix(`{"type":"object",`+schema, ",") + "}")
	s.AddTool(t, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.hits.Add(1)
		return answer(req.Params.Arguments), nil
	})
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func echo(args json.RawMessage) *mcp.CallToolResult { return text(string(args)) }

// notes is an upstream that remembers.
func notes(s *site) {
	var mu sync.Mutex
	list := []json.RawMessage{}
	s.tool("create_note", "Write a note. It stays.", `"required":["title"],"properties":{"title":{"type":"string","description":"its name"},"text":{"type":"string"}}`,
		func(args json.RawMessage) *mcp.CallToolResult {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, args)
			return text("ok")
		})
	s.tool("list_notes", "List all notes, e.g. to count them. Oldest first.", "", func(json.RawMessage) *mcp.CallToolResult {
		mu.Lock()
		defer mu.Unlock()
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"notes": list}}
	})
	s.add(&mcp.Tool{Name: "delete-notes", Description: "Throw all notes away", Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)}}, "",
		func(json.RawMessage) *mcp.CallToolResult { return text("gone") })
}

// calc is an upstream that computes, and fails when asked to.
func calc(s *site) {
	s.tool("add", "Add two numbers.", `"required":["a","b"],"properties":{"a":{"type":"number"},"b":{"type":"number"}}`, func(args json.RawMessage) *mcp.CallToolResult {
		var in struct{ A, B float64 }
		if err := json.Unmarshal(args, &in); err != nil {
			panic(err)
		}
		return text(fmt.Sprint(in.A + in.B))
	})
	s.tool("echo", "Give back the arguments.", `"additionalProperties":true`, echo)
	s.tool("fail", "Fail.", "", func(json.RawMessage) *mcp.CallToolResult {
		r := text("no such \x1b[31mledger")
		r.IsError = true
		return r
	})
	s.tool("picture", "Draw.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("\x89PNG...."), MIMEType: "image/png"}}}
	})
}

// settings returns a configuration; upstreams are added with the site's id as their name.
func settings(sites map[string]*site) *config.Config {
	cfg := config.Default()
	for name, s := range sites {
		cfg.Upstreams = append(cfg.Upstreams, upstreamOf(name, s.web.URL))
	}
	return &cfg
}

func upstreamOf(name, url string) config.Upstream {
	return config.Upstream{Name: name, ID: tool.Identifier(name), URL: url, Timeout: 10 * time.Second}
}

// open opens a gateway that is closed at the end of the test, without error.
func open(t testing.TB, cfg *config.Config, opts *gateway.Options) *gateway.Gateway {
	t.Helper()
	if opts == nil {
		opts = &gateway.Options{}
	}
	if opts.Snapshots == "" {
		opts.Snapshots = testutil.Snapshots()
	}
	g, err := gateway.Open(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

// office opens a gateway with notes and calc behind it.
func office(t testing.TB) (*gateway.Gateway, map[string]*site) {
	t.Helper()
	sites := map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc)}
	g := open(t, settings(sites), nil)
	g.Catalog.WaitConnected(t.Context())
	return g, sites
}

// withRunsc makes a configuration one that can run programs. No sandbox waits, so that a test starts only those that it needs.
func withRunsc(t testing.TB, cfg *config.Config) *config.Config {
	t.Helper()
	cfg.Sandbox.Runsc, cfg.Sandbox.Pool.Min, cfg.Sandbox.Pool.Max = testutil.Runsc(t), 0, 1
	return cfg
}

func call(t testing.TB, g *gateway.Gateway, id, args string) (tool.Result, error) {
	t.Helper()
	parsed, err := tool.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return g.Call(t.Context(), tool.Call{Tool: parsed, Args: json.RawMessage(args)})
}

// wantError checks the kind of an error and that it says all parts.
func wantError(t testing.TB, err error, kind tool.Kind, parts ...string) {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T %v, want a *tool.Error", err, err)
	}
	if e.Kind != kind {
		t.Errorf("kind %q, want %q: %v", e.Kind, kind, e)
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("error %q does not say %q", e, part)
		}
	}
}

// records is a log that can be looked into.
type records struct {
	mu   sync.Mutex
	list []slog.Record
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) WithAttrs(attrs []slog.Attr) slog.Handler { return recordsOf{r, attrs} }
func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, record)
	return nil
}

// recordsOf keeps a logger's own attributes with each of its records.
type recordsOf struct {
	*records
	attrs []slog.Attr
}

func (r recordsOf) WithAttrs(attrs []slog.Attr) slog.Handler {
	return recordsOf{r.records, slices.Concat(r.attrs, attrs)}
}

func (r recordsOf) Handle(ctx context.Context, record slog.Record) error {
	record = record.Clone()
	record.AddAttrs(r.attrs...)
	return r.records.Handle(ctx, record)
}

// find returns the attributes of every record with that message.
func (r *records) find(message string) (found []map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.list {
		if record.Message != message {
			continue
		}
		attrs := map[string]string{}
		record.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value.String(); return true })
		found = append(found, attrs)
	}
	return found
}
