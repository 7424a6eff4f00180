package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestCallChecksArguments(t *testing.T) {
	s := newSite(t, calc, func(s *site) {
		s.tool("closed", "", `"required":["path"],"properties":{"path":{"type":"string"},"depth":{"type":"integer","minimum":1}},"additionalProperties":false`, echo)
		s.tool("open", "", `"required":["path"],"properties":{"path":{"type":"string"}},"additionalProperties":true`, echo)
		s.tool("silent", "", `"properties":{"path":{"type":"string"}}`, echo)
		s.tool("combined", "", `"properties":{"path":{"type":"string"}},"allOf":[{"properties":{"depth":{"type":"integer"}}}]`, echo)
		s.tool("looks_ahead", "", `"properties":{"name":{"type":"string","pattern":"^(?!x).*$"}}`, echo)
		s.tool("odd", "", `"properties":["not","an","object"]`, echo)
		s.tool("nothing", "", `"properties":{},"additionalProperties":false`, echo)
		s.tool("deep", "", `"properties":{"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, echo)
	})
	g := open(t, settings(map[string]*site{"up": s}), nil)
	for _, test := range []struct{ tool, args, want string }{
		{"closed", `{}`, "wrong arguments: missing property 'path' (parameters: depth, path)"},
		{"closed", `{"path":7}`, "wrong arguments: path: got number, want string (parameters: depth, path)"},
		{"closed", `{"path":"x","depth":0}`, "depth: minimum: got 0, want 1"},
		{"closed", `{"paht":"x"}`, `unknown parameter "paht" (did you mean path? parameters: depth, path)`},
		{"closed", `{"zzz":1,"aaa":1}`, `unknown parameter "aaa" (parameters: depth, path)`},
		{"closed", `{"path":"x"}`, ""},
		{"open", `{"path":"x","other":1}`, ""},
		{"open", `{"paht":"x"}`, "missing property 'path' (did you mean path?"},
		{"silent", `{"paht":"x"}`, `unknown parameter "paht" (did you mean path?`},
		{"silent", `{"Path":"x"}`, ""}, // another form of the name
		{"silent", ``, ""},
		{"silent", ` null `, ""},
		{"combined", `{"path":"x","depth":1}`, ""},
		{"combined", `{"path":"x","depth":"deep"}`, "depth: got string, want integer"},
		{"looks_ahead", `{"name":7}`, ""},
		{"looks_ahead", `{"naem":7}`, "did you mean name?"},
		{"odd", `{"anything":7}`, ""},
		{"nothing", `{"anything":7}`, "additional properties 'anything' not allowed"},
		{"nothing", `{}`, ""},
		{"deep", `{"list":[{"n":1},{"n":"x"}]}`, "list.1.n: got string, want integer"},
		{"deep", `[]`, "arguments must be one JSON object"},
		{"deep", `{} {}`, "arguments must be one JSON object"},
		{"deep", `{"list":`, "arguments must be one JSON object"},
	} {
		before := s.hits.Load()
		result, err := call(t, g, "up."+test.tool, test.args)
		if test.want == "" {
			if err != nil || result.IsError {
				t.Errorf("%s(%s): %v, %s", test.tool, test.args, err, result.Text())
			}
			continue
		}
		wantError(t, err, tool.Invalid, test.want)
		if s.hits.Load() != before {
			t.Errorf("%s(%s) reached the upstream", test.tool, test.args)
		}
	}
}

func TestSchemasAreNeverFetched(t *testing.T) {
	var hits atomic.Int32
	canary := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		fmt.Fprint(w, `{"type":"string"}`)
	}))
	defer canary.Close()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(s *site) {
		for i, schema := range []string{
			`"$ref":"` + canary.URL + `/a"`, `"$schema":"` + canary.URL + `/b"`, `"properties":{"x":{"$ref":"` + canary.URL + `/c#/x"}}`,
			`"$id":"` + canary.URL + `/d","properties":{"x":{"$ref":"e"}}`, `"$dynamicRef":"` + canary.URL + `/f"`,
			`"properties":{"x":{"$ref":"file://` + file + `"}}`, `"properties":{"x":{"$ref":"` + file + `"}}`,
		} {
			s.tool(fmt.Sprint("t", i), "", schema, echo)
		}
	})
	g := open(t, settings(map[string]*site{"up": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	if len(g.Catalog.Tools()) != 7 {
		t.Fatalf("tools: %v", g.Catalog.Tools())
	}
	for i := range 7 {
		if result, err := call(t, g, fmt.Sprint("up.t", i), `{"x":7}`); err != nil || result.Text() != `{"x":7}` {
			t.Errorf("t%d: %v, %v", i, result, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the canary was asked %d times", hits.Load())
	}
}

// TestHostileSchemasAreHarmless calls tools whose schemas or arguments would keep
// the checker busy for ever, overflow its stack, or make it panic.
func TestHostileSchemasAreHarmless(t *testing.T) {
	doubling := `"properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d40":{"type":"integer","minimum":5}}`
	chain := `"properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 2400 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	chain += `"d2400":{"properties":{"x":{"$ref":"#/$defs/d0"}}}}`
	s := newSite(t, func(s *site) {
		s.alter = strings.NewReplacer("111222", "1e9999999", "333444", "1e-9999999",
			`{"title":"NEST"}`, strings.Repeat(`{"items":`, 500)+`{}`+strings.Repeat(`}`, 500))
		s.tool("doubling", "", doubling, echo)
		s.tool("chain", "", chain, echo)
		s.tool("minimum", "", `"properties":{"x":{"minimum":0},"y":{"uniqueItems":true},"z":{"items":{"minimum":0}}}`, echo)
		s.tool("numbers", "", `"properties":{"x":{"minimum":111222}}`, echo)
		s.tool("multiple", "", `"properties":{"x":{"multipleOf":333444}}`, echo)
		s.tool("itself", "", `"properties":{"x":{"$ref":"#/properties/x"}}`, echo)
		s.tool("nested", "", `"properties":{"x":{"title":"NEST"}}`, echo)
	})
	var distinct strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&distinct, "%d,", i)
	}
	g := open(t, settings(map[string]*site{"up": s}), nil)
	for _, test := range []struct{ tool, args string }{
		{"doubling", `{"x":1}`},
		{"chain", strings.Repeat(`{"x":`, 30) + `1` + strings.Repeat(`}`, 30)},
		{"chain", strings.Repeat(`{"x":`, 900) + `1` + strings.Repeat(`}`, 900)},
		{"minimum", `{"x":1e9999999}`},
		{"minimum", `{"x":1e999999}`},
		{"minimum", `{"y":[` + strings.Repeat(`1e9999999,`, 30) + `1]}`},
		{"minimum", `{"x":` + strings.Repeat("9", 200_000) + `}`},
		{"minimum", `{"z":[` + strings.Repeat(`1e999999,`, 2000) + `1]}`},
		{"numbers", `{"x":1}`},
		{"multiple", `{"x":1}`},
		{"nested", `{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`},
		{"minimum", `{"y":[` + distinct.String() + `1e9]}`},
	} {
		begin := time.Now()
		if _, err := call(t, g, "up."+test.tool, test.args); err != nil {
			t.Errorf("%s(%.40s): %.200v", test.tool, test.args, err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s(%.40s) took %v", test.tool, test.args, took)
		}
	}
	_, err := call(t, g, "up.itself", `{"x":1}`)
	wantError(t, err, tool.Invalid, "wrong arguments")
}

func TestCallOfWhatIsNotThere(t *testing.T) {
	g, _ := office(t)
	for _, test := range []struct {
		id, want string
	}{
		{"my_notes.creat_note", "there is no tool my_notes.creat_note (did you mean my_notes.create_note?)"},
		{"my_notes.zzz", "there is no tool my_notes.zzz (find it with search_tools)"},
		{"clac.add", "there is no upstream clac (did you mean calc?)"},
		{"zzz.add", "there is no upstream zzz (find it with search_tools)"},
		{"ca\x1b[31mlc\u202e.add", "there is no upstream calc ("},
	} {
		_, err := call(t, g, test.id, `{}`)
		wantError(t, err, tool.NotFound, test.want)
	}
}

func TestCallPassesThrough(t *testing.T) {
	g, _ := office(t)
	result, err := call(t, g, "calc.fail", `{}`)
	if err != nil || !result.IsError || !strings.Contains(result.Text(), "ledger") {
		t.Errorf("fail: %+v, %v", result, err)
	}
	const big = `{"n":9007199254740993,"m":123456789012345678901234567890}`
	if result, err = call(t, g, "calc.echo", big); err != nil || result.Text() != big {
		t.Errorf("echo: %+v, %v", result, err)
	}
	if result, err = call(t, g, "calc.picture", ""); err != nil || len(result.Content) != 1 || string(result.Content[0].Data) != "\x89PNG...." || result.Content[0].MIME != "image/png" {
		t.Errorf("picture: %+v, %v", result, err)
	}
	if result, err = call(t, g, "my_notes.delete_notes", "{}"); err != nil || result.Text() != "gone" {
		t.Errorf("a tool whose name on the wire is another: %+v, %v", result, err)
	}
}

func TestDeadUpstreamHurtsOnlyItself(t *testing.T) {
	g, sites := office(t)
	sites["my-notes"].web.CloseClientConnections()
	sites["my-notes"].down.Store(true)
	_, err := call(t, g, "my_notes.list_notes", `{}`)
	wantError(t, err, tool.Upstream)
	if result, err := call(t, g, "calc.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" {
		t.Errorf("the other upstream: %v, %v", result, err)
	}
}

func TestUpstreamThatWasDownComesBack(t *testing.T) {
	s := newSite(t, calc)
	s.down.Store(true)
	g := open(t, settings(map[string]*site{"calc": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.Upstream, "calc")
	s.down.Store(false)
	testutil.Eventually(t, "a call wakes the upstream", 3*time.Second, func() bool {
		result, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
		return err == nil && result.Text() == "3"
	})
}

func TestUpstreamIsTriedAgainUnasked(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	s.down.Store(true)
	g := open(t, settings(map[string]*site{"calc": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "add numbers"})
	if err != nil || len(found.Tools) != 0 || len(found.Upstreams) != 1 || !strings.Contains(found.Upstreams[0].Problem, "503") {
		t.Fatalf("found %+v, %v", found, err)
	}
	s.down.Store(false)
	testutil.Eventually(t, "a search finds its tools", 5*time.Second, func() bool {
		found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "add numbers"})
		return err == nil && len(found.Tools) > 0 && found.Tools[0].ID.String() == "calc.add" && len(found.Upstreams) == 0
	})
}

// TestSlowUpstreamsKeepNobodyWaiting has more upstreams that hang than may be started at once.
func TestSlowUpstreamsKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	slow := newSite(t)
	slow.hang.Store(true)
	cfg := settings(nil)
	for i := range 20 {
		cfg.Upstreams = append(cfg.Upstreams, upstreamOf(fmt.Sprint("slow", i), slow.web.URL))
	}
	quick := newSite(t, calc)
	for i := range 10 { // in no matter which order they are tried, some stand behind slow ones
		cfg.Upstreams = slices.Insert(cfg.Upstreams, i*3, upstreamOf(fmt.Sprint("calc", i), quick.web.URL))
	}
	g := open(t, cfg, &gateway.Options{ConnectWait: time.Millisecond})
	begin := time.Now()
	if result, err := call(t, g, "calc1.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" || time.Since(begin) > 15*time.Second {
		t.Errorf("a call: %v, %v, after %v", result, err, time.Since(begin))
	}
	testutil.Eventually(t, "the upstreams among them are found", 20*time.Second, func() bool { return len(g.Catalog.Tools()) == 10*4 })
	found, err := g.Searcher.Search(t.Context(), toolsearch.Request{})
	if err != nil || len(found.Upstreams) != 30 || found.Upstreams[1].Problem != "still connecting" {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestConcurrentCalls(t *testing.T) {
	g, _ := office(t)
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			args := fmt.Sprintf(`{"a":%d,"b":1}`, i)
			if result, err := call(t, g, "calc.add", args); err != nil || result.Text() != fmt.Sprint(i+1) {
				t.Errorf("add(%s): %v, %v", args, result, err)
			}
			if _, err := call(t, g, "my_notes.create_note", fmt.Sprintf(`{"title":"note %d"}`, i)); err != nil {
				t.Error(err)
			}
			if _, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "note"}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	result, err := call(t, g, "my_notes.list_notes", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Notes []json.RawMessage }
	if err := json.Unmarshal(result.Structured, &all); err != nil || len(all.Notes) != 40 {
		t.Errorf("%d notes, %v", len(all.Notes), err)
	}
}
