package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// readAudit returns what is on record in a data directory, without the beginning of each process.
func readAudit(t *testing.T, data string) (all []audit.Record) {
	t.Helper()
	for r, err := range audit.Read(audit.Dir(data), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != audit.LogOpened {
			all = append(all, r)
		}
	}
	return all
}

// TestAudit: a program, its calls and what they came to are on record in their order, by whom and how, and nothing
// that was said.
func TestAudit(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc), "notes": newSite(t, notes)}))
	cfg.Audit = config.Default().Audit
	cfg.Audit.Code = config.AuditText
	data := t.TempDir()
	g := open(t, cfg, &gateway.Options{DataDir: data, Purpose: "serve"})
	ctx := tool.WithClient(tool.WithSession(tool.WithPrincipal(t.Context(), "token:ada"), "client-1"), "tester 1.0")
	secret := "ada.lovelace@example.org"
	code := "from servers.calc import add, fail\n# " + secret + "\nx = add(a=41, b=1)\ntry: fail()\nexcept Exception: pass\nimport sys; sys.exit(3)"
	e, err := g.Executor.Execute(ctx, execution.Program{Code: code})
	if err != nil || e.Status != sandbox.Exited {
		t.Fatal(err, e.Text())
	}
	if _, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: []byte(`{"title":"` + secret + `"}`)}); err != nil {
		t.Error(err)
	}
	all := readAudit(t, data)
	var kinds []string
	for _, r := range all {
		kinds = append(kinds, string(r.Kind)+" "+r.Tool+" "+r.Decision+r.Outcome)
		if r.Principal != "token:ada" || r.Client != "tester 1.0" || len(r.Session) != 16 || strings.Contains(r.Session, "client") {
			t.Errorf("whose is it: %s", r.Line)
		}
		if strings.Contains(string(r.Line), "lovelace") || strings.Contains(string(r.Line), "client-1") {
			t.Errorf("it tells too much: %s", r.Line)
		}
	}
	want := []string{"execution.start  ", "call calc.add allow", "result calc.add ok", "call calc.fail allow", "result calc.fail failed", "execution.end  exited"}
	if len(kinds) < len(want) || !slices.Equal(kinds[:len(want)], want) {
		t.Fatalf("%q", kinds)
	}
	start, add, result, end := all[0], all[1], all[2], all[5]
	if start.Code != sum(code) || !strings.Contains(start.Text, "[EMAIL]") || start.Language != "python" || !strings.Contains(start.Limits, "timeout=") || start.Execution != e.ID {
		t.Errorf("%s", start.Line)
	}
	if len(add.Arguments) != 32 || add.Arguments == sum(`{"a":41,"b":1}`)[:32] || add.Definition == "" || result.Micros <= 0 || result.Bytes != 2 {
		t.Errorf("%s\n%s", add.Line, result.Line)
	}
	if end.Exit != 3 || end.Calls != 2 || end.Micros <= 0 || end.Execution != e.ID {
		t.Errorf("%s", end.Line)
	}
	if got, err := audit.Verify(audit.Dir(data), nil); err != nil || !got.OK() {
		t.Errorf("%+v %v", got, err)
	}
}

// TestNothingWithoutAudit: while the record cannot be written, no program runs and no call is made; both work again when it can.
func TestNothingWithoutAudit(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	cfg := settings(map[string]*site{"calc": newSite(t, func(s *site) {
		s.tool("touch", "", "", func(json.RawMessage) *mcp.CallToolResult { made.Add(1); return text("ok") })
	})})
	cfg.Audit = config.Default().Audit
	data := filepath.Join(t.TempDir(), "data")
	g := open(t, cfg, &gateway.Options{DataDir: data})
	g.Catalog.WaitConnected(t.Context())
	if _, err := call(t, g, "calc.touch", `{}`); err != nil {
		t.Fatal(err)
	}
	dir := audit.Dir(data)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := open(t, cfg, &gateway.Options{DataDir: data})
	second.Catalog.WaitConnected(t.Context())
	_, err := call(t, second, "calc.touch", `{}`)
	wantError(t, err, tool.Internal, "cannot be put on record")
	_, err = second.Executor.Execute(t.Context(), execution.Program{Code: "let = ;", Language: "ts"})
	wantError(t, err, tool.Internal, "cannot be put on record")
	if n := made.Load(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, second, "calc.touch", `{}`); err != nil {
		t.Error(err)
	}
	if got, err := audit.Verify(dir, nil); err != nil || !got.OK() || got.Count != 6 { // two log.opened, two calls with results
		t.Errorf("%+v %v", got, err)
	}
}

