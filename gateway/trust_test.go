package gateway_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestChangedDefinitionIsQuarantined until another process approves it.
func TestChangedDefinitionIsQuarantined(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	cfg := settings(map[string]*site{"calc": s})
	cfg.Upstreams[0].Trust = config.TrustPin
	opts := &gateway.Options{CacheDir: t.TempDir(), LockFile: filepath.Join(t.TempDir(), trust.FileName)}
	g := open(t, cfg, opts)
	if result, err := call(t, g, "calc.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" {
		t.Fatal(result, err)
	}
	hits := s.hits.Load()
	s.tool("add", "Add two numbers. Now differently.", `"properties":{"a":{"type":"number"},"b":{"type":"number"}}`, echo)
	testutil.Eventually(t, "the change is quarantined", soon, func() bool { return g.Catalog.Upstreams()[0].Held == 1 })
	_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.Denied, "tool calc.add is quarantined: its definition changed", "sallyport upstreams review calc")
	if s.hits.Load() != hits {
		t.Error("it was called")
	}
	testutil.Eventually(t, "it is shown nowhere", soon, func() bool { return len(g.Catalog.Tools()) == 3 && g.Catalog.Tree()["calc/add.py"] == nil })
	for _, hit := range search(t, g, toolsearch.Request{Query: "add two numbers"}).Tools {
		if hit.ID.Name == "add" {
			t.Error("a search finds it")
		}
	}
	if offer := g.Catalog.Offers()[0].Offer; len(offer.Tools) != 3 {
		t.Errorf("it is offered: %v", offer.Tools)
	}
	again := open(t, cfg, opts) // from the cache
	_, err = call(t, again, "calc.add", `{"a":1,"b":2}`)
	wantError(t, err, tool.Denied, "quarantined")

	book, err := trust.Open(opts.LockFile, &trust.Options{Dir: filepath.Join(opts.CacheDir, "trust")})
	if err != nil {
		t.Fatal(err)
	}
	held, err := book.Held()
	if err != nil || len(held) != 1 {
		t.Fatalf("held %v, %v", held, err)
	}
	if err := book.Approve(held...); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*gateway.Gateway{g, again} {
		testutil.Eventually(t, "the approval is noticed", 10*time.Second, func() bool {
			_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
			return err == nil && g.Catalog.Upstreams()[0].Held == 0
		})
	}
}

// TestLockFileThatIsWrong is an error: to go on would trust all anew.
func TestLockFileThatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), trust.FileName)
	if err := os.WriteFile(path, []byte("\x00 nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if g, err := gateway.Open(settings(nil), &gateway.Options{LockFile: path}); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Errorf("%v, %v", g, err)
	}
}

// keeper is an authorizer to which somebody logs in elsewhere.
type keeper struct{ since atomic.Pointer[time.Time] }

func (k *keeper) Status() (oauth.Status, error) {
	since := k.since.Load()
	if since == nil {
		return oauth.Status{}, nil
	}
	return oauth.Status{LoggedIn: true, Since: *since}, nil
}

func (k *keeper) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if k.since.Load() == nil {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "good"}), nil
}

func (k *keeper) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	return &oauth.LoginError{Upstream: "calc", Reason: "nobody has logged in"}
}

// TestLoginElsewhereUnparks: the upstream is tried again within seconds, not when its pause is over.
func TestLoginElsewhereUnparks(t *testing.T) {
	t.Parallel()
	s := newSite(t, calc)
	inner := s.web.Config.Handler
	s.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	keeper := &keeper{}
	g := open(t, settings(map[string]*site{"calc": s}), &gateway.Options{Auth: func(config.Upstream) upstream.Authorizer { return keeper }})
	g.Catalog.WaitConnected(t.Context())
	state := g.Catalog.Upstreams()[0].State
	if state.Status != upstream.Parked || !state.Login || time.Until(state.RetryAt) < 30*time.Second {
		t.Fatalf("%+v", state)
	}
	_, err := call(t, g, "calc.add", `{"a":1,"b":2}`)
	if err == nil || !strings.Contains(err.Error(), "sallyport auth login calc") {
		t.Errorf("a call: %v", err)
	}
	if found := search(t, g, toolsearch.Request{Query: "add"}); len(found.Upstreams) != 1 || !strings.Contains(found.Text(), "auth login calc") {
		t.Errorf("found %s", found.Text())
	}
	now := time.Now()
	keeper.since.Store(&now)
	testutil.Eventually(t, "its tools are there unasked", 10*time.Second, func() bool { return len(g.Catalog.Tools()) == 4 })
	if result, err := call(t, g, "calc.add", `{"a":1,"b":2}`); err != nil || result.Text() != "3" {
		t.Errorf("%v, %v", result, err)
	}
}
