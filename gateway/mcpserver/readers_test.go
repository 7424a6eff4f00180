package mcpserver_test

import (
	"strings"
	"testing"
)

// TestSignatureOnceASession: an answer does not repeat a signature that its session has, except of the best hit and of a
// tool that the query names. Another session gets all.
func TestSignatureOnceASession(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.tool("tock")
	g := open(t, upstream("meter", m.url, ""))
	query := map[string]any{"query": "count up, and say how far"}
	const first, again = "  tick(**extra: Any) -> Any\n", "  tick: shown above"
	client, other := connectTo(t, g.Service(), ""), connectTo(t, g.Service(), "")
	for i, want := range []string{first, again, again} {
		got, _ := call(t, client, "search_tools", query)
		if !strings.Contains(got, want) || !strings.Contains(got, "  tock(**extra: Any) -> Any\n") || strings.Contains(got, again) != (want == again) {
			t.Errorf("answer %d: %s", i+1, got)
		}
	}
	if got, _ := call(t, client, "search_tools", map[string]any{"query": "tick"}); !strings.Contains(got, first) {
		t.Errorf("asked by name: %s", got)
	}
	if got, _ := call(t, other, "search_tools", query); !strings.Contains(got, first) {
		t.Errorf("another session: %s", got)
	}
}