// TestAuditRequired: with enabled: true nothing starts where nothing can be recorded, without it it does.
func TestAuditRequired(t *testing.T) {
	t.Parallel()
	cfg := settings(nil)
	cfg.Audit = config.Audit{Required: true}
	if _, err := gateway.Open(cfg, nil); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Errorf("%v", err)
	}
	cfg.Audit = config.Audit{Off: true}
	data := t.TempDir()
	g := open(t, cfg, &gateway.Options{DataDir: data})
	if _, err := g.Executor.Execute(t.Context(), execution.Program{Code: "let = ;", Language: "ts"}); err != nil {
		t.Error(err)
	}
	if all := readAudit(t, data); len(all) > 0 {
		t.Errorf("%s", all[0].Line)
	}
}

// TestKeepAudit: a gateway that serves puts its settings on record and copies the record to the store, also what is missing there.
func TestKeepAudit(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	write := func(text string) *config.Config {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	records := store.Memory()
	var sent atomic.Int32
	collector := tlstest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent.Add(int32(strings.Count(string(body), `"eventName"`)))
	}))
	t.Cleanup(collector.Close)
	sinks := "upstreams: {}\naudit: {sinks: {otlp: {url: \"" + collector.URL + "\"}}}\n"
	cfg := write(sinks)
	g := open(t, cfg, &gateway.Options{DataDir: data, Records: records})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { g.Auditor.MaintainAudit(ctx) })
	waitFor(t, "what is on record", func() bool { return len(readAudit(t, data)) >= 2 })
	if err := g.Reload(write(sinks + "policy: {default: deny}\n")); err != nil {
		t.Fatal(err)
	}
	copied, err := audit.NewMirror(records, "", cfg.Audit.Keep, int64(cfg.Audit.Size))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "what is on record", func() bool {
		seq, _, err := copied.Last(t.Context())
		return err == nil && seq == 5 && sent.Load() == 5
	})
	cancel()
	work.Wait()
	all := readAudit(t, data)
	if len(all) != 4 || all[0].Kind != audit.SettingsChanged || all[0].Before != "" || all[2].Before != all[0].After || all[2].After == all[2].Before || all[3].Kind != audit.PolicyChanged {
		t.Errorf("%+v", all)
	}
	got, err := audit.Verify(audit.Dir(data), &audit.Checks{Mirror: copied.Lines(t.Context())})
	if err != nil || !got.OK() || got.Mirrored != 5 {
		t.Errorf("%+v %v", got, err)
	}
	// Somebody removes the record, and a gateway begins anew: that is on record from then on.
	if err := os.RemoveAll(audit.Dir(data)); err != nil {
		t.Fatal(err)
	}
	next := open(t, cfg, &gateway.Options{DataDir: data, Records: records})
	ctx, cancel = context.WithCancel(t.Context())
	defer work.Wait()
	defer cancel()
	work.Go(func() { next.Auditor.MaintainAudit(ctx) })
	waitFor(t, "what is on record", func() bool {
		return slices.ContainsFunc(readAudit(t, data), func(r audit.Record) bool { return r.Kind == audit.LogGap && r.Through == 5 })
	})
	if got, err := audit.Verify(audit.Dir(data), nil); err != nil || got.OK() {
		t.Errorf("%+v %v", got, err)
	}
}
