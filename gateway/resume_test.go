package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// ledger is an upstream whose calls count: what was done, by its arguments.
type ledger struct {
	*site
	mu     sync.Mutex
	booked map[string]int
	// broken has book report a failure.
	broken bool
}

func newLedger(t testing.TB) *ledger {
	t.Helper()
	l := &ledger{booked: map[string]int{}}
	l.site = newSite(t, func(s *site) {
		s.tool("book", "Book an entry.", `"required":["name"],"properties":{"name":{"type":"string"}}`, l.book)
		s.add(&mcp.Tool{Name: "total", Description: "Count the entries.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, "", func(json.RawMessage) *mcp.CallToolResult {
			l.mu.Lock()
			defer l.mu.Unlock()
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"total": len(l.booked)}}
		})
	})
	return l
}

func (l *ledger) book(args json.RawMessage) *mcp.CallToolResult {
	var in struct{ Name string }
	if err := json.Unmarshal(args, &in); err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		r := text("the ledger is closed for " + in.Name)
		r.IsError = true
		return r
	}
	l.booked[in.Name]++
	return text("booked " + in.Name)
}

func (l *ledger) breaks(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

// forget forgets what was booked.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.booked)
}

// want checks how often each entry was booked: "a b b" is a once and b twice.
func (l *ledger) want(t *testing.T, entries string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	want := map[string]int{}
	for name := range strings.FieldsSeq(entries) {
		want[name]++
	}
	for name, n := range l.booked {
		if want[name] != n {
			t.Errorf("%s was booked %d times, want %d", name, n, want[name])
		}
	}
	for name, n := range want {
		if l.booked[name] != n {
			t.Errorf("%s was booked %d times, want %d", name, l.booked[name], n)
		}
	}
	clear(l.booked)
}

// resuming is a gateway whose programs can be resumed.
func resuming(t *testing.T, change func(*config.Config)) (*gateway.Gateway, *ledger) {
	t.Helper()
	l := newLedger(t)
	cfg := withRunsc(t, settings(map[string]*site{"ledger": l.site}))
	cfg.Sandbox.Timeout = 20 * time.Second
	if change != nil {
		change(cfg)
	}
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir(), NoPool: true})
	g.Catalog.WaitConnected(t.Context())
	return g, l
}

func runWith(ctx context.Context, t *testing.T, g *gateway.Gateway, p execution.Program, status sandbox.Status, says ...string) execution.Result {
	t.Helper()
	e, err := g.Executor.Execute(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	said := e.Text()
	if e.Status != status {
		t.Fatalf("status %s, want %s:\n%s", e.Status, status, said)
	}
	for _, s := range says {
		if !strings.Contains(said, s) {
			t.Errorf("it does not say %q:\n%s", s, said)
		}
	}
	return e
}

// TestResume: what a program did is not done again, in either language, with the same code or with mended code; the
// execution that resumes can be resumed itself.
func TestResume(t *testing.T) {
	t.Parallel()
	g, l := resuming(t, nil)
	ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "client-1")
	const python = "from servers.ledger import book, total\nfrom sallyport import parallel\nprint(book(name='a'))\nprint(parallel(*[lambda n=n: book(name=n) for n in ('b','c','d')]))\nn = total()['total']\n"
	t.Run("python", func(t *testing.T) {
		failed := runWith(ctx, t, g, execution.Program{Code: python + "raise ValueError(n)"}, sandbox.Failed, "ValueError: 4", "no call is repeated")
		l.want(t, "a b c d")
		twice := runWith(ctx, t, g, execution.Program{Resume: failed.ID}, sandbox.Failed, "booked a", "ValueError: 4", "5 calls answered from the journal of "+failed.ID)
		l.want(t, "")
		mended := runWith(ctx, t, g, execution.Program{Resume: twice.ID, Code: python + "print(book(name='e'), n)"}, sandbox.OK, "booked e 4", "5 calls answered from the journal of "+twice.ID)
		l.want(t, "e")
		for id, says := range map[string]string{failed.ID: failed.ID + " was resumed by " + twice.ID, twice.ID: twice.ID + " was resumed by " + mended.ID} {
			_, err := g.Executor.Execute(ctx, execution.Program{Resume: id})
			wantError(t, err, tool.Invalid, says)
		}
		runWith(ctx, t, g, execution.Program{Resume: mended.ID}, sandbox.OK, "booked e 4", "6 calls answered from the journal of "+mended.ID) // its answer was lost
		l.want(t, "")
		r, err := g.History.Record(ctx, mended.ID)
		if err != nil || r.Resumes != twice.ID || r.Made != 6 || !r.Calls[0].Replayed || r.Calls[5].Replayed {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		code := "import { book } from 'servers/ledger';\nconst r = await Promise.all(['a', 'b'].map((name) => book({ name })));\nconsole.log(r.join());\nthrow new Error('no');"
		failed := runWith(ctx, t, g, execution.Program{Code: code, Language: "ts"}, sandbox.Failed, "booked a,booked b")
		l.want(t, "a b")
		runWith(ctx, t, g, execution.Program{Resume: failed.ID}, sandbox.Failed, "booked a,booked b", "2 calls answered")
		l.want(t, "")
	})
	t.Run("variables and a failure that it died of", func(t *testing.T) {
		code := "from servers.ledger import book\nfor n in names:\n    print(book(name=n))"
		l.breaks(true)
		names := map[string]json.RawMessage{"names": json.RawMessage(`["a","b"]`)}
		failed := runWith(ctx, t, g, execution.Program{Code: code, Variables: names}, sandbox.Failed, "the ledger is closed for a")
		if strings.Contains(failed.Text(), "resume") {
			t.Errorf("it has done nothing: %s", failed.Text())
		}
		l.breaks(false)
		runWith(ctx, t, g, execution.Program{Resume: "last"}, sandbox.OK, "booked a\nbooked b")
		l.want(t, "a b")
	})
	t.Run("a failure that it survived", func(t *testing.T) {
		code := "from servers.ledger import book, total\nfrom sallyport import ToolError\ntry: book(name='x')\nexcept ToolError as e: print('survived', e)\ntotal()\nif not ok: 1/0\nprint(book(name='z'))"
		l.breaks(true)
		failed := runWith(ctx, t, g, execution.Program{Code: code, Variables: map[string]json.RawMessage{"ok": json.RawMessage(`false`)}}, sandbox.Failed, "survived")
		l.breaks(false)
		runWith(ctx, t, g, execution.Program{Resume: failed.ID, Variables: map[string]json.RawMessage{"ok": json.RawMessage(`true`)}}, sandbox.OK, "survived the ledger is closed", "booked z")
		l.want(t, "z")
	})
	t.Run("another", func(t *testing.T) {
		failed := runWith(ctx, t, g, execution.Program{Code: python + "1/0"}, sandbox.Failed)
		l.want(t, "a b c d")
		for _, other := range []string{"", "bob", "ADA"} {
			_, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), other), execution.Program{Resume: failed.ID})
			wantError(t, err, tool.NotFound, "there is no execution "+failed.ID)
		}
		for _, id := range []string{"e-nothing", "../ada/" + failed.ID, "\x1b[2J", strings.Repeat("e", 1000)} {
			_, err := g.Executor.Execute(ctx, execution.Program{Resume: id})
			wantError(t, err, tool.NotFound, "there is no execution")
		}
	})
}

