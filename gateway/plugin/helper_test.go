package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/tmp", "pl-") // short: a socket's path has room for little
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		panic(err)
	}
	code := tlstest.M{Tests: m}.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// house is a gateway with plugins.
type house struct {
	t   testing.TB
	dir string
	*gateway.Gateway
}

// files are texts by path.
type files map[string]string

// write writes files below dir.
func write(t testing.TB, dir string, all files) {
	t.Helper()
	for name, text := range all {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// approve reviews plugins as a person does.
func approve(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		p, err := folder.Read(filepath.Join(dir, "plugins", name))
		if err == nil {
			err = folder.Approve(p, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a gateway with these settings and plugins, of which all are reviewed.
func open(t testing.TB, settings string, plugins files) *house {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plugins"), plugins)
	names, err := folder.List(filepath.Join(dir, "plugins"))
	if err != nil {
		t.Fatal(err)
	}
	approve(t, dir, names...)
	return reopen(t, dir, settings)
}

// reopen opens a gateway with the plugins below dir as they are.
func reopen(t testing.TB, dir, settings string) *house {
	t.Helper()
	write(t, dir, files{"upstreams.yaml": "upstreams: {}\nsandbox: {runsc: " + testutil.Runsc(t) + ", typecheck: false}\n" + settings})
	g, err := gateway.Open(load(t, dir), &gateway.Options{DataDir: t.TempDir(), CacheDir: filepath.Join(dir, "cache"), Snapshots: testutil.Snapshots(), NoPool: true, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return &house{t, dir, g}
}

func load(t testing.TB, dir string) *config.Config {
	t.Helper()
	cfg, err := config.Load(filepath.Join(dir, "upstreams.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// call calls a tool, and returns its value in JSON or the error.
func (h *house) call(name, args string) (string, error) {
	h.t.Helper()
	id, err := tool.ParseID(name)
	if err != nil {
		h.t.Fatal(err)
	}
	result, err := h.Call(context.Background(), tool.Call{Tool: id, Args: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", errors.New(result.Text())
	}
	data, err := json.Marshal(result.Value().Plain())
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data), nil
}

// want checks the value of a call.
func (h *house) want(name, args, want string) {
	h.t.Helper()
	if got, err := h.call(name, args); err != nil || got != want {
		h.t.Errorf("%s(%s) = %s, %v; want %s", name, args, got, err, want)
	}
}

// refused checks that a call fails with an error that has all these parts.
func (h *house) refused(name, args string, parts ...string) {
	h.t.Helper()
	got, err := h.call(name, args)
	if err == nil {
		h.t.Errorf("%s(%s) = %s; want an error", name, args, got)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			h.t.Errorf("%s(%s): %v; want %q in it", name, args, err, part)
		}
	}
}

// await waits until the catalog has tools.
func (h *house) await(names ...string) {
	h.t.Helper()
	for _, name := range names {
		id, err := tool.ParseID(name)
		if err != nil {
			h.t.Fatal(err)
		}
		testutil.Eventually(h.t, "tool "+name, startLimit, func() bool { _, ok := h.Catalog.Lookup(id); return ok })
	}
}

// startLimit is how long a sandbox may take to start on a loaded machine.
const startLimit = time.Minute

func mustID(t testing.TB, name string) tool.ID {
	t.Helper()
	id, err := tool.ParseID(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Execute runs a program.
func (h *house) Execute(p execution.Program) (execution.Result, error) {
	return h.Executor.Execute(context.Background(), p)
}

// newService is a service that a plugin may reach: /echo says what it got, /away redirects elsewhere.
func newService(t *testing.T) *httptest.Server {
	t.Helper()
	return tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"auth":%q,"body":%s}`, r.Header.Get("Authorization"), body)
	}))
}
