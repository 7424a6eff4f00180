package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

const noArgs = `"properties":{}`

// silent is an upstream that declares no result, but for one tool; answer is what the others say.
func silent(answer *atomic.Pointer[string]) func(*site) {
	say := func(json.RawMessage) *mcp.CallToolResult { return text(*answer.Load()) }
	return func(s *site) {
		s.tool("list_issues", "List issues.", noArgs, say)
		s.tool("other", "Do something else.", noArgs, say)
		s.add(&mcp.Tool{Name: "declared", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}, noArgs,
			func(json.RawMessage) *mcp.CallToolResult {
				return &mcp.CallToolResult{StructuredContent: map[string]any{"n": 1, "more": 2}}
			})
		s.add(&mcp.Tool{Name: "bare", OutputSchema: json.RawMessage(`{"type":"object"}`)}, noArgs,
			func(json.RawMessage) *mcp.CallToolResult {
				return &mcp.CallToolResult{StructuredContent: map[string]any{"n": 1}}
			})
		s.tool("fails", "Fail.", noArgs, func(json.RawMessage) *mcp.CallToolResult {
			r := text(`{"error":1}`)
			r.IsError = true
			return r
		})
	}
}

func says(value string) *atomic.Pointer[string] {
	p := &atomic.Pointer[string]{}
	p.Store(&value)
	return p
}

// signature is what a search tells of a tool.
func signature(t testing.TB, g *gateway.Gateway, id, language string) string {
	t.Helper()
	up, name, _ := strings.Cut(id, ".")
	found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Upstream: up, Language: language, Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Tools {
		if f.ID.Name == name {
			return strings.TrimPrefix(f.Text, id)
		}
	}
	t.Fatalf("%s is not found", id)
	return ""
}

func wantSignature(t testing.TB, g *gateway.Gateway, id, want string) {
	t.Helper()
	testutil.Eventually(t, id+want, soon, func() bool { return signature(t, g, id, "python") == want })
}

// stub is the wrapper of a tool as programs get it.
func stub(g *gateway.Gateway, path string) string { return string(g.Catalog.Tree()[path]) }

func wantStub(t testing.TB, g *gateway.Gateway, path, part string) {
	t.Helper()
	testutil.Eventually(t, path+" says "+part, soon, func() bool { return strings.Contains(stub(g, path), part) })
}

func TestObservedResults(t *testing.T) {
	answer := says(`[{"id":1,"at":"2024-01-01"}]`)
	g := open(t, settings(map[string]*site{"up": newSite(t, silent(answer))}), nil)
	g.Catalog.WaitConnected(t.Context())
	wantSignature(t, g, "up.list_issues", "() -> Any")
	before := stub(g, "up/other.py")
	mustCall(t, g, "up.list_issues")
	wantSignature(t, g, "up.list_issues", "() -> list[{at: str, id: int}]  # observed 1x")
	if got := signature(t, g, "up.list_issues", "typescript"); got != "(): Promise<{at: string, id: number}[]>  // observed 1x" {
		t.Error(got)
	}
	wantStub(t, g, "up/list_issues.py", "#: (date)\n    at: str\n    id: int\n")
	wantStub(t, g, "up/list_issues.py", "Result observed 1x, not declared")
	wantStub(t, g, "up/list_issues.ts", "/** (date) */\n  at: string;\n  id: number;\n")
	answer.Store(new(`[{"id":1,"title":"x"},{"id":null}]`))
	mustCall(t, g, "up.list_issues")
	wantSignature(t, g, "up.list_issues", "() -> list[{at?: str, id: int | None, title?: str}]  # observed 2x")
	wantStub(t, g, "up/list_issues.py", "title: NotRequired[str]")
	if found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "title"}); err != nil || len(found.Tools) != 1 || found.Tools[0].ID.Name != "list_issues" {
		t.Errorf("a search for what it returns finds %+v, %v", found.Tools, err)
	}
	if now := stub(g, "up/other.py"); now != before || strings.Contains(now, "observed") {
		t.Errorf("the wrapper of another tool: %s", now)
	}
}

func mustCall(t testing.TB, g *gateway.Gateway, id string) {
	t.Helper()
	if result, err := call(t, g, id, `{}`); err != nil || result.IsError {
		t.Fatalf("%s: %v, %s", id, err, result.Text())
	}
}

