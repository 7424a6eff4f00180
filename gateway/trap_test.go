package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
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
		if err != nil || !strings.Contains(string(result.Raw), part) {
			t.Errorf("%v, %.300s", err, result.Raw)
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

// wantNoCrash is for traps of which only this is asked: an answer or a readable
// error, and whatever is checked after every trap.
func wantNoCrash(*testing.T, *hostile, tool.Result, error) {}

func wantOneOf(kinds ...tool.Kind) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, _ *hostile, _ tool.Result, err error) {
		t.Helper()
		if err == nil || !slices.Contains(kinds, tool.AsError(err).Kind) {
			t.Errorf("%v, want one of %v", err, kinds)
		}
	}
}

func wantFailure(part string) func(*testing.T, *hostile, tool.Result, error) {
	return func(t *testing.T, _ *hostile, result tool.Result, err error) {
		t.Helper()
		if err == nil && !result.IsError || !strings.Contains(fmt.Sprint(err, result.Text()), part) {
			t.Errorf("%v, %.300q", err, result.Text())
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
	h.Settle(context.Background())
	for _, tl := range h.Tools() {
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

func wantNothingHidden(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	for _, detail := range []gateway.Detail{gateway.Summary, gateway.Signature, gateway.Full} {
		found, err := h.Search(t.Context(), gateway.Search{Upstream: "bad", Detail: detail})
		if text := found.Text(); err != nil || strings.ContainsAny(text, "\u200b\u202e\U000e0041\U000e0042") {
			t.Errorf("%v: %q", err, text)
		}
	}
}

func wantNoCanary(t *testing.T, h *hostile, _ tool.Result, err error) {
	t.Helper()
	if n := h.canary.Load(); err == nil || n > 0 {
		t.Errorf("%v; the other origin got %d requests", err, n)
	}
}

// wantSecond: a session that is gone may cost one call, and not the next.
func wantSecond(t *testing.T, h *hostile, result tool.Result, err error) {
	t.Helper()
	eventually(t, "a call succeeds again", 10*time.Second, func() bool {
		if err != nil {
			result, err = h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}, Args: json.RawMessage(hello)})
		}
		return err == nil && result.Text() == hello
	})
}

// wantParked calls until the gateway gives up on the upstream, and says so.
func wantParked(t *testing.T, h *hostile, _ tool.Result, _ error) {
	t.Helper()
	var last error
	eventually(t, "the upstream is parked", 30*time.Second, func() bool {
		_, last = h.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "bad", Name: "echo"}})
		return strings.Contains(fmt.Sprint(last), "parked")
	})
	wantError(t, last, tool.Upstream, "no licence", "parked after")
	for _, up := range h.Upstreams() {
		if up.ID == "bad" && (up.State.Status != "parked" || !strings.Contains(up.State.Error, "no licence")) {
			t.Errorf("state %s, %s", up.State.Status, up.State.Error)
		}
	}
}
