package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/bench/stats"
	"sallyport/bench/table"
	"sallyport/internal/testutil/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

// TestDocument compares the documents with the results.
func TestDocument(t *testing.T) {
	m, rows, err := readResults("../results/cluster.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := doc.Section(documentPath("../../docs/explanation"), page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documentText(m, rows), got); diff != "" {
		t.Errorf("docs/explanation/benchmarks/cluster.md (make bench-cluster ARGS=-report; -results +documents):\n%s", diff)
	}
}

// TestSection checks that what was written is read again, and that missed targets are in the losses.
func TestSection(t *testing.T) {
	rows := []table.Row{
		{Case: "program on a worker", Language: "python", Unit: "ms", Compared: stats.Compare([]float64{8}, []float64{6}), Note: "so it was", Bars: []table.Bar{table.AtMost("added p50 ms", 3, 2)}},
		{Case: "tool call on a worker", Language: "python", Unit: "us", Compared: stats.Compare([]float64{1200}, []float64{600}), Bars: []table.Bar{table.AtMost("added p50 us", 500, 600)}},
	}
	o := &options{out: filepath.Join(t.TempDir(), "out")}
	if err := o.write(&machine{Cores: 2, CPU: "a processor", Load: "3.1 2 1 1/2 3", Busy: true}, rows); err != nil {
		t.Fatal(err)
	}
	m, read, err := readResults(o.out + ".jsonl")
	if diff := cmp.Diff(rows, read); err != nil || diff != "" {
		t.Fatalf("%v, other rows (-written +read):\n%s", err, diff)
	}
	made := documentText(m, read)
	for _, part := range []string{"- 1 of 2 targets are met.\n- Missed: tool call on a worker: added p50 us 600, target <= 500.\n", "2 x a processor", "(-busy: others used the processors)", "- program on a worker: so it was."} {
		if strings.Count(made, part) != 1 {
			t.Errorf("want %q once in:\n%s", part, made)
		}
	}
}

// TestOptions checks that wrong options are refused, and that results are not made of a busy machine unless -busy insists.
func TestOptions(t *testing.T) {
	for _, counts := range []string{"", "1,x", "0"} {
		if err := (&options{n: 1, servers: 1, seats: 1, waits: 1}).check(counts); err == nil {
			t.Errorf("-workers %q is taken", counts)
		}
	}
	if err := (&options{n: 1, servers: 1, waits: 1}).check("1"); err == nil {
		t.Error("no seats are taken")
	}
	busy := &machine{Cores: 2, Load: "2.10 0 0 1/2 3"}
	if err := (&options{out: "x"}).mayWrite(busy); err == nil {
		t.Error("a busy machine is measured on")
	}
	if err := (&options{out: "x", busy: true}).mayWrite(busy); err != nil || !busy.Busy {
		t.Errorf("%v, %+v", err, busy)
	}
}
