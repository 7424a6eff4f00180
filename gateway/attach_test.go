package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// shop is an upstream of the test's process.
type shop struct {
	more  atomic.Bool // it offers a second tool
	calls atomic.Int32
}

func (s *shop) Offer() tool.Offer {
	object := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	offer := tool.Offer{Tools: []tool.Tool{{Wire: "tidy_garden", Description: "Tidy the garden up.", Input: object, Output: json.RawMessage(`{"type":"object","properties":{"leaves":{"type":"integer"}}}`)}}}
	if s.more.Load() {
		offer.Tools = append(offer.Tools, tool.Tool{Wire: "paint_fence", Description: "Paint the fence.", Input: object})
	}
	return offer
}

func (s *shop) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	s.calls.Add(1)
	if strings.Contains(string(call.Args), "slow") {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Content: []tool.Content{{Type: "text", Text: "12 leaves"}}, Structured: json.RawMessage(`{"leaves":12}`)}, nil
}

// TestAttach: what this process offers is found, called and judged as an upstream's, whatever the settings become.
func TestAttach(t *testing.T) {
	t.Parallel()
	own := &shop{}
	cfg := settings(map[string]*site{"notes": newSite(t, notes)})
	g, err := gateway.Open(cfg, &gateway.Options{LockFile: t.TempDir() + "/sallyport.lock", CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	changed, err := g.Catalog.Attach("workflows", "reviewed programs", own)
	if err != nil {
		t.Fatal(err)
	}
	for _, taken := range []string{"workflows", "notes", "sallyport", "no id"} {
		_, err := g.Catalog.Attach(taken, "", own)
		wantError(t, err, tool.Invalid)
	}
	g.Catalog.WaitConnected(t.Context())
	found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Query: "tidy up the garden"})
	if err != nil || len(found.Tools) == 0 || found.Tools[0].ID.String() != "workflows.tidy_garden" {
		t.Errorf("%+v, %v", found, err)
	}
	result, err := call(t, g, "workflows.tidy_garden", `{"name":"north"}`)
	if err != nil || string(result.Value().JSON) != `{"leaves":12}` || string(result.Raw) != `{"content":[{"text":"12 leaves","type":"text"}],"structuredContent":{"leaves":12}}` {
		t.Errorf("%s, %v", result.Raw, err)
	}
	_, err = call(t, g, "workflows.tidy_garden", `{"nme":"north"}`)
	wantError(t, err, tool.Invalid, "name")
	_, err = call(t, g, "workflows.resources/read", `{"uri":"x"}`)
	wantError(t, err, tool.Invalid)
	ups := g.Catalog.Upstreams()
	if last := ups[len(ups)-1]; len(ups) != 2 || last.ID != "workflows" || last.State.Status != upstream.Ready || last.State.Tools != 1 || last.Held != 0 {
		t.Errorf("%+v", ups)
	}
	own.more.Store(true)
	changed()
	testutil.Eventually(t, "a second tool", 5*time.Second, func() bool { return len(g.Catalog.Tree()["workflows/paint_fence.py"]) > 0 })
	if offers := g.Catalog.Offers(); !json.Valid(offers[1].Offer.Tools[1].Raw) || !strings.Contains(string(offers[1].Offer.Tools[1].Raw), `"name":"paint_fence"`) {
		t.Errorf("%s", offers[1].Offer.Tools[1].Raw)
	}
	mustReload(t, g, cfg)
	ended := make(chan error, 1)
	go func() { _, err := call(t, g, "workflows.tidy_garden", `{"name":"slow"}`); ended <- err }()
	testutil.Eventually(t, "a call is under way", 5*time.Second, func() bool { return own.calls.Load() == 2 })
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call outlived the gateway")
	}
	_, err = g.Catalog.Attach("later", "", own)
	wantError(t, err, tool.Canceled)
}

// mustReload: rules of other settings count for it, and settings that want its name are refused.
func mustReload(t *testing.T, g *gateway.Gateway, cfg *config.Config) {
	t.Helper()
	strict := *cfg
	strict.Upstreams = nil
	strict.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "no gardens", Tools: []string{"workflows.*"}, Then: policy.Deny}}}
	if err := g.Reload(&strict); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, g, "workflows.tidy_garden", `{"name":"north"}`)
	wantError(t, err, tool.Denied, `rule "no gardens"`)
	taken := *cfg
	taken.Upstreams = append([]config.Upstream{upstreamOf("workflows", "http://127.0.0.1:1")}, cfg.Upstreams...)
	err = g.Reload(&taken)
	wantError(t, err, tool.Invalid, "rename it in upstreams.yaml")
	if err := g.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if len(g.Catalog.Upstreams()) != 2 {
		t.Errorf("%+v", g.Catalog.Upstreams())
	}
}