// TestNotObserved: what is declared is believed, what failed says nothing, and nothing but observed results changes.
func TestNotObserved(t *testing.T) {
	g := open(t, settings(map[string]*site{"up": newSite(t, silent(says("x")))}), nil)
	g.Catalog.WaitConnected(t.Context())
	before := g.Catalog.Tools()
	mustCall(t, g, "up.declared")
	if result, err := call(t, g, "up.fails", `{}`); err != nil || !result.IsError {
		t.Error(result, err)
	}
	mustCall(t, g, "up.bare") // looked at last, so the others would have been by then
	wantSignature(t, g, "up.bare", "() -> {n: int}  # observed 1x")
	for id, want := range map[string]string{"up.declared": "() -> {n: int}", "up.fails": "() -> Any", "up.other": "() -> Any"} {
		if got := signature(t, g, id, "python"); got != want {
			t.Errorf("%s%s, want %s", id, got, want)
		}
	}
	wantStub(t, g, "up/bare.py", "observed")
	after := g.Catalog.Tools()
	for i := range after {
		if after[i].Digest() != before[i].Digest() {
			t.Errorf("%s has another digest", after[i].ID)
		}
		if observed := after[i].ID.Name == "bare"; (after[i].Observed != nil) != observed {
			t.Errorf("%s: observed %v", after[i].ID, after[i].Observed)
		}
		after[i].Observed = nil
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	for _, up := range g.Catalog.Offers() {
		for _, tl := range up.Offer.Tools {
			if tl.Observed != nil {
				t.Errorf("the offer of %s has what was observed", tl.ID)
			}
		}
	}
}

// TestObservedAcrossRuns: what was learned is there after a restart, for the definition that it was learned of.
func TestObservedAcrossRuns(t *testing.T) {
	s := newSite(t, silent(says(`{"id":1}`)))
	cfg, opts := settings(map[string]*site{"up": s}), &gateway.Options{CacheDir: t.TempDir()}
	const learned = "() -> {id: int}  # observed 2x"
	for range 2 {
		g, err := gateway.Open(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		mustCall(t, g, "up.list_issues")
		mustClose(t, g)
	}
	g, err := gateway.Open(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	if got := signature(t, g, "up.list_issues", "python"); got != learned {
		t.Errorf("after two runs: %s", got)
	}
	if got := stub(g, "up/list_issues.py"); !strings.Contains(got, "observed 2x") {
		t.Errorf("the wrapper: %s", got)
	}
	s.tool("list_issues", "List issues, and more.", noArgs, echo)
	mustCall(t, g, "up.list_issues") // the definition is compared before it is sent: what is learned is of the new one
	wantSignature(t, g, "up.list_issues", "() -> dict[str, Any]  # observed 1x")
	wantStub(t, g, "up/list_issues.py", "observed 1x")
	mustClose(t, g)
}

// TestObserveCanBeTurnedOff leaves nothing behind, and shows nothing that was left.
func TestObserveCanBeTurnedOff(t *testing.T) {
	cfg, opts := settings(map[string]*site{"up": newSite(t, silent(says(`{"id":1}`)))}), &gateway.Options{CacheDir: t.TempDir()}
	for _, observe := range []bool{true, false} {
		cfg.Observe = observe
		g, err := gateway.Open(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		mustCall(t, g, "up.list_issues")
		mustCall(t, g, "up.other")
		if observe {
			wantSignature(t, g, "up.other", "() -> {id: int}  # observed 1x")
		} else if got := signature(t, g, "up.other", "python"); got != "() -> Any" {
			t.Error(got)
		}
		mustClose(t, g)
	}
	data, err := os.ReadFile(filepath.Join(opts.CacheDir, "shapes", "up.shapes"))
	if err != nil || strings.Count(string(data), `"n":1,`) != 2 {
		t.Errorf("%s, %v", data, err)
	}
}

// TestObservedOfDamage: a damaged file is logged and replaced.
func TestObservedOfDamage(t *testing.T) {
	cfg, dir := settings(map[string]*site{"up": newSite(t, silent(says(`{"id":1}`)))}), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "shapes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shapes", "up.shapes"), []byte("{}\n{"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &records{}
	g := open(t, cfg, &gateway.Options{CacheDir: dir, Logger: slog.New(log)})
	g.Catalog.WaitConnected(t.Context())
	mustCall(t, g, "up.list_issues")
	wantSignature(t, g, "up.list_issues", "() -> {id: int}  # observed 1x")
	if said := log.find("stored shapes are ignored"); len(said) != 1 {
		t.Errorf("the log says %v", said)
	}
}

// TestObservedHostileResults: nothing of a result but names that cannot be values
// reaches a file or a wrapper, and every wrapper can still be made and read.
func TestObservedHostileResults(t *testing.T) {
	var keys, emails strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, `"SECRET%c%c%c":%d,`, 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, i)
		fmt.Fprintf(&emails, `"SECRET%d@example.com":{"n":%d},`, i, i)
	}
	results := map[string]string{
		"large":   `{"text":"` + strings.Repeat("SECRET", 1_700_000) + `"}`,
		"deep":    strings.Repeat(`{"a":[`, 4_000) + `"SECRET"` + strings.Repeat(`]}`, 4_000),
		"wide":    "{" + keys.String() + `"z":0}`,
		"mail":    "{" + emails.String() + `"z":0}`,
		"odd":     "{\"SECRET\\n\\\"\\\"\\\"\\u202e*/`${1}\\\\\\u2028\":1,\"__proto__\":{\"constructor\":{\"__class__\":1}}}",
		"tags":    "{\"SECRET\U000e0041\":1}",
		"words":   `{"class":1,"def":2,"Any":3,"list":4,"str":"x","import":[null],"True":1.5,"Blob":1,"self":{"self":{"Result":1}}}`,
		"lone":    `{"SECRET\ud800":1,"b":"\ud800"}`,
		"numbers": `{"n":[1e999,-0,123456789012345678901234567890],"m":1E5}`,
		"doubles": "{" + strings.Repeat(`"a":1,"a":{"SECRET 1":1},`, 1000) + `"a":"x"}`,
		"names":   `[` + strings.Repeat(`{"a":{"b":[{"c":{"a":{"b":1}}}]}},`, 500) + `1]`,
		"list_":   "[" + strings.Repeat(`"SECRET",`, 100_000) + `0]`,
	}
	cfg, dir := withRunsc(t, settings(map[string]*site{"up": newSite(t, func(s *site) {
		for name, result := range results {
			s.tool(name, "", "", func(json.RawMessage) *mcp.CallToolResult { return text(result) })
		}
	})})), t.TempDir()
	cfg.Upstreams[0].Timeout = time.Minute // for the large one, on a busy machine
	g := open(t, cfg, &gateway.Options{CacheDir: dir})
	g.Catalog.WaitConnected(t.Context())
	for name := range results {
		mustCall(t, g, "up."+name)
		wantStub(t, g, "up/"+name+".py", "observed")
	}
	for path, data := range g.Catalog.Tree() {
		if strings.Contains(string(data), "SECRET") {
			t.Errorf("%s has a value: %.300s", path, data)
		}
		if len(data) > 200_000 {
			t.Errorf("%s has %d bytes", path, len(data))
		}
	}
	for name := range results {
		for _, lang := range []string{"python", "typescript"} {
			if s := signature(t, g, "up."+name, lang); len(s) > 1500 || strings.ContainsAny(s, "\n\u202e") {
				t.Errorf("%s: %.300q", name, s)
			}
		}
	}
	var python, typescript strings.Builder
	for name := range results {
		fmt.Fprintf(&python, "from servers.up import %s\n", name)
		fmt.Fprintf(&typescript, "import { %s } from \"servers/up\"; typeof %s;\n", name, name)
	}
	wantText(t, execute(t, g, "python", python.String()+"print('ok')"), sandbox.OK, "ok")
	wantText(t, execute(t, g, "typescript", typescript.String()+"console.log('ok')"), sandbox.OK, "ok")
	mustClose(t, g)
	noSecrets(t, filepath.Join(dir, "shapes"))
}

// noSecrets looks for SECRET in every file.
func noSecrets(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "SECRET") || len(data) > 8<<20 {
			t.Errorf("%s has a value, or %d bytes: %.300s", path, len(data), data)
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestObservedWhileProgramsRun: wrappers change while a program runs, which continues with its own.
func TestObservedWhileProgramsRun(t *testing.T) {
	answer := says(`{"id":1}`)
	g := open(t, withRunsc(t, settings(map[string]*site{"up": newSite(t, silent(answer))})), nil)
	g.Catalog.WaitConnected(t.Context())
	const program = `
import time
from servers.up import list_issues, other
seen = [list_issues()["id"] for _ in range(30)]
time.sleep(0.6)  # meanwhile the wrappers are made anew
print(sum(seen), other(), shape_of(other()))
`
	wantText(t, execute(t, g, "python", "from sallyport import shape_of"+program), sandbox.OK, "30 {'id': 1} {id: int}")
	wantSignature(t, g, "up.list_issues", "() -> {id: int}  # observed 20x")
	wantStub(t, g, "up/list_issues.py", "observed 20x")
}

// BenchmarkObserve is a call in this process, of a tool whose result is declared,
// which is not looked at, and of one whose is not: the difference is what learning costs.
func BenchmarkObserve(b *testing.B) {
	record := `{"items":[` + strings.Repeat(`{"id":1,"name":"x","labels":["a","b"],"at":"2024-01-01T00:00:00Z"},`, 100) + `{"id":2}]}`
	s := newSite(b, func(s *site) {
		answer := func(json.RawMessage) *mcp.CallToolResult { return text(record) }
		s.tool("silent", "", "", answer)
		s.add(&mcp.Tool{Name: "declared", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, "",
			func(json.RawMessage) *mcp.CallToolResult {
				r := text(record)
				r.StructuredContent = map[string]any{}
				return r
			})
	})
	g := open(b, settings(map[string]*site{"up": s}), nil)
	g.Catalog.WaitConnected(b.Context())
	for _, name := range []string{"declared", "silent"} {
		b.Run(name, func(b *testing.B) {
			testutil.Measure(b, func() error {
				_, err := g.Call(context.Background(), tool.Call{Tool: tool.ID{Upstream: "up", Name: name}, Args: json.RawMessage(`{}`)})
				return err
			})
		})
	}
}
