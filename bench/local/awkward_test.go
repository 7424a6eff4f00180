package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/local"
	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// offered is a tool of an upstream of a test, which only reads.
type offered struct {
	name, schema string
	answer       func() *mcp.CallToolResult
}

// serving is an upstream with tools.
func serving(t *testing.T, tools ...offered) config.Upstream {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "some", Version: "1"}, nil)
	for _, one := range tools {
		s.AddTool(&mcp.Tool{Name: one.name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}, InputSchema: json.RawMessage(one.schema)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return one.answer(), nil })
	}
	web := tlstest.NewServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return config.Upstream{Name: "some", ID: "some", URL: web.URL, Timeout: time.Minute, Concurrency: 4, MaxMessage: config.MiB}
}

const anything = `{"type":"object"}`

func says(content ...mcp.Content) func() *mcp.CallToolResult {
	return func() *mcp.CallToolResult { return &mcp.CallToolResult{Content: content} }
}

// TestAwkwardTools: names that programs need themselves, pictures, and a tool that fails after a while; whatever one does, the
// rest is measured.
func TestAwkwardTools(t *testing.T) {
	words := &mcp.TextContent{Text: strings.Repeat("words and more ", 40)}
	var called atomic.Int32
	_, b, cold := open(t, serving(t,
		offered{"len", anything, says(words)},
		offered{"one", anything, func() *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{words}, IsError: called.Add(1) > 4}
		}},
		offered{"picture", anything, says(words, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"})},
	))
	calls, err := b.Calls(t.Context(), b.CanRun(t.Context()), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for i, call := range calls.Made {
		want, printed := "", "[600,600]"
		if i == 2 {
			want, printed = "it has an image, whose tokens depend on the model", ""
		}
		if call.Problem != want || call.Printed != printed {
			t.Errorf("%+v, want %q %q", call, printed, want)
		}
	}
	if calls.Counted != 2 || len(calls.Made) != 3 {
		t.Errorf("calls %+v", calls)
	}
	called.Store(0)
	l, err := b.Latency(t.Context(), local.Setup{Runs: 2, Connected: 1, Call: &tool.ID{Upstream: "some", Name: "one"}, CallsEach: 1, Open: cold})
	if err != nil {
		t.Fatal(err)
	}
	if last := l.Rows[len(l.Rows)-1]; len(l.Rows) != 9 || last.What != "call of some.one from Python" || last.N != 2 || called.Load() != 5 {
		t.Errorf("rows %+v after %d calls", l.Rows, called.Load())
	}
	if missing := strings.Join(l.Missing, "\n"); !strings.Contains(missing, "call of some.one from TypeScript: the tool failed: words and more") || !strings.Contains(missing, "the bare interpreter of Python: this machine has no interpreter") {
		t.Errorf("missing %q", l.Missing)
	}
}

// TestCallable: who only takes times calls no more tools than it takes to find one that answers.
func TestCallable(t *testing.T) {
	answer := says(&mcp.TextContent{Text: "1"})
	_, b, _ := open(t, serving(t, offered{"a", anything, func() *mcp.CallToolResult { return &mcp.CallToolResult{IsError: true} }}, offered{"b", anything, answer}, offered{"c", anything, answer}))
	var said []string
	id, err := b.Callable(t.Context(), func(name string) { said = append(said, name) })
	if err != nil || id == nil || id.String() != "some.b" || fmt.Sprint(said) != "[some.a some.b]" {
		t.Errorf("callable %v, %v after %q", id, err, said)
	}
}

// TestStopped: what was measured before somebody stops it is there.
func TestStopped(t *testing.T) {
	_, b, cold := open(t, serving(t, offered{"one", anything, says(&mcp.TextContent{Text: "1"})}))
	ctx, stop := context.WithCancel(t.Context())
	l, err := b.Latency(ctx, local.Setup{Runs: 1, Connected: 1, Programs: "none here", Call: &tool.ID{Upstream: "some", Name: "one"}, Open: cold})
	if err != nil || len(l.Rows) != 4 || fmt.Sprint(l.Missing) != "[programs: none here]" {
		t.Errorf("rows %+v, missing %q, %v", l.Rows, l.Missing, err)
	}
	l, err = b.Latency(ctx, local.Setup{Runs: 1, Connected: 1, NoPool: true, Open: cold})
	if missing := strings.Join(l.Missing, "\n"); err != nil || len(l.Rows) != 6 || !strings.Contains(missing, "program of one line, Python, in a sandbox that waits: none does by these settings") {
		t.Errorf("without a pool: rows %+v, missing %q, %v", l.Rows, l.Missing, err)
	}
	opened := 0
	l, err = b.Latency(ctx, local.Setup{Runs: 1, Connected: 1, Open: func() (*gateway.Gateway, error) {
		if opened++; opened == 2 { // for programs
			stop()
		}
		return cold()
	}})
	if !errors.Is(err, context.Canceled) || len(l.Rows) != 4 || len(l.Missing) != 0 {
		t.Errorf("rows %+v, missing %q, %v", l.Rows, l.Missing, err)
	}
	if c, err := b.Calls(ctx, "", func(string) {}); !errors.Is(err, context.Canceled) || len(c.Made) != 0 {
		t.Errorf("calls %+v, %v", c, err)
	}
}

// TestShortContexts: definitions of 1,024 tokens are cached from the second turn on, and what is shown here is not, since it is
// less: then a cache may make direct calling cheaper, and it is said until when it was not.
func TestShortContexts(t *testing.T) {
	var tools []offered
	for i := range 5 {
		tools = append(tools, offered{fmt.Sprintf("tool_%d", i), fmt.Sprintf(`{"type":"object","properties":{"x":{"type":"string","description":"%s"}}}`, strings.Repeat("words ", 220)), says()})
	}
	_, b, _ := open(t, serving(t, tools...))
	got, err := b.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	direct, here, c := float64(got.PerTurn.Direct.O200k), float64(got.PerTurn.Here.O200k), got.Conversations[0]
	if want := direct * (1 + 9*local.Cached); direct < 1024 || fmt.Sprintf("%.3f", c.Direct.Cached) != fmt.Sprintf("%.3f", want) {
		t.Errorf("direct %v, want %v", c.Direct.Cached, want)
	}
	if c.Here.Cached != c.Here.Plain || here+got.Search.Tokens.P50 >= 1024 {
		t.Errorf("here %+v", c.Here)
	}
	search, last := got.Search.Tokens.P50, 0
	written := c.Here.Plain - 11*here - 10*search
	for turns := 1.0; here+written+turns*(here+search) < direct*(1+(turns-1)*local.Cached); turns++ {
		last = int(turns)
	}
	if c.Even != (local.Even{Plain: 1}) || c.Last != (local.Even{Cached: last}) || last == 0 {
		t.Errorf("even %+v, last %+v, want %d", c.Even, c.Last, last)
	}
}

// TestToolSearch reckons a conversation with a tool search anew: it is the median of what that search costs, however cheap the
// same search is here, and shows three definitions.
func TestToolSearch(t *testing.T) {
	var tools []offered
	for i, name := range []string{"read_alpha", "read_beta", "read_gamma", "read_delta", "read_epsilon", "read_zeta", "read_eta"} {
		long := strings.Repeat("long words ", i*i*4)
		tools = append(tools, offered{name, fmt.Sprintf(`{"properties":{"x":{"description":"%s","type":"string"}},"type":"object"}`, long), says()})
	}
	g, b, _ := open(t, serving(t, tools...))
	got, err := b.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) float64 {
		n, err := counter.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		return float64(n)
	}
	type probe struct{ written, added float64 }
	var probes []probe
	for _, one := range g.Catalog.Tools() {
		query := strings.ReplaceAll(one.ID.Name, "_", " ")
		found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: query, Detail: toolsearch.Names, Limit: 3})
		if err != nil || len(found.Tools) != 3 {
			t.Fatal(found, err)
		}
		p, names := probe{written: count("tool_search") + count(`{"query":"`+query+`"}`)}, []string{}
		for _, f := range found.Tools {
			known, _ := g.Catalog.Tool(f.ID)
			names = append(names, "some__"+f.ID.Name)
			p.added += count(fmt.Sprintf(`{"name":"some__%s","input_schema":%s}`, f.ID.Name, known.Input))
		}
		p.added += p.written + count("Found "+strings.Join(names, ", "))
		probes = append(probes, p)
	}
	slices.SortStableFunc(probes, func(x, y probe) int { return int(x.added - y.added) })
	median := probes[3]
	want := float64((local.Turns+1)*got.PerTurn.Search.O200k) + median.written + local.Turns*median.added
	if plain := got.Conversations[0].Search.Plain; plain != want || probes[0].added == probes[6].added {
		t.Errorf("%v, want %v of %v", plain, want, probes)
	}
}
