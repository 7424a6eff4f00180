package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// desks are two upstreams whose tools are as good an answer to most queries.
func desks(s *site) {
	s.tool("create_ticket", "Create a ticket.", "", echo)
	s.tool("close_ticket", "Close a ticket.", "", echo)
	s.tool("break_ticket", "Break a ticket.", "", func(json.RawMessage) *mcp.CallToolResult {
		r := text("it breaks")
		r.IsError = true
		return r
	})
}

// as is what one session does.
func as(t *testing.T, principal, session string) context.Context {
	t.Helper()
	return tool.WithSession(tool.WithPrincipal(t.Context(), principal), session)
}

// use searches and calls as one principal, in some sessions.
func use(t *testing.T, g *gateway.Gateway, principal, query, id string, sessions int) {
	t.Helper()
	for i := range sessions {
		ctx := as(t, principal, fmt.Sprint(query, id, i))
		if _, err := g.Searcher.Search(ctx, toolsearch.Request{Query: query}); err != nil {
			t.Fatal(err)
		}
		parsed, err := tool.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Call(ctx, tool.Call{Tool: parsed}); err != nil {
			t.Fatal(err)
		}
	}
}

// firstFor returns the first hit of a principal's query.
func firstFor(t *testing.T, g *gateway.Gateway, principal, query string) string {
	t.Helper()
	found, err := g.Searcher.Search(as(t, principal, "looks"), toolsearch.Request{Query: query, Detail: toolsearch.Names})
	if err != nil || len(found.Tools) < 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	return found.Tools[0].ID.String()
}

func wantFirst(t *testing.T, g *gateway.Gateway, principal, query, want string) {
	t.Helper()
	if got := firstFor(t, g, principal, query); got != want {
		t.Errorf("%q for %q: %s is first, want %s", principal, query, got, want)
	}
}

// best returns the tool that comes first before anybody has called one, and its
// twin of the other upstream.
func best(t *testing.T, g *gateway.Gateway, query string) (first, other string) {
	t.Helper()
	first = firstFor(t, g, "nobody", query)
	up, name, _ := strings.Cut(first, ".")
	return first, map[string]string{"alpha": "beta", "beta": "alpha"}[up] + "." + name
}

func desksSettings(t *testing.T) *config.Config {
	t.Helper()
	return settings(map[string]*site{"alpha": newSite(t, desks), "beta": newSite(t, desks)})
}

