package execution

import (
	"strings"
	"testing"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// TestTally: what is small is counted to the token, what is large is reckoned from its beginning, and no more than that is kept of it.
func TestTally(t *testing.T) {
	t.Parallel()
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	count := func(s string) int {
		n, err := counter.Count(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	row := `{"id":17,"name":"Ada Lovelace","city":"London","tags":["a","b"]},` + "\n"
	for _, test := range []struct {
		name, answer string
		results      []tool.Result
		read         string
		off          float64 // how far the numbers may be from the truth
	}{
		{"nothing", "", nil, "", 0},
		{"small", "3 rows", []tool.Result{textResult(row), textResult(row)}, row + row, 0},
		{"structured", "x", []tool.Result{{Structured: []byte(row)}}, row, 0},
		{"many", strings.Repeat("done ", 50_000), []tool.Result{textResult(strings.Repeat(row, 5000)), textResult(strings.Repeat(row, 3000)), textResult(row)}, strings.Repeat(row, 8001), 0.03},
	} {
		calls, m := &toolcall.List{}, &Meter{}
		for _, r := range test.results {
			calls.Sample(r)
			calls.Add(toolcall.TextSize(r))
		}
		if calls.SampledBytes > toolcall.MaxResultsCounted {
			t.Errorf("%s: %d bytes of results are kept", test.name, calls.SampledBytes)
		}
		answered, read := NewCost(m, test.answer, calls).Tokens(true)
		for what, got := range map[string][2]int{"answered": {answered, count(test.answer)}, "read": {read, count(test.read)}} {
			if d := float64(got[0] - got[1]); d > test.off*float64(got[1]) || -d > test.off*float64(got[1]) {
				t.Errorf("%s: %s %d tokens, want %d", test.name, what, got[0], got[1])
			}
		}
	}
	m := &Meter{}
	before := m.Estimate(32_000)
	m.Count(strings.Repeat("=", 50_000))
	if after := m.Estimate(32_000); before != 10_000 || after > 1500 {
		t.Errorf("estimates are %d, and %d after what has many bytes to a token", before, after)
	}
	hurried := NewCost(m, strings.Repeat("=", 100), &toolcall.List{})
	if n, _ := hurried.Tokens(false); n == 0 || n > 20 {
		t.Errorf("an estimate of what was not counted is %d", n)
	}
}

func textResult(s string) tool.Result {
	return tool.Result{Content: []tool.Content{{Type: "text", Text: s}}}
}
