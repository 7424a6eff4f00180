package history

import (
	"strings"
	"testing"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// TestStatsText: what many records say together.
func TestStatsText(t *testing.T) {
	t.Parallel()
	s := stats{status: map[string]int{}, language: map[string]int{}, calls: map[string]int{}, fail: map[string]int{}}
	begin := time.Date(2026, 11, 22, 2, 30, 0, 0, time.UTC)
	for i := range 100 {
		r := Record{Status: "ok", Language: "python", Started: begin.Add(time.Duration(100-i) * time.Minute), Duration: time.Duration(i+1) * time.Millisecond, Tokens: 10, Made: 2}
		r.Calls = []toolcall.RecordedCall{{Tool: tool.ID{Upstream: "crm"}, Outcome: "ok", Size: 4000}, {Tool: tool.ID{Upstream: string(rune('a' + i%12))}, Outcome: "timeout", Size: 400}}
		r.Made = 2 + i/99
		if i%2 == 0 {
			r.TokensRead = 1375
		}
		s.add(r)
	}
	var b strings.Builder
	s.write(&b)
	const want = `100 programs since 2026-11-22 02:31 UTC: 100 ok; 100 python
duration: p50 50ms, p99 99ms
tool calls: 201: 100 crm, 9 a, 9 b, 9 c, 9 d, 8 e, 8 f, 8 g, 8 h, 8 i, and 3 more; failed: 9 a, 9 b, 9 c, 9 d, 8 e, 8 f, 8 g, 8 h, 8 i, 8 j, and 2 more
answers: 1000 tokens; results that programs read: at least 137500, so 136500 stayed out of the context
`
	if b.String() != want {
		t.Error(b.String())
	}
	if got := percentile([]time.Duration{7}, 99); got != 7 {
		t.Error(got)
	}
	for d, want := range map[time.Duration]string{1234567: "1.2ms", 12345678: "12ms", 1234567890: "1.2s", 999: "999ns", 72 * time.Second: "1m12s"} {
		if got := roundDuration(d).String(); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}
