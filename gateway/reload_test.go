package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// waiter is an upstream whose tool waits until it is let go.
func waiter(t *testing.T) (s *site, begun chan struct{}, letGo func()) {
	t.Helper()
	begun, free := make(chan struct{}, 10), make(chan struct{})
	letGo = sync.OnceFunc(func() { close(free) })
	t.Cleanup(letGo)
	s = newSite(t, func(s *site) {
		s.tool("wait", "", "", func(json.RawMessage) *mcp.CallToolResult {
			begun <- struct{}{}
			<-free
			return text("done")
		})
	})
	return s, begun, letGo
}

// TestReload adds, removes, changes and keeps, while calls are under way.
func TestReload(t *testing.T) {
	kept, begunKept, freeKept := waiter(t)
	changed, begunChanged, freeChanged := waiter(t)
	cfg := settings(nil)
	cfg.Upstreams = []config.Upstream{upstreamOf("kept", kept.web.URL), upstreamOf("changed", changed.web.URL), upstreamOf("removed", newSite(t, notes).web.URL)}
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	var seen atomic.Int32
	stop := g.Catalog.Watch(func() { seen.Add(1) })
	defer stop()
	session := g.Catalog.Upstreams()[0].State.Since

	var calls sync.WaitGroup
	for _, id := range []string{"kept.wait", "changed.wait"} {
		calls.Go(func() {
			if result, err := call(t, g, id, ""); err != nil || result.Text() != "done" {
				t.Errorf("%s: %v, %v", id, result, err)
			}
		})
	}
	<-begunKept
	<-begunChanged

	next := settings(nil)
	next.Upstreams = []config.Upstream{upstreamOf("added", newSite(t, calc).web.URL), cfg.Upstreams[1], cfg.Upstreams[0]}
	next.Upstreams[1].Headers = config.Secrets{"X-New": "1"}
	next.Upstreams[2].Description = "stays"
	if err := g.Reload(next); err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	ups := g.Catalog.Upstreams()
	if len(ups) != 3 || ups[0].ID != "added" || ups[1].ID != "changed" || ups[2].ID != "kept" {
		t.Fatalf("upstreams: %+v", ups)
	}
	if ups[2].Description != "stays" || !ups[2].State.Since.Equal(session) {
		t.Errorf("the kept one was not left alone: %+v", ups[2])
	}
	if seen.Load() == 0 {
		t.Error("nobody was told")
	}
	if result, err := call(t, g, "added.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" {
		t.Errorf("added: %v, %v", result, err)
	}
	_, err := call(t, g, "removed.list_notes", "")
	wantError(t, err, tool.NotFound, "there is no upstream removed")
	testutil.Eventually(t, "searches follow", soon, func() bool {
		found := search(t, g, toolsearch.Request{Query: "add numbers"})
		return len(found.Tools) > 0 && found.Tools[0].ID.String() == "added.add" && g.Catalog.Tree()["removed/__init__.py"] == nil
	})
	freeKept()
	freeChanged()
	calls.Wait()
}

// TestReloadWhileProgramsCall hammers upstreams while their settings change.
func TestReloadWhileCalled(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	cfg := settings(map[string]*site{"same": s, "other": s})
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for ctx.Err() == nil {
				for _, id := range []string{"same", "other"} {
					if _, err := g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: id, Name: "add"}, Args: json.RawMessage(`{"a":1,"b":2}`)}); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			}
		})
	}
	for i := range 10 {
		next := *cfg
		next.Upstreams = nil
		for _, up := range cfg.Upstreams {
			if up.ID == "other" {
				up.Timeout = time.Duration(10+i) * time.Second
			}
			next.Upstreams = append(next.Upstreams, up)
		}
		if err := g.Reload(&next); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	work.Wait()
}

// TestFollow edits the file that the settings are read from.
func TestFollow(t *testing.T) {
	t.Parallel()
	site, path := newSite(t, calc), filepath.Join(t.TempDir(), "upstreams.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (*config.Config, error) {
		return config.Load(path, func(string) (string, bool) { return "", false })
	}
	write("upstreams:\n  calc: {url: " + site.web.URL + "}\n")
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	log := &records{}
	g := open(t, cfg, &gateway.Options{Logger: slog.New(log)})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { g.Reloader.WatchSettings(ctx, load) })
	defer work.Wait()
	defer cancel()

	write("upstreams:\n  calc: {url: " + site.web.URL + "}\n  more: {url: " + site.web.URL + "}\n")
	testutil.Eventually(t, "what was added is there", 10*time.Second, func() bool { return len(g.Catalog.Upstreams()) == 2 })
	write("upstreams:\n  calc: {ulr: nonsense}\n")
	testutil.Eventually(t, "a bad edit is told", 10*time.Second, func() bool { return strings.Contains(g.Reloader.Settings().Problem, `unknown key "ulr"`) })
	if _, err := call(t, g, "more.add", `{"a":1,"b":2}`); err != nil || len(g.Catalog.Upstreams()) != 2 {
		t.Errorf("the last good settings are not in force: %v", err)
	}
	if found, err := g.Searcher.Search(t.Context(), toolsearch.Request{}); err != nil || !strings.Contains(found.Text(), `is not in force: `+filepath.Base(path)+`:2`) || strings.Count(found.Text(), "\n") != 3 {
		t.Errorf("the list of upstreams: %s, %v", found.Text(), err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "a file that is gone is told", 10*time.Second, func() bool { return strings.Contains(g.Reloader.Settings().Problem, "no such file") })
	write("upstreams: {}\n")
	testutil.Eventually(t, "good settings are in force again", 10*time.Second, func() bool { return len(g.Catalog.Upstreams()) == 0 && g.Reloader.Settings().Problem == "" })
	if told := log.find("settings are not reloaded, the last good ones stay in force"); len(told) != 2 {
		t.Errorf("told %v", told)
	}
}

func TestReloadOfWhatCannotBeReloaded(t *testing.T) {
	cfg := settings(nil)
	g := open(t, cfg, nil)
	next := *cfg
	next.Sandbox.Node = "/elsewhere/node"
	next.Sandbox.Calls = 5
	if err := g.Reload(&next); err != nil || len(g.Reloader.Settings().Restart) != 1 {
		t.Errorf("%+v, %v", g.Reloader.Settings(), err)
	}
	if err := g.Reload(cfg); err != nil || len(g.Reloader.Settings().Restart) != 0 {
		t.Errorf("%+v, %v", g.Reloader.Settings(), err)
	}
	mustClose(t, g)
	if err := g.Reload(cfg); err == nil || !errors.As(err, new(*tool.Error)) {
		t.Errorf("after the end: %v", err)
	}
}
