package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// An upstream whose variable is not set fails alone, says why to whoever calls it,
// and is there when the env_file has the variable.
func TestUnsetVariable(t *testing.T) {
	s := newSite(t, calc)
	dir := t.TempDir()
	file := filepath.Join(dir, "upstreams.yaml")
	vars := filepath.Join(dir, "vars.env")
	writeFile(t, vars, "")
	writeFile(t, file, "env_file: vars.env\nupstreams:\n  good: {url: '"+s.web.URL+"'}\n  bad: {url: '"+s.web.URL+"', headers: {X: '${NOT_THERE}'}}\n")
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := open(t, cfg, &gateway.Options{ConnectWait: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		g.Reloader.WatchSettings(ctx, func() (*config.Config, error) { return config.Load(file, nil) })
	})
	defer work.Wait()
	defer cancel()
	g.Catalog.WaitConnected(t.Context())
	if _, err := call(t, g, "good.add", `{"a":1,"b":2}`); err != nil {
		t.Error(err)
	}
	_, err = call(t, g, "bad.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.Upstream, "the variable NOT_THERE is not set")
	if results, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "add"}); err != nil || !strings.Contains(results.Text(), "bad, the variable NOT_THERE is not set") {
		t.Errorf("search: %v\n%s", err, results.Text())
	}
	writeFile(t, vars, "NOT_THERE=here\n")
	testutil.Eventually(t, "the variable is noticed", 10*time.Second, func() bool { return g.Catalog.Upstreams()[1].State.Error == "" })
	if _, err := call(t, g, "bad.add", `{"a":1,"b":2}`); err != nil {
		t.Errorf("with the variable: %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
