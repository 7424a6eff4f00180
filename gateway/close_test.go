package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// leftovers returns a check that no goroutine, process or directory was left since
// it was called. In between, a subtest holds all that is opened, sites included.
// A test that uses it must not run in parallel.
func leftovers(t *testing.T) (check func()) {
	t.Helper()
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		testutil.Eventually(t, "all goroutines end", 5*time.Second, func() bool { return runtime.NumGoroutine() <= before })
		testutil.Eventually(t, "all processes end", 5*time.Second, func() bool { return len(processes()) == 0 })
		if left := stateLeft(); len(left) > 0 {
			t.Errorf("directories left: %v", left)
		}
	}
}

// processes lists the command lines of our children: upstreams and sandboxes.
func processes() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		command, _ := os.ReadFile(strings.TrimSuffix(file, "environ") + "cmdline")
		if err == nil && strings.Contains(string(environ), modeVar+"=") || strings.Contains(string(command), os.Getenv("XDG_RUNTIME_DIR")) {
			found = append(found, string(command))
		}
	}
	return found
}

func mustOpen(t *testing.T, cfg *config.Config) *gateway.Gateway {
	t.Helper()
	g, err := gateway.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustClose(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	begin := time.Now()
	if err := g.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(begin); took > 12*time.Second {
		t.Errorf("close took %v", took)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	check := leftovers(t)
	t.Run("all", func(t *testing.T) {
		cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc)}))
		cfg.Upstreams = append(cfg.Upstreams, process(t, "notes", "notes"), process(t, "broken", "broken"))
		g := mustOpen(t, cfg)
		wantText(t, execute(t, g, "python", "from servers.calc import add\nfrom servers.notes import create_note\ncreate_note('x')\nadd(1, 2)"), sandbox.OK, "3")
		if len(stateLeft()) != 1 || len(processes()) == 0 {
			t.Errorf("the counting does not work: %v, %v", stateLeft(), processes())
		}
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { mustClose(t, g) })
		}
		closers.Wait()
		mustClose(t, g)
		_, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1"})
		wantError(t, err, tool.Canceled, "the gateway is closed")
		_, err = call(t, g, "calc.add", `{"a":1,"b":2}`)
		wantError(t, err, tool.Canceled, "the gateway is closed")
		_, err = call(t, g, "calc.other", `{}`)
		wantError(t, err, tool.Canceled, "the gateway is closed")
		_, err = g.Searcher.Search(t.Context(), toolsearch.Request{Query: "add"})
		wantError(t, err, tool.Canceled, "the gateway is closed")
	})
	check()
}

func TestCloseAtOnce(t *testing.T) {
	check := leftovers(t)
	t.Run("all", func(t *testing.T) {
		web := newSite(t, calc)
		for range 20 {
			cfg := settings(map[string]*site{"calc": web, "too": web})
			mustClose(t, mustOpen(t, cfg))
		}
	})
	check()
}

func TestCloseWhileConnecting(t *testing.T) {
	for _, after := range []time.Duration{0, 200 * time.Millisecond} {
		check := leftovers(t)
		t.Run(after.String(), func(t *testing.T) {
			slow := newSite(t)
			slow.hang.Store(true)
			cfg := settings(nil)
			for name := range strings.FieldsSeq("a b c d e f g h i j k l") { // more than are started at once
				cfg.Upstreams = append(cfg.Upstreams, upstreamOf(name, slow.web.URL))
			}
			cfg.Upstreams = append(cfg.Upstreams, process(t, "hang", "hang"), process(t, "notes", "notes"))
			g := mustOpen(t, cfg)
			var waiting sync.WaitGroup
			waiting.Go(func() { g.Catalog.WaitConnected(context.Background()) })
			waiting.Go(func() {
				_, err := g.Call(context.Background(), tool.Call{Tool: tool.ID{Upstream: "hang", Name: "x"}})
				wantError(t, err, tool.Canceled, "the gateway is closed")
			})
			time.Sleep(after)
			mustClose(t, g)
			waiting.Wait()
		})
		check()
	}
}

func TestCloseWhileProgramsRun(t *testing.T) {
	check := leftovers(t)
	t.Run("all", func(t *testing.T) {
		web := newSite(t, calc)
		g := mustOpen(t, withRunsc(t, settings(map[string]*site{"calc": web})))
		var programs sync.WaitGroup
		for range 6 { // more than run at once
			programs.Go(func() {
				e, err := g.Executor.Execute(context.Background(), execution.Program{Code: "from servers.calc import add\nwhile True: add(1, 2)"})
				if err != nil || e.Status != sandbox.Canceled {
					t.Errorf("%+v, %v", e, err)
				}
			})
		}
		testutil.Eventually(t, "the programs run", 20*time.Second, func() bool { return web.hits.Load() > 100 })
		mustClose(t, g)
		programs.Wait()
	})
	check()
}

// TestCloseWhileProgramsStart closes at every moment of the first execution.
func TestCloseWhileProgramsStart(t *testing.T) {
	cfg := withRunsc(t, settings(nil))
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond} {
		check := leftovers(t)
		t.Run(after.String(), func(t *testing.T) {
			g := mustOpen(t, cfg)
			var programs sync.WaitGroup
			for range 2 {
				programs.Go(func() {
					e, err := g.Executor.Execute(context.Background(), execution.Program{Code: "import time\ntime.sleep(30)"})
					if err != nil {
						wantError(t, err, tool.Canceled, "the gateway is closed")
					} else if e.Status != sandbox.Canceled {
						t.Errorf("%+v", e)
					}
				})
			}
			time.Sleep(after)
			mustClose(t, g)
			programs.Wait()
		})
		check()
	}
}
