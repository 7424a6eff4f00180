package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/bench/corpus"
	"sallyport/bench/procs"
	"sallyport/bench/stats"
	"sallyport/internal/sleep"
)

// lonely are the rows that have no bare twin, by what is in their names, with the reason.
func lonely() map[string]string {
	return map[string]string{
		": index.FromTool":                "a part of the row above, which has one",
		": index.New":                     "a part of the row above, which has one",
		": processor time a program":      "that of the interpreter is in the row \"processor time a program, refill included\"",
		", function":                      "a Go function that a Go function calls is nothing to be a multiple of",
		"connects to none: search of all": "nothing bare knows tools from a run before",
		"waiting sandbox, MemAvailable":   "interpreters that wait share with too much else to be seen in it",
	}
}

// without is why a row has no twin, if that is known.
func without(r row) string {
	for part, why := range lonely() {
		if strings.Contains(r.Case, part) {
			return why
		}
	}
	return ""
}

// TestTwins: each row of the results has a bare twin, except those that are listed with a reason.
func TestTwins(t *testing.T) {
	_, rows, err := readResults("../results/latency.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range rows {
		if why := without(r); (r.Bare == nil) != (why != "") {
			t.Errorf("%s %s: bare %v, but the list of those without says %q", r.Case, r.Language, r.Bare, why)
		}
		used[without(r)] = true
	}
	for part, why := range lonely() {
		if !used[why] {
			t.Errorf("no row has %q in its name any more", part)
		}
	}
}

// TestPartsAreNotKept: what is not the whole benchmark, or not of real tools, is not written in the place of the results.
func TestPartsAreNotKept(t *testing.T) {
	for _, test := range []struct {
		o           options
		only, sizes string
		want        string
	}{
		{options{n: 30}, "", allSizes, ""},
		{options{n: 29}, "", allSizes, "-n is below 30"},
		{options{n: 30, poolless: true}, "", allSizes, "-poolless"},
		{options{n: 30}, "warm", allSizes, "-only"},
		{options{n: 30}, "", "100", "-sizes"},
	} {
		if got := test.o.partial(test.only, test.sizes); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v only %q sizes %q: %q, want %q", test.o, test.only, test.sizes, got, test.want)
		}
	}
	made, err := corpus.Open(t.TempDir(), "../search/queries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var o options
	o.use(&machine{Versions: map[string]string{}, Digests: map[string]string{}}, made)
	if !strings.Contains(o.partialReason, "made up") {
		t.Errorf("tools that are made up: %q", o.partialReason)
	}
}

// TestBusyMachine: results are not made of a busy machine unless -busy insists, and then they say so.
func TestBusyMachine(t *testing.T) {
	for _, test := range []struct {
		load                 string
		out, part            string
		insists, fails, says bool
	}{
		{load: "1.90 9 9 1/2 3", out: "x"},
		{load: "2.10 0 0 1/2 3", out: "x", fails: true},
		{load: "2.10 0 0 1/2 3", out: "x", insists: true, says: true},
		{load: "1.90 0 0 1/2 3", out: "x", insists: true},
		{load: "2.10 0 0 1/2 3", out: "x", part: "a part"},
		{load: "2.10 0 0 1/2 3"},
		{out: "x"},
	} {
		m := &machine{Cores: 2, Load: test.load}
		err := (&options{out: test.out, partialReason: test.part, busy: test.insists}).mayWrite(m)
		if (err != nil) != test.fails || strings.Contains(m.head(""), "-busy") != test.says {
			t.Errorf("%+v: %v, %s", test, err, m.head(""))
		}
	}
}

// TestPartialIsKept: the rows of a run that fails stay, next to the results and not in their place.
func TestPartialIsKept(t *testing.T) {
	o := &options{out: filepath.Join(t.TempDir(), "out")}
	rows := []row{{Case: "warm pool", Unit: "ms", Compared: stats.Compare([]float64{7}, []float64{14})}}
	if err := writePartial(o, &machine{}, rows); err == nil || !strings.Contains(err.Error(), "the 1 rows before that are in "+o.out+".partial") {
		t.Errorf("it says %v", err)
	}
	if text, err := os.ReadFile(o.out + ".partial"); err != nil || !strings.Contains(string(text), "warm pool") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := os.Stat(o.out + ".txt"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are results: %v", err)
	}
	o.partialReason = "a part"
	if err := writePartial(o, &machine{}, rows); err != nil {
		t.Errorf("a part is kept: %v", err)
	}
}

// TestSpent: the processor time of what a child has left behind is counted, while it runs and when it has ended.
func TestSpent(t *testing.T) {
	if err := procs.Adopt(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", `sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' & exit 0`, dir+"/x")
	g := &instance{dir: dir, command: command}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	before := procs.ChildrenTime()
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); procs.ChildrenTime() < before+30; {
		if used := g.usedTime(); used < before || time.Now().After(end) {
			t.Fatalf("%.0f ms were used, %.0f before: the child's child is not counted", used, before)
		}
		if err := sleep.For(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRound: a round is all programs of all sessions in both languages, its rate is of those that succeeded, and errors are counted.
func TestRound(t *testing.T) {
	var r round
	var python, failed atomic.Int64
	for range 2 {
		r.runBlock(func(client int, l language, _ string) (float64, error) {
			if l.name == "python" {
				python.Add(1)
			}
			if client == 7 {
				failed.Add(1)
				return 0, errors.New("no")
			}
			return 5, nil
		})
	}
	const all = 2 * sessions * each
	if python.Load() != all/2 || len(r.errs) != 2*each || int(failed.Load()) != 2*each || len(r.took) != all-2*each || len(r.rates) != 2 || r.rates[0] <= 0 {
		t.Errorf("of %d programs %d were Python; %d errors, %d times, rates %v", all, python.Load(), len(r.errs), len(r.took), r.rates)
	}
}

// TestSearchThatFindsNothing: queries that find nothing through the gateway are no measurement, whatever it says about them.
func TestSearchThatFindsNothing(t *testing.T) {
	b := testBench(t)
	p, err := b.pair(30)
	if err != nil {
		t.Fatal(err)
	}
	defer b.release()
	other, err := b.pair(40)
	if err != nil || len(other.tools) != 40 || b.last != other {
		t.Fatalf("%v", err)
	}
	if _, err := p.bare.Search(t.Context(), "a", 1); err == nil {
		t.Error("the pair of the size before is alive next to the next one")
	}
	if p, err = b.pair(30); err != nil {
		t.Fatal(err)
	}
	b.tools.Queries = []string{p.tools[3].Tool.Wire}
	if err := b.throughGateway(t.Context(), p); err != nil {
		t.Error(err)
	}
	b.tools.Queries = []string{"xyzzyqwv"}
	if err := b.throughGateway(t.Context(), p); err == nil || !strings.Contains(err.Error(), "found 0 and 0") {
		t.Errorf("a query that finds nothing gave %v", err)
	}
}
