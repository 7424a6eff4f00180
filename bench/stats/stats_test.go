package stats_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/stats"
)

func TestSummarize(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	rand.Shuffle(len(hundred), func(i, j int) { hundred[i], hundred[j] = hundred[j], hundred[i] })
	for _, test := range []struct {
		name   string
		values []float64
		want   stats.Summary
	}{
		{"none", nil, stats.Summary{}},
		{"one", []float64{7}, stats.Summary{N: 1, Min: 7, P50: 7, P99: 7, Max: 7}},
		{"two", []float64{9, 3}, stats.Summary{N: 2, Min: 3, P50: 3, P99: 9, Max: 9}},
		{"hundred", hundred, stats.Summary{N: 100, Min: 1, P50: 50, P99: 99, Max: 100}},
		{"an outlier in 30 is p99", append(make([]float64, 29), 500), stats.Summary{N: 30, P99: 500, Max: 500}},
	} {
		first := append([]float64(nil), test.values...)
		if diff := cmp.Diff(test.want, stats.Summarize(test.values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(first, test.values); diff != "" {
			t.Errorf("%s: the values were changed:\n%s", test.name, diff)
		}
	}
}

// TestCompare: the ratio is that of the medians, which outliers on either side do not move.
func TestCompare(t *testing.T) {
	c := stats.Compare([]float64{20, 10, 70}, []float64{10, 8, 40})
	if c.Ratio != 2 || c.P50 != 20 || c.Bare == nil || c.Bare.P50 != 10 || c.Bare.Max != 40 {
		t.Errorf("%+v: want the ratio of the medians, 20 to 10", c)
	}
	if c := stats.CompareRates([]float64{20, 10, 70}, []float64{10, 8, 40}); c.Ratio != .5 || c.P50 != 20 || c.Bare.P50 != 10 {
		t.Errorf("%+v: twice as many a second take half the time", c)
	}
	if c := stats.CompareRates([]float64{3}, nil); c.Bare != nil || c.Ratio != 0 || c.P50 != 3 {
		t.Errorf("%+v: without a twin there is neither twin nor ratio of rates", c)
	}
	if c := stats.Compare([]float64{3}, nil); c.Bare != nil || c.Ratio != 0 || c.P50 != 3 {
		t.Errorf("%+v: without a twin there is neither twin nor ratio", c)
	}
	if c := stats.Compare([]float64{3}, []float64{0}); c.Ratio != 0 {
		t.Errorf("%+v: nothing is a multiple of no time", c)
	}
}