// TestClicksMoveTools: what is called after a search moves up for its like: for who
// called it, in the next run too, and not where learning is off.
func TestClicksMoveTools(t *testing.T) {
	cfg, opts := desksSettings(t), &gateway.Options{CacheDir: t.TempDir()}
	const query = "create a ticket"
	start := func(learn bool) *gateway.Gateway {
		cfg.Search.Learn = learn
		g, err := gateway.Open(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		g.Catalog.WaitConnected(t.Context())
		return g
	}
	g := start(true)
	first, other := best(t, g, query)
	closes, _ := best(t, g, "close a ticket")
	wantFirst(t, g, "", query, first)
	use(t, g, "", query, other, 1)
	wantFirst(t, g, "", "close a ticket", closes)
	use(t, g, "", query, other, 4)
	wantFirst(t, g, "", query, other)
	wantFirst(t, g, "", "creating the ticket", other)
	wantFirst(t, g, "", "close a ticket", closes)
	wantFirst(t, g, "ada", query, first) // it is not hers
	mustClose(t, g)

	kept := func() string {
		paths, _ := filepath.Glob(filepath.Join(opts.CacheDir, "clicks", "*"))
		if len(paths) != 1 {
			t.Fatalf("files: %v", paths)
		}
		data, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := kept()
	g = start(false)
	wantFirst(t, g, "", query, first)
	use(t, g, "", "close ticket", "beta.close_ticket", 5)
	mustClose(t, g)
	if kept() != before {
		t.Error("something was learned while that was off")
	}
	g = start(true)
	wantFirst(t, g, "", query, other)
	mustClose(t, g)
}

// TestWhatIsNoClick: failures, changed definitions, and calls without a search are not learned.
func TestWhatIsNoClick(t *testing.T) {
	sites := map[string]*site{"alpha": newSite(t, desks), "beta": newSite(t, desks)}
	g := open(t, settings(sites), nil)
	g.Catalog.WaitConnected(t.Context())
	first, other := best(t, g, "break ticket")
	use(t, g, "", "break ticket", other, 6)
	wantFirst(t, g, "", "break ticket", first)
	first, other = best(t, g, "close ticket")
	closes, err := tool.ParseID(other)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		ctx := as(t, "", fmt.Sprint("no search ", i))
		if _, err := g.Call(ctx, tool.Call{Tool: closes}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Searcher.Search(ctx, toolsearch.Request{Query: "close ticket"}); err != nil {
			t.Fatal(err)
		}
		_, err = g.Call(ctx, tool.Call{Tool: closes, Args: json.RawMessage(`[]`)})
		wantError(t, err, tool.Invalid)
	}
	wantFirst(t, g, "", "close ticket", first)
	first, other = best(t, g, "create ticket")
	use(t, g, "", "create ticket", other, 6)
	wantFirst(t, g, "", "create ticket", other)
	up, _, _ := strings.Cut(other, ".")
	sites[up].tool("create_ticket", "Create a ticket, or what looks like one.", "", echo)
	testutil.Eventually(t, "the definition that was called is gone", 10*time.Second, func() bool {
		return firstFor(t, g, "", "create ticket") == first
	})
}

// TestProgramsClick: what a program calls after a search counts for its principal, once for all its calls.
func TestProgramsClick(t *testing.T) {
	g := open(t, withRunsc(t, desksSettings(t)), nil)
	g.Catalog.WaitConnected(t.Context())
	first, other := best(t, g, "create a ticket")
	up, _, _ := strings.Cut(other, ".")
	for i := range 5 {
		ctx := as(t, "ada", fmt.Sprint("s", i))
		if _, err := g.Searcher.Search(ctx, toolsearch.Request{Query: "create a ticket"}); err != nil {
			t.Fatal(err)
		}
		e, err := g.Executor.Execute(ctx, execution.Program{Code: "from servers." + up + " import create_ticket\nfor i in range(20): create_ticket()"})
		if err != nil || e.Failed() {
			t.Fatalf("%v, %v", e.Text(), err)
		}
	}
	wantFirst(t, g, "ada", "create a ticket", other)
	wantFirst(t, g, "", "create a ticket", first)

	// A program that searches and calls without end moves nothing by that.
	e, err := g.Executor.Execute(as(t, "eve", ""), execution.Program{Code: "from servers." + up + " import close_ticket\nfrom sallyport import search_tools\n" +
		"for i in range(30):\n    search_tools('create a ticket'); close_ticket()"})
	if err != nil || e.Failed() {
		t.Fatalf("%v, %v", e.Text(), err)
	}
	wantFirst(t, g, "eve", "create a ticket", first)
}

// oracle is an embeddings endpoint that knows one thing, that to bin is to delete, and the built-in trial of models.
type oracle struct {
	web   *httptest.Server
	down  atomic.Bool
	asked atomic.Int32
	tools map[string]int // of the trial
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	o := &oracle{tools: trialTools(t)}
	o.web = tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		if o.down.Load() {
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
		var in struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		var data []map[string]any
		for i, text := range in.Input {
			v := append([]float64{.1, .1, .1}, o.trial(text)...)
			for word, at := range map[string]int{"throw": 0, "bin": 0, "add": 1} {
				if strings.Contains(strings.ToLower(text), word) {
					v[at]++
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(o.web.Close)
	return o
}

// trial is the part of a vector that says which tool of the trial a text means.
func (o *oracle) trial(text string) []float64 {
	v := make([]float64, 100)
	if _, about, ok := strings.Cut(text, ". "); ok {
		text = about
	}
	if n, ok := o.tools[text]; ok {
		v[n] = 3
	}
	return v
}

// trialTools are the numbers of the tools of the trial, by their descriptions and queries.
func trialTools(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("toolsearch/trial.txt")
	if err != nil {
		t.Fatal(err)
	}
	tools, n := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		if query, ok := strings.CutPrefix(line, "? "); ok {
			tools[strings.TrimSpace(query)] = n
		} else if _, about, ok := strings.Cut(line, ": "); ok {
			n++
			tools[strings.TrimSpace(about)] = n
		}
	}
	return tools
}

// TestEmbeddingsWorse: a model that makes searches worse is not used, and the log says so; the verdict is kept.
func TestEmbeddingsWorse(t *testing.T) {
	o, log := newOracle(t), &records{}
	o.tools = nil
	cfg := settings(map[string]*site{"calc": newSite(t, calc)})
	cfg.Search.Embeddings = o.settings()
	dir := t.TempDir()
	for run := range 2 {
		g := open(t, cfg, &gateway.Options{CacheDir: dir, Logger: slog.New(log)})
		g.Catalog.WaitConnected(t.Context())
		testutil.Eventually(t, "the model is judged", 20*time.Second, func() bool {
			return len(log.find("the model of embeddings makes searches worse, so it counts less or not")) > run
		})
		query := 0
		testutil.Eventually(t, "a search does not ask the model", 20*time.Second, func() bool { // the tools are embedded at the same time
			asked := o.asked.Load()
			query++
			search(t, g, toolsearch.Request{Query: fmt.Sprintf("query %d that nobody sent before", query), Detail: toolsearch.Names})
			return o.asked.Load() == asked
		})
		asked := o.asked.Load()
		for n := range 20 {
			search(t, g, toolsearch.Request{Query: fmt.Sprintf("another query %d", n), Detail: toolsearch.Names})
		}
		if now := o.asked.Load(); now != asked {
			t.Errorf("20 searches sent %d requests to the model", now-asked)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "embeddings", "trial-*.json")); err != nil || len(kept) != 1 {
		t.Errorf("%q, %v", kept, err)
	}
}

func (o *oracle) settings() *config.Embeddings {
	return &config.Embeddings{URL: o.web.URL, Model: "m", Headers: config.Secrets{"Authorization": "Bearer hunter2hunter2"}, Timeout: 5 * time.Second}
}

// TestEmbeddings: what shares no word with a query is found through an endpoint,
// from the next query after the settings name it, and search works when it is down.
func TestEmbeddings(t *testing.T) {
	o, log := newOracle(t), &records{}
	cfg := settings(map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc)})
	g := open(t, cfg, &gateway.Options{CacheDir: t.TempDir(), Logger: slog.New(log)})
	g.Catalog.WaitConnected(t.Context())
	finds := func(query string) bool {
		found := search(t, g, toolsearch.Request{Query: query, Detail: toolsearch.Names})
		return len(found.Tools) > 0 && found.Tools[0].ID.Name == "delete_notes"
	}
	if finds("bin them") {
		t.Fatal("it is found by words alone")
	}
	with := *cfg
	with.Search.Embeddings = o.settings()
	if err := g.Reload(&with); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it is found by meaning", 20*time.Second, func() bool { return finds("bin them") })
	if found := search(t, g, toolsearch.Request{Query: "bin them", Upstream: "calc", Detail: toolsearch.Names}); slices.ContainsFunc(found.Tools, func(f toolsearch.FoundTool) bool { return f.ID.Upstream != "calc" }) {
		t.Errorf("other upstreams: %+v", found.Tools)
	}
	o.down.Store(true)
	if found := search(t, g, toolsearch.Request{Query: "list notes"}); len(found.Tools) == 0 || found.Tools[0].ID.Name != "list_notes" {
		t.Errorf("while it is down: %+v", found)
	}
	said := log.find("embeddings endpoint fails; search uses words only")
	if len(said) != 1 || said[0]["reason"] != "HTTP 500" {
		t.Errorf("the log says %v", said)
	}
	if err := g.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	asked := o.asked.Load()
	if finds("bin them") || o.asked.Load() != asked {
		t.Error("it is asked after the settings dropped it")
	}
	broken := *cfg
	broken.Search.Embeddings = &config.Embeddings{Problem: "the variable KEY is not set"}
	if err := g.Reload(&broken); err != nil {
		t.Fatal(err)
	}
	if said := log.find("embeddings are not used"); len(said) != 1 || said[0]["reason"] != "the variable KEY is not set" {
		t.Errorf("the log says %v", said)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, r := range log.list {
		r.Attrs(func(a slog.Attr) bool {
			if text := fmt.Sprint(a.Value); strings.Contains(text, "bin them") || strings.Contains(text, "hunter2") {
				t.Errorf("the log has %s", text)
			}
			return true
		})
	}
}

// TestReloadLearning: learning is switched on and off without a restart, and what was learned stays.
func TestReloadLearning(t *testing.T) {
	cfg := desksSettings(t)
	g := open(t, cfg, &gateway.Options{CacheDir: t.TempDir()})
	g.Catalog.WaitConnected(t.Context())
	first, other := best(t, g, "create a ticket")
	use(t, g, "", "create a ticket", other, 5)
	off := *cfg
	off.Search.Learn = false
	for range 2 {
		wantFirst(t, g, "", "create a ticket", other)
		if err := g.Reload(&off); err != nil {
			t.Fatal(err)
		}
		wantFirst(t, g, "", "create a ticket", first)
		if err := g.Reload(cfg); err != nil {
			t.Fatal(err)
		}
	}
	if keys := g.Reloader.Settings().Restart; len(keys) > 0 {
		t.Errorf("a restart is asked for: %v", keys)
	}
}
