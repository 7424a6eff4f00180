package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/feedback"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// twins are two gateways that share a store on a real server, with the same upstreams.
type twins struct {
	servers *natscluster.Cluster
	sites   map[string]*site
	all     [2]*gateway.Gateway
	records [2]*store.Store
}

// openTwins opens two gateways with the settings of change.
func openTwins(t *testing.T, change func(*config.Config)) *twins {
	t.Helper()
	w := &twins{servers: natscluster.Start(t, 1), sites: map[string]*site{"firm": newSite(t, company), "web": newSite(t, company)}}
	for i := range w.all {
		w.records[i] = storetest.Connect(t, w.servers.Server(""))
		cfg := settings(w.sites)
		cfg.Dir = t.TempDir()
		change(cfg)
		w.all[i] = open(t, cfg, &gateway.Options{Records: w.records[i], DataDir: t.TempDir()})
		w.all[i].Catalog.WaitConnected(t.Context())
	}
	return w
}

// call calls a tool at a gateway.
func (w *twins) call(ctx context.Context, at int, upstream, name string) error {
	_, err := w.all[at].Call(ctx, tool.Call{Tool: tool.ID{Upstream: upstream, Name: name}, Args: json.RawMessage("{}")})
	return err
}

// until waits for a condition after the server was started again.
func (w *twins) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testutil.Eventually(t, what, time.Minute, ok)
}

// TestLimitsOfCluster: gateways that share a store allow together what the limit says, also at the same time.
func TestLimitsOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		c.Policy = policy.Settings{On: true, Rules: []policy.Rule{
			{Name: "few", Tools: []string{"web.get"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 20, Per: "day"}},
			{Name: "none", Tools: []string{"web.get_secret"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 1, Per: "day", By: "everyone"}},
		}}
	})
	var work sync.WaitGroup
	var allowed atomic.Int32
	for i := range 40 {
		work.Go(func() {
			err := w.call(tool.WithPrincipal(t.Context(), "ada"), i%2, "web", "get")
			switch {
			case err == nil:
				allowed.Add(1)
			case tool.AsError(err).Kind != tool.Limit:
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := allowed.Load(); n != 20 {
		t.Errorf("%d calls were allowed by a limit of 20", n)
	}
	if err := w.call(tool.WithPrincipal(t.Context(), "eve"), 1, "web", "get"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	if err := w.call(tool.WithPrincipal(t.Context(), "ada"), 0, "web", "get_secret"); err != nil {
		t.Error(err)
	}
	wantError(t, w.call(tool.WithPrincipal(t.Context(), "eve"), 1, "web", "get_secret"), tool.Limit, "its limit is used up")

	// What cannot be counted is refused; all goes on with the server.
	w.servers.Kill(t, 0)
	err := w.call(tool.WithPrincipal(t.Context(), "bob"), 0, "web", "get")
	wantError(t, err, tool.Limit, "the store of the limit does not answer: try again later")
	before := w.sites["web"].hits.Load()
	if before != 22 {
		t.Errorf("the upstream saw %d calls, of 22 that were allowed", before)
	}
	w.servers.Start(t, 0)
	w.until(t, "calls are counted again", func() bool { return w.call(tool.WithPrincipal(t.Context(), "bob"), 1, "web", "get") == nil })
}

// TestLabelsOfCluster: what a session has read at one gateway restricts it at the others.
func TestLabelsOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(c *config.Config) {
		c.Policy = policy.Settings{On: true, Default: policy.Allow, Flow: policy.FlowDeny}
		for i := range c.Upstreams {
			if c.Upstreams[i].Name == "web" {
				c.Upstreams[i].Labels = []string{policy.Untrusted, policy.External}
			} else {
				c.Upstreams[i].Labels = []string{policy.Private}
			}
		}
	})
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "one")
	for _, read := range []struct {
		at       int
		upstream string
	}{{0, "web"}, {1, "firm"}} {
		if err := w.call(ada, read.at, read.upstream, "get"); err != nil {
			t.Fatal(err)
		}
	}
	for at := range w.all {
		wantError(t, w.call(ada, at, "web", "post"), tool.Denied, "may no longer send data outside")
		var labels []string
		for _, o := range w.all[at].Guard.SessionOrigins(ada) {
			labels = append(labels, o.Label)
		}
		if !slices.Equal(labels, []string{policy.Private, policy.Untrusted}) {
			t.Errorf("gateway %d knows %v", at, labels)
		}
		if err := w.call(tool.WithSession(ada, "two"), at, "web", "post"); err != nil {
			t.Errorf("another session: %v", err)
		}
	}

	// Without the store nobody knows what a session has read elsewhere.
	w.servers.Kill(t, 0)
	wantError(t, w.call(tool.WithSession(ada, "three"), 0, "web", "post"), tool.Denied, "may no longer send data outside")
	w.servers.Start(t, 0)
	w.until(t, "labels are read again", func() bool { return w.call(tool.WithSession(ada, "three"), 0, "web", "post") == nil })
}

// TestLearningOfCluster: what one gateway learns of results and of searches, the others know.
func TestLearningOfCluster(t *testing.T) {
	t.Parallel()
	w := openTwins(t, func(*config.Config) {})
	id := tool.ID{Upstream: "firm", Name: "get"}
	observed := func(at int) *tool.Observed {
		e, ok := w.all[at].Catalog.Lookup(id)
		if !ok {
			return nil
		}
		return w.all[at].Catalog.WithObserved(e).Observed
	}
	if observed(1) != nil {
		t.Fatal("there is a shape before the first call")
	}
	if _, err := w.all[0].Call(t.Context(), tool.Call{Tool: id, Args: json.RawMessage(`{"size":3}`)}); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the other gateway knows the shape", func() bool { return observed(1) != nil })
	if a, b := observed(0), observed(1); a.Count != b.Count || a.Shape.Kinds != b.Shape.Kinds {
		t.Errorf("%+v and %+v", a, b)
	}

	// Both count the same calls; a third one finds the sum.
	who, words, digest := feedback.Caller{Principal: "ada", Session: "s"}, map[string]float64{"payroll": 2, "figures": 1}, strings.Repeat("d", 32)
	strength := func(s *feedback.Store) float64 {
		return s.Boost("ada", words, func(tool.ID) string { return digest })[id]
	}
	var boosts []float64
	for i := range w.all {
		shared, err := feedback.NewShared(w.records[i])
		if err != nil {
			t.Fatal(err)
		}
		s := feedback.New(shared, &feedback.Options{Logger: testutil.Logger(t)})
		s.RecordSearch(who, words, []tool.ID{id})
		s.RecordCall(who, "", id, digest)
		s.Close()
		reader := feedback.New(shared, nil)
		boosts = append(boosts, strength(reader))
		reader.Close()
	}
	if boosts[0] <= 0 || boosts[1] <= boosts[0] {
		t.Errorf("boosted by %v after one call, by %v after two", boosts[0], boosts[1])
	}
}
