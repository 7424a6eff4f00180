package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/toolsearch"
	"sallyport/gateway/trust"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

func wantLength(n int) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, _ *hostile, result tool.Result, err error) {
		t.Helper()
		if err != nil || len(result.Text()) != n {
			t.Errorf("%d bytes, %v", len(result.Text()), err)
		}
	}
}

func wantRaw(part string) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, _ *hostile, result tool.Result, err error) {
		t.Helper()
		value, badValue := json.Marshal(result.Value())
		if err != nil || badValue != nil || !strings.Contains(string(value), part) {
			t.Errorf("%v, %v, %.300s", err, badValue, value)
		}
	}
}

func wantSame(text string) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, h *hostile, result tool.Result, _ error) {
		t.Helper()
		again, err := h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}})
		if err != nil || result.Text() != text || again.Text() != text {
			t.Errorf("%q, then %q, %v", result.Text(), again.Text(), err)
		}
	}
}

// wantNext calls something else over the same connection: the trap cost one answer only.
func wantNext(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	connected := 0
	for _, ready := range h.log.find("upstream ready") { // good's may be there, or come later
		if ready["upstream"] == "bad" {
			connected++
		}
	}
	if connected != 1 {
		t.Errorf("connected %d times", connected)
	}
	if lost := h.log.find("upstream lost"); len(lost) > 0 {
		t.Errorf("connection lost: %v", lost)
	}
}

func wantBigError(t *testing.T, _ *hostile, result tool.Result, err error) {
	t.Helper()
	if err != nil || !result.IsError || result.Text() != strings.Repeat("e", 3<<20) {
		t.Errorf("%v, %v, %d bytes", err, result.IsError, len(result.Text()))
	}
}

func wantBlocks(n int) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, _ *hostile, result tool.Result, err error) {
		t.Helper()
		if err != nil || len(result.Content) != n || result.Content[n-1].Text != "x" {
			t.Errorf("%v, %d blocks", err, len(result.Content))
		}
	}
}

// wantSkipped: a tool is left out, and the log says why.
func wantSkipped(name, reason string) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, h *hostile, _ tool.Result, _ error) {
		t.Helper()
		for _, tl := range h.of("bad") {
			if tl.Wire == name {
				t.Errorf("%s is there", name)
			}
		}
		skipped := h.log.find("skip tool")
		if len(skipped) != 1 || !strings.Contains(skipped[0]["tool"], name) || !strings.Contains(skipped[0]["reason"], reason) {
			t.Errorf("log: %v", skipped)
		}
	}
}

// wantHeld: a tool is quarantined and seen nowhere, the others go on, and once
// somebody has approved it, it can be called.
func wantHeld(name, why string) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, h *hostile, _ tool.Result, _ error) {
		t.Helper()
		try := func(name string) error {
			_, err := h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: name}})
			return err
		}
		var held error
		testutil.Eventually(t, "the call is denied", 10*time.Second, func() bool {
			held = try(name)
			return held != nil
		})
		wantError(t, held, tool.Denied, "tool bad."+name+" is quarantined: "+why, "sallyport upstreams review bad")
		wantNothingHidden(t, h)
		book, err := trust.Open(h.lock, &trust.Options{Dir: filepath.Join(h.cache, "trust")})
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := book.Held()
		if err != nil || len(waiting) != 1 || waiting[0].Name != name {
			t.Fatalf("%v, %+v", err, waiting)
		}
		testutil.Eventually(t, "an approved tool is let through", 20*time.Second, func() bool {
			if waiting, err := book.Held(); err == nil { // one that changed meanwhile waits again
				_ = book.Approve(waiting...)
			}
			return try(name) == nil
		})
		if err := try("echo"); err != nil {
			t.Error(err)
		}
	}
}

func wantTools(n int) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, h *hostile, _ tool.Result, err error) {
		t.Helper()
		if got := len(h.of("bad")); err != nil || got != n {
			t.Errorf("%d tools, %v", got, err)
		}
	}
}

func (h *hostile) of(id string) (tools []tool.Tool) {
	h.Catalog.WaitConnected(context.Background())
	for _, tl := range h.Catalog.Tools() {
		if tl.ID.Upstream == id {
			tools = append(tools, tl)
		}
	}
	return tools
}

func wantCleanNames(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	for _, tl := range h.of("bad") {
		if tool.Identifier(tl.ID.Name) != tl.ID.Name {
			t.Errorf("%q is no identifier", tl.ID.Name)
		}
	}
}

func wantNothingHidden(t *testing.T, h *hostile) {
	t.Helper()
	for _, detail := range []toolsearch.Detail{toolsearch.Summary, toolsearch.Signature, toolsearch.Full} {
		found, err := h.Searcher.Search(t.Context(), toolsearch.Request{Upstream: "bad", Detail: detail})
		if text := found.Text(); err != nil || strings.ContainsAny(text, "\u200b\u202e\U000e0041\U000e0042") || strings.Contains(text, "previous instructions") {
			t.Errorf("%v: %q", err, text)
		}
	}
}

func wantNoCanary(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	if n := h.canary.Load(); n > 0 {
		t.Errorf("the other origin got %d requests", n)
	}
}

// wantQuiet: an upstream that lets nobody in is not asked again by each call, and
// what it says about other places is not followed.
func wantQuiet(t *testing.T, h *hostile, _ tool.Result, err error) {
	t.Helper()
	wantNoCanary(t, h, tool.Result{}, err)
	before := h.requests.all()
	for range 50 {
		_, err := h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}})
		wantError(t, err, tool.Denied, "needs authorization: HTTP 401")
	}
	if after := h.requests.all(); before > 2 || after != before {
		t.Errorf("%d requests, then %d", before, after)
	}
}

func wantRequests(method string, n int) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, h *hostile, _ tool.Result, _ error) {
		t.Helper()
		if got := h.requests.get(method); got != n {
			t.Errorf("%d requests of %s", got, method)
		}
	}
}

// wantParked calls until the gateway gives up on the upstream, and says so.
func wantParked(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	var last error
	testutil.Eventually(t, "the upstream is parked", 30*time.Second, func() bool {
		_, last = h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}})
		return strings.Contains(fmt.Sprint(last), "parked")
	})
	wantError(t, last, tool.Upstream, "no licence", "parked after")
	for _, up := range h.Catalog.Upstreams() {
		if up.ID == "bad" && (up.State.Status != "parked" || !strings.Contains(up.State.Error, "no licence")) {
			t.Errorf("state %s, %s", up.State.Status, up.State.Error)
		}
	}
}
