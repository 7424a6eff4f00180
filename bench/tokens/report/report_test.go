package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/bench/tokens/report"
	"sallyport/internal/testutil/golden"
)

func read(t *testing.T, path string) (*report.Results, []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r, data
}

// The lines of small.jsonl were made by hand: two tasks, one that code mode loses and one that a search gets wrong.
func TestReport(t *testing.T) {
	r, data := read(t, "testdata/small.jsonl")
	var again bytes.Buffer
	if err := r.Write(&again); err != nil || again.String() != string(data) {
		t.Errorf("written again, the lines are\n%s\n%v", again.String(), err)
	}
	made := r.Plots()
	made["small.txt"], made["small.md"] = r.Text(), r.Markdown()+"\n"
	for name, got := range made {
		golden.Check(t, filepath.Join("testdata", name), got)
	}
}

// What the golden files show was worked out by hand here, once.
func TestFigures(t *testing.T) {
	r, _ := read(t, "testdata/small.jsonl")
	page := r.Markdown()
	for what, row := range map[string]string{
		// Direct: two turns, 1,020 + 30 and 1,060 + 5; with a cache, 1,020 of them at a tenth.
		"direct calls win with one server": "| small | one call | 2 / 3 / 3 | 2,115 | 2,865 | **2,225** | 1,197 | 1,470 | 1,100 | direct; cached: code mode |",
		// Code mode reads and writes 2,375 with five servers, and direct 115 but for definitions: (2,375 - 115) / 2 turns; with
		// a cache (1,160 - 97) / 1.1, and with one that is warm, (1,160 - .9 * 450 - 97) / .2.
		"break-even": "| small | 1,130 | 6 | 966 | 5 | 3,290 | 16 | 17 % | 12 % |",
		// At a tenth, definitions of 1,000 tokens are 100 a turn.
		"a warm cache favours direct calls": "|  | definitions cached before | 1 | 297 | 740 | **-149 %** | **-149 %** | 1 | 1,200 | 740 | 38 % | 38 % |",
		"no saving where nothing fits":      "| 36 | no cache | none |  |  |  |  | 1 | 2,865 | 2,525 | 12 % | 12 % |",
		"where code mode loses":             "| 1 | no cache | 1 of 1 | 0 of 1 | small |  |",
		"a wrong answer is named":           `- Wrong: large, tool search, 36 servers: check large: answered "41", not "42"`,
		"windows":                           "- direct, 36 servers: contexts of up to 950,085 tokens do not fit 200,000: 2, all of 2.",
		"a second search":                   "large (2 tries; servers: 5, 36)",
		"failed programs":                   "large (one call, 240 tokens; servers: 5, 36)",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("%s: %s is not on the page", what, row)
		}
	}
	// Direct calls read 900,020 and 950,080 tokens, and write 65; a wrong answer has no number.
	if text := strings.Join(strings.Fields(r.Text()), " "); !strings.Contains(text, "(1,850,165) wrong 6,395") {
		t.Error("a context that fits no window is not in parentheses, or a wrong answer has a number")
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":               "EOF",
		`{"format":"x"}`: `format is "x"`,
		"{\"format\":\"sallyport tokens 1\"}\n{\"task\":1}": "line 2",
	} {
		if _, err := report.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Nobody edits figures: text, page and plots are those that the committed lines of JSON make.
func TestPageIsMadeOfResults(t *testing.T) {
	const root = "../../.."
	r, _ := read(t, filepath.Join(root, "bench/results/issue-11-tokens.jsonl"))
	section, err := doc.Section(filepath.Join(root, "docs/benchmarks.md"), report.Section)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Markdown(), section); diff != "" {
		t.Errorf("docs/benchmarks.md (make bench-tokens ARGS=-report):\n%s", diff)
	}
	made := map[string]string{filepath.Join(root, "bench/results/issue-11-tokens.txt"): r.Text()}
	for name, plot := range r.Plots() {
		made[filepath.Join(root, "docs/benchmarks", name)] = plot
	}
	for path, want := range made {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the results make of it (make bench-tokens ARGS=-report): %v", path, err)
		}
	}
}

// The plots are XML, and nothing in them lies outside of the picture.
func TestPlotsAreXML(t *testing.T) {
	r, _ := read(t, "testdata/small.jsonl")
	for name, plot := range r.Plots() {
		lines := xml.NewDecoder(strings.NewReader(plot))
		for {
			_, err := lines.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if strings.Contains(plot, "NaN") || strings.Contains(plot, "Inf") {
			t.Errorf("%s has no number where one is to be", name)
		}
	}
}
