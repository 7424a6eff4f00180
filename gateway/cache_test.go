package gateway_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// office with a cache, whose upstreams are processes.
func cachedSettings(t *testing.T) (*config.Config, *gateway.Options) {
	t.Helper()
	cfg := settings(nil)
	cfg.Upstreams = []config.Upstream{process(t, "my-notes", "notes"), process(t, "calc", "calc")}
	return cfg, &gateway.Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
}

// fill opens a gateway once, so that the cache knows all.
func fill(t *testing.T, cfg *config.Config, opts *gateway.Options) []tool.Tool {
	t.Helper()
	g, err := gateway.Open(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	tools := g.Catalog.Tools()
	mustClose(t, g)
	return tools
}

func offers(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.offer"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func startedUpstreams(g *gateway.Gateway) (ids []string) {
	for _, up := range g.Catalog.Upstreams() {
		if up.State.PID != 0 || up.State.Status != "idle" {
			ids = append(ids, up.ID)
		}
	}
	return ids
}

// TestKnownUpstreamsAreNotStarted searches and reads wrappers without a process;
// a call starts the one that it is for.
func TestKnownUpstreamsAreNotStarted(t *testing.T) {
	cfg, opts := cachedSettings(t)
	before := fill(t, cfg, opts)
	g := open(t, cfg, opts)
	found := search(t, g, toolsearch.Request{Query: "create a note"})
	if len(found.Tools) == 0 || found.Tools[0].ID.String() != "my_notes.create_note" || len(found.Upstreams) != 0 {
		t.Errorf("found %+v", found)
	}
	if diff := cmp.Diff(before, g.Catalog.Tools()); diff != "" || len(before) == 0 {
		t.Errorf("the tools are not what they were (-before +cached):\n%s", diff)
	}
	if g.Catalog.Tree()["calc/add.py"] == nil {
		t.Error("there are no wrappers")
	}
	for _, up := range g.Catalog.Upstreams() {
		if !up.Cached || !up.Known || up.State.Tools == 0 {
			t.Errorf("%+v", up)
		}
	}
	if ids := startedUpstreams(g); len(ids) > 0 || len(processes()) > 0 {
		t.Fatalf("started: %v, %v", ids, processes())
	}
	if result, err := call(t, g, "calc.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" {
		t.Errorf("call: %v, %v", result, err)
	}
	if ids := startedUpstreams(g); len(ids) != 1 || ids[0] != "calc" || g.Catalog.Upstreams()[1].Cached {
		t.Errorf("started: %v", ids)
	}
}

func TestEagerAndFreshUpstreamsAreStarted(t *testing.T) {
	cfg, opts := cachedSettings(t)
	fill(t, cfg, opts)
	cfg.Upstreams[0].Eager = true
	fill(t, cfg, opts)
	g := open(t, cfg, opts)
	testutil.Eventually(t, "the eager one is started", soon, func() bool { return len(startedUpstreams(g)) == 1 && startedUpstreams(g)[0] == "my_notes" })
	opts.Fresh = true
	fresh := open(t, cfg, opts)
	fresh.Catalog.WaitConnected(t.Context())
	if ids := startedUpstreams(fresh); len(ids) != 2 {
		t.Errorf("started: %v", ids)
	}
}

// TestCacheFilesThatCannotBeRead are no error, and are replaced.
func TestCacheFilesThatCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(data []byte) []byte{
		"pipe":    nil,
		"empty":   func([]byte) []byte { return nil },
		"cut":     func(data []byte) []byte { return data[:len(data)/2] },
		"flipped": func(data []byte) []byte { data[len(data)-20] ^= 1; return data },
		"version": func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"version":1`, `"version":99`, 1))
		},
		"noise": func([]byte) []byte { return []byte("\x00\xff{}\n{}") },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, opts := cachedSettings(t)
			before := fill(t, cfg, opts)
			for _, file := range offers(t, opts.CacheDir) {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if name == "pipe" {
					if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := os.WriteFile(file, spoil(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			log := &records{}
			opts.Logger = slog.New(log)
			if diff := cmp.Diff(before, fill(t, cfg, opts)); diff != "" {
				t.Error(diff)
			}
			if said := log.find("cached offer is not used"); len(said) != 2 {
				t.Errorf("the log says %v", said)
			}
			g := open(t, cfg, opts)
			g.Catalog.WaitConnected(t.Context())
			if ids := startedUpstreams(g); len(ids) > 0 {
				t.Errorf("not replaced: started %v", ids)
			}
		})
	}
}

// TestCacheFollowsTheSettings: what may change an offer makes it another; secrets
// cannot be guessed from what lies there, and nobody else can read it.
func TestCacheFollowsTheSettings(t *testing.T) {
	cfg, opts := cachedSettings(t)
	fill(t, cfg, opts)
	names := map[string]bool{}
	for _, file := range offers(t, opts.CacheDir) {
		names[filepath.Base(file)] = true
	}
	err := filepath.WalkDir(opts.CacheDir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil || len(names) != 2 {
		t.Fatalf("files %v, %v", names, err)
	}
	other := &gateway.Options{CacheDir: filepath.Join(t.TempDir(), "other")}
	fill(t, cfg, other)
	for _, file := range offers(t, other.CacheDir) {
		if names[filepath.Base(file)] {
			t.Error("the name of a file does not depend on the key")
		}
	}
	cfg.Upstreams[1].Timeout, cfg.Upstreams[1].Description = 7*time.Second, "counts" // changes nothing
	cfg.Upstreams[0].Env["TOKEN"] = "other"
	g := open(t, cfg, opts)
	testutil.Eventually(t, "the one with other settings is started", soon, func() bool { return len(startedUpstreams(g)) == 1 && startedUpstreams(g)[0] == "my_notes" })
}

// TestOldCacheFilesAreSwept leaves what is used.
func TestOldCacheFilesAreSwept(t *testing.T) {
	cfg, opts := cachedSettings(t)
	fill(t, cfg, opts)
	files := offers(t, opts.CacheDir)
	for _, name := range []string{"abc.offer", ".x.tmp", "notours.txt"} {
		files = append(files, filepath.Join(opts.CacheDir, name))
		if err := os.WriteFile(files[len(files)-1], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-31 * 24 * time.Hour)
	for _, file := range files {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, cfg, opts)
	if left := offers(t, opts.CacheDir); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(opts.CacheDir, ".x.tmp")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(filepath.Join(opts.CacheDir, "notours.txt")); err != nil {
		t.Error(err)
	}
}

// TestCacheOfYesterday: the upstream has changed since. What a stale definition
// would refuse is asked for again, and the cache follows.
func TestCacheOfYesterday(t *testing.T) {
	s := newSite(t, func(s *site) { s.tool("read", "", `"properties":{"path":{"type":"string"}}`, echo) })
	cfg, opts := settings(map[string]*site{"up": s}), &gateway.Options{CacheDir: t.TempDir()}
	fill(t, cfg, opts)
	s.tool("read", "", `"properties":{"file":{"type":"string"}}`, echo)
	s.tool("write", "", "", echo)
	for _, test := range []struct{ id, args string }{{"up.read", `{"file":"x"}`}, {"up.write", `{}`}} {
		g := open(t, cfg, &gateway.Options{CacheDir: copyDir(t, opts.CacheDir)})
		if result, err := call(t, g, test.id, test.args); err != nil || result.Text() != test.args {
			t.Errorf("%s: %v, %v", test.id, result, err)
		}
		testutil.Eventually(t, "a search shows the change", soon, func() bool { return len(g.Catalog.Tools()) == 2 })
	}
	g := open(t, cfg, opts)
	if _, err := call(t, g, "up.write", `{}`); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the cache follows", soon, func() bool {
		again, err := gateway.Open(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, again)
		again.Catalog.WaitConnected(t.Context())
		return len(again.Catalog.Tools()) == 2 && len(startedUpstreams(again)) == 0
	})
}

// copyDir is a copy of a directory of files.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestCacheThatCannotBeUsed is no reason not to start.
func TestCacheThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, settings(map[string]*site{"calc": newSite(t, calc)}), &gateway.Options{CacheDir: filepath.Join(file, "below")})
	g.Catalog.WaitConnected(t.Context())
	if len(g.Catalog.Tools()) != 4 {
		t.Errorf("tools: %v", g.Catalog.Tools())
	}
}

// TestCachedDefinitionsStayCallable calls tools that are known from an earlier run only, and whose
// definitions are the same, however the upstream writes them.
func TestCachedDefinitionsStayCallable(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]*strings.Replacer{
		"blanks":        strings.NewReplacer(`"inputSchema":`, ` "inputSchema" : `),
		"order of keys": strings.NewReplacer(`"description":"Get it.","inputSchema":{"type":"object"},`, `"inputSchema":{"type":"object"},"description":"Get it.",`),
		"escapes":       strings.NewReplacer(`Get it`, `Get \u0069t`),
		"no difference": strings.NewReplacer(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, first := range []*strings.Replacer{strings.NewReplacer(), later} {
				s := newSite(t)
				s.alter = first
				s.add(&mcp.Tool{Name: "get", Description: "Get it."}, "", echo)
				cfg, opts := settings(nil), &gateway.Options{CacheDir: t.TempDir()}
				cfg.Upstreams = []config.Upstream{upstreamOf("up", s.web.URL)}
				fill(t, cfg, opts)
				s.alter = later
				g := open(t, cfg, opts)
				if result, err := call(t, g, "up.get", "{}"); err != nil || result.Text() != "{}" {
					t.Errorf("%v, %+v", err, result)
				}
			}
		})
	}
}
