package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/bench/stats"
)

// TestDocument holds docs/explanation/benchmarks.md to the results beside it; before the first whole run both are missing.
func TestDocument(t *testing.T) {
	want := ""
	switch m, rows, err := readResults("../results/latency.jsonl"); {
	case err == nil:
		want = strings.TrimSpace(section(m, rows))
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	got, err := doc.Section("../../docs/explanation/benchmarks.md", "latency")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/explanation/benchmarks.md is not what make bench-latency has found (-results +document):\n%s", diff)
	}
}

// TestSection: what was written is read again, and each row stands in one table with its ratio.
func TestSection(t *testing.T) {
	rows := []row{
		{Case: "warm pool", Language: "python", Unit: "ms", Compared: stats.Compare([]float64{6, 5, 24}, []float64{12, 15, 30}), Note: "so it was", Bars: []bar{atMost("ratio", 1, .4)}},
		{Case: "query of 2,000 tools", Unit: "ms", Compared: stats.Compare([]float64{.5}, []float64{.1}), Bars: []bar{atMost("p50 ms", .1, .5)}},
		{Case: "waiting sandbox, PSS", Unit: "MB", Compared: stats.Compare([]float64{34}, nil)},
	}
	m := &machine{Cores: 2, CPU: "a processor", Load: "0.25 0.5 1 2/93 18601", Versions: map[string]string{"commit": "0123456789ab", "tools": "a catalogue"}}
	o := &options{out: filepath.Join(t.TempDir(), "out")}
	if err := write(o, m, rows); err != nil {
		t.Fatal(err)
	}
	back, read, err := readResults(o.out + ".jsonl")
	if diff := cmp.Diff(rows, read); err != nil || diff != "" {
		t.Errorf("%v, other rows (-written +read):\n%s", err, diff)
	}
	text := section(back, read)
	for _, part := range []string{
		"2 x a processor", "load 0.25 at", "commit 0123456789ab",
		"| warm pool, python | ms | 3 | 5.00 | 6.00 | 24.00 | 15.00 | 0.40 | ratio 0.4 <= 1 met |", "| query of 2,000 tools | ms | 1 | 0.50 | 0.50 | 0.50 | 0.10 | 5.00 | p50 ms 0.5 <= 0.1 MISSED |",
		"| waiting sandbox, PSS | MB | 1 | 34.00 | 34.00 | 34.00 |  |  |  |", "tools: a catalogue", "Of the bars: 1 of 2 met.",
	} {
		if strings.Count(text, part) != 1 {
			t.Errorf("want %q once in:\n%s", part, text)
		}
	}
}

// readResults reads what write wrote.
func readResults(path string) (m machine, rows []row, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return m, nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for first := true; lines.Scan(); first = false {
		var r row
		into := any(&r)
		if first {
			into = &m
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			return m, nil, fmt.Errorf("read %s: %w", path, err)
		}
		if !first {
			rows = append(rows, r)
		}
	}
	return m, rows, nil
}
