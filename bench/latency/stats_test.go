package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/table"
)

func TestBars(t *testing.T) {
	python := languages()[0]
	r := comparedRow("warm pool", python, []float64{20, 10, 70}, []float64{10, 8, 40})
	if r.Ratio != 2 || r.Bare.P50 != 10 || r.P50 != 20 {
		t.Errorf("%+v: want the ratio of the medians, 20 to 10", r)
	}
	r.Bars = []bar{atMost("ratio", python.ratio, r.Ratio), steady(r.Summary), atLeast("1/s", 5000, 5000), atMost("ms", 20, 20)}
	var met []bool
	for _, b := range r.Bars {
		met = append(met, b.Met)
	}
	if diff := cmp.Diff([]bool{false, false, true, true}, met); diff != "" {
		t.Errorf("met (-want +got):\n%s", diff)
	}
	rows := []row{r, {Case: "without a bar"}}
	if got := table.Misses(rows); got != 2 {
		t.Errorf("%d missed, want 2", got)
	}
	text := table.Text(rows, true) + verdict(rows)
	for _, part := range []string{"ratio 2 <= 1 MISSED; p99/p50 3.5 <= 3 MISSED; 1/s 5000 >= 5000 met", "2 of 4 targets are met"} {
		if !strings.Contains(text, part) {
			t.Errorf("the table does not say %q:\n%s", part, text)
		}
	}
}

func TestMemoryIsRead(t *testing.T) {
	if free, err := available(); err != nil || free < 1<<20 {
		t.Errorf("%v bytes available, %v", free, err)
	}
}

// TestBareRunsTheLine: both interpreters print what the program of one line is to print.
func TestBareRunsTheLine(t *testing.T) {
	for _, l := range languages() {
		if _, err := exec.LookPath(l.interpreter); err != nil {
			t.Logf("no %s", l.interpreter)
			continue
		}
		if took, err := l.bare(context.Background()); err != nil || took <= 0 {
			t.Errorf("%s: %v ms, %v", l.name, took, err)
		}
		l.prints = "43"
		if _, err := l.bare(t.Context()); err == nil {
			t.Errorf("%s: another output is no error", l.name)
		}
	}
}