// TestResumeOtherwise: a program that does something else than it did is told so, and does nothing; one with new code may,
// and is told what it did not ask for again.
func TestResumeOtherwise(t *testing.T) {
	t.Parallel()
	g, l := resuming(t, nil)
	code := "from servers.ledger import book\nimport uuid\nprint(book(name='a'))\nbook(name=str(uuid.uuid4()))\nprint(book(name='c'))\n1/0"
	failed := runWith(t.Context(), t, g, execution.Program{Code: code}, sandbox.Failed)
	l.forget()
	e := runWith(t.Context(), t, g, execution.Program{Resume: failed.ID}, sandbox.Failed, "ToolError: call 2 differs from the journal of "+failed.ID, "ledger.book has other arguments", "the program depends on time, chance or files")
	l.want(t, "")
	runWith(t.Context(), t, g, execution.Program{Resume: e.ID, Code: "from servers.ledger import book\nprint(book(name='c'), book(name='new'))"}, sandbox.OK,
		"booked c booked new", "1 call answered from the journal", "2 calls of "+e.ID+" not asked for again, and not undone: ledger.book, ledger.book")
	l.want(t, "new")
}

// TestResumeAtOnce: of several that resume one execution at the same time one does.
func TestResumeAtOnce(t *testing.T) {
	t.Parallel()
	g, l := resuming(t, nil)
	failed := runWith(t.Context(), t, g, execution.Program{Code: "from servers.ledger import book\nbook(name='a')\n1/0"}, sandbox.Failed)
	var work sync.WaitGroup
	won := make(chan string, 8)
	for range cap(won) {
		work.Go(func() {
			e, err := g.Executor.Execute(t.Context(), execution.Program{Resume: failed.ID, Code: "from servers.ledger import book\nbook(name='a')\nbook(name='b')"})
			if err == nil {
				won <- e.ID
			} else if tool.AsError(err).Kind != tool.Invalid || !strings.Contains(err.Error(), failed.ID) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if len(won) != 1 {
		t.Errorf("%d resumed it", len(won))
	}
	l.want(t, "a b")
}

// TestResumeWithoutResults: where the settings keep no results, nothing is made twice without leave.
func TestResumeWithoutResults(t *testing.T) {
	t.Parallel()
	g, l := resuming(t, func(cfg *config.Config) { cfg.Journal.Keep, cfg.Approval.Wait = 0, 10*time.Millisecond })
	failed := runWith(t.Context(), t, g, execution.Program{Code: "from servers.ledger import book\nbook(name='a')\n1/0"}, sandbox.Failed)
	if strings.Contains(failed.Text(), "resume") {
		t.Error(failed.Text())
	}
	runWith(t.Context(), t, g, execution.Program{Resume: failed.ID}, execution.Held, "ledger.book (it was done in "+failed.ID)
	l.want(t, "a")
}
