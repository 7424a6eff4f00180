package gateway_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
)

// TestNobodyWaitsForWhomTheyDoNotName: an upstream that never answers costs those nothing who do not name it.
func TestNobodyWaitsForWhomTheyDoNotName(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc)}))
	cfg.Upstreams = append(cfg.Upstreams, process(t, "mute", "hang"))
	g := open(t, cfg, &gateway.Options{NoPool: true, ConnectWait: time.Hour})
	begun := time.Now()
	for _, code := range []string{"1 + 1", "from servers import calc\nprint(calc.add(a=1, b=2))"} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: "python"})
		if err != nil || e.Fault != nil || time.Since(begun) > time.Minute {
			t.Errorf("%q: %v, %+v after %v", code, err, e.Fault, time.Since(begun))
		}
	}
	begun = time.Now()
	found := search(t, g, toolsearch.Request{Query: "add two numbers"})
	if len(found.Tools) == 0 || found.Tools[0].ID.String() != "calc.add" || !strings.Contains(found.Text(), "mute") || time.Since(begun) > time.Minute {
		t.Errorf("after %v: %s", time.Since(begun), found.Text())
	}
}

// TestSilentUpstreamsAreRemembered: who waited in vain for an upstream does so once, also in the next process.
func TestSilentUpstreamsAreRemembered(t *testing.T) {
	t.Parallel()
	cfg, cache := settings(map[string]*site{"calc": newSite(t, calc)}), t.TempDir()
	cfg.Upstreams = append(cfg.Upstreams, process(t, "mute", "hang"))
	took := func() time.Duration {
		g := open(t, cfg, &gateway.Options{NoPool: true, ConnectWait: time.Hour, CacheDir: cache})
		begun := time.Now()
		for range 2 {
			found := search(t, g, toolsearch.Request{Query: "add two numbers"})
			if strings.Contains(found.Text(), "calc, still connecting") { // on a busy machine it may answer late too
				return time.Hour
			}
			if len(found.Tools) == 0 || !strings.Contains(found.Text(), "mute") {
				t.Errorf("%s", found.Text())
			}
		}
		return time.Since(begun)
	}
	first, next := took(), time.Hour
	for tries := 0; first == time.Hour && tries < 10; tries++ {
		cache = t.TempDir()
		first = took()
	}
	if first == time.Hour {
		t.Fatal("no search had the upstream that answers")
	}
	for range 10 { // one process may be slow because the machine is busy: not each of ten
		if next = min(next, took()); next <= first/2 {
			return
		}
	}
	t.Errorf("searches took %v, and in the next processes %v", first, next)
}

// TestTestedUpstreamIsIndexed: the test of a new upstream ends when its tools are in the catalog, and not before.
func TestTestedUpstreamIsIndexed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c, err := gateway.OpenSlowCatalog(settings(map[string]*site{"calc": newSite(t, calc)}), release)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	tested := make(chan error, 1)
	go func() { tested <- c.Test(t.Context(), "calc") }()
	testutil.Eventually(t, "it has answered", time.Minute, func() bool { return c.Upstreams()[0].State.Status == upstream.Ready })
	select {
	case err := <-tested:
		t.Errorf("it ended before the tools were in the catalog: %v", err)
		tested <- err
	case <-time.After(time.Second):
	}
	close(release)
	if err := <-tested; err != nil || c.Upstreams()[0].State.Tools == 0 {
		t.Errorf("%+v, %v", c.Upstreams()[0], err)
	}
}

// TestConnectedUpstreamsAreWaitedFor: an upstream that has answered is searched, however long its tools take to be indexed, and
// until then an answer says that it is not there yet.
func TestConnectedUpstreamsAreWaitedFor(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c, err := gateway.OpenSlowCatalog(settings(map[string]*site{"calc": newSite(t, calc)}), release)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	testutil.Eventually(t, "it has answered", time.Minute, func() bool { return c.Upstreams()[0].State.Status == upstream.Ready })
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		c.Await(t.Context())
	}()
	select {
	case <-waited:
		t.Error("nobody waits for an upstream that is connected")
	case <-time.After(7 * time.Second):
	}
	if up := c.Upstreams()[0]; up.Problem() != "still connecting" {
		t.Errorf("%+v: %q", up, up.Problem())
	}
	close(release)
	<-waited
	if up := c.Upstreams()[0]; up.Problem() != "" || up.State.Tools == 0 {
		t.Errorf("%+v: %q", up, up.Problem())
	}
}
