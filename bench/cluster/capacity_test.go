package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/cluster/plan"
	"sallyport/bench/doc"
)

// predictionBand is how far the simulation may be from what was measured.
const predictionBand = 0.15

// TestPrediction simulates the programs that wait on one and on two workers, with the measured costs, and compares the throughput with the
// one that was measured in the same run.
func TestPrediction(t *testing.T) {
	m, rows, err := readResults("../results/cluster.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	costs, err := costsOf(rows)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range rows {
		for _, n := range []int{1, 2} {
			if r.Case != crewRow(n, m.Seats) {
				continue
			}
			found++
			load := plan.Load{Clients: n * m.Seats, Calls: m.Waits, CallTime: waitTime.Seconds()}
			site := plan.Site{Gateways: 1, Workers: n, Cores: m.Cores, Seats: m.Seats, Parallel: n * m.Seats, OneMachine: true}
			got := plan.Simulate(costs, load, site, plan.Events{Seconds: 600, ServerCores: m.Cores}).Rate
			t.Logf("%d workers: %.2f programs a second are predicted, %.2f were measured", n, got, r.P50)
			if math.Abs(got-r.P50) > predictionBand*r.P50 {
				t.Errorf("%d workers: %.2f programs a second are predicted, %.2f were measured", n, got, r.P50)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d rows of one and two workers, want 2", found)
	}
}

// TestPlanDocument compares the plan in the documents with that of the results.
func TestPlanDocument(t *testing.T) {
	_, rows, err := readResults("../results/cluster.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want, err := new(options).planText(rows)
	if err != nil {
		t.Fatal(err)
	}
	got, err := doc.Section(capacityPath("../../docs/explanation"), planSection)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
		t.Errorf("docs/explanation/capacity.md (make bench-plan; -results +documents):\n%s", diff)
	}
}

// TestOwnFigures checks that figures which -figures - prints can be changed and read again, and that a result without costs is refused.
func TestOwnFigures(t *testing.T) {
	_, rows, err := readResults("../results/cluster.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := (&options{figures: "-"}).planText(rows)
	if err != nil {
		t.Fatal(err)
	}
	var figures plan.Figures
	if err := json.Unmarshal([]byte(printed), &figures); err != nil {
		t.Fatal(err)
	}
	figures.Rates, figures.Load.Calls = []float64{7}, 3
	changed, err := json.Marshal(figures)
	path := filepath.Join(t.TempDir(), "figures.json")
	if err := errors.Join(err, os.WriteFile(path, changed, 0o600)); err != nil {
		t.Fatal(err)
	}
	own, err := (&options{figures: path}).planText(rows)
	if err != nil || !strings.Contains(own, "Each program makes 3 calls") || !strings.Contains(own, "\n| 7 | 1 | ") {
		t.Errorf("%v, the plan of own figures:\n%s", err, own)
	}
	if _, err := new(options).planText(rows[:3]); err == nil || !strings.Contains(err.Error(), "measure again") {
		t.Errorf("a result without costs: %v", err)
	}
}
