package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/bench/tokencount"
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
	made["small.txt"], made["small.md"], made["short.md"], made["losses.md"] = r.Text(), r.Markdown()+"\n", r.Short()+"\n", r.Losses()+"\n"
	for name, got := range made {
		golden.Check(t, filepath.Join("testdata", name), got)
	}
}

// What the golden files show was worked out by hand here, once.
func TestFigures(t *testing.T) {
	r, _ := read(t, "testdata/small.jsonl")
	page := r.Markdown() + r.Losses() + r.Short()
	for what, row := range map[string]string{
		// Direct: two turns, 1,020 + 30 and 1,060 + 5; the 1,020 are too few to be cached, and all of code mode's contexts are. Of the tool
		// search's 2,865 the second turn's 1,230 are read again, at a tenth.
		"direct calls win with one server": "| small | one call | 2 / 3 / 3 | 2,115 | 2,865 | **2,225** | 2,115 | 1,758 | **2,225** | direct; cached: tool search |",
		// Code mode reads and writes 2,375 with five servers, and direct 115 but for definitions: (2,375 - 115) / 2 turns. With a cache it is
		// 1.1 of them and 97, as soon as 1,004 with the prompt can be cached, and 2,375 in code mode as before: 2,278 / 1.1; with one that is
		// warm .2 of them and 97; with output at five .2 and 237, against 2,675; with storing at 1.25 .2 and 252, against 3,250.
		"break-even": "| small | 1,130 (6) | 2,071 (10) | 11,390 (57) | 12,190 (61) | 14,990 (75) | 17 % | 12 % |",
		// Small: at a tenth, 20,020 tokens of direct calls and 1,230 of the tool search are 2,002 and 123, with 95 and 1,635 next to them; code
		// mode caches nothing. Large: 52,147 and 51,808; code mode has 2,820 at a tenth, and 3,325 next to them.
		"a warm cache favours direct calls": "|  | definitions cached before | 2 | 54,244 | 5,982 | 89 % | **-13 %** | 2 | 53,566 | 5,982 | 89 % | **-35 %** |",
		"no saving where nothing fits":      "| 36 | no cache | none |  |  |  |  | 1 | 2,865 | 2,525 | 12 % | 12 % |",
		"where code mode loses":             "| 1 | no cache | 1 of 1 | 0 of 1 | small |  |",
		// 1.25 * 2,150 + 5 * 75 in code mode, 1.25 * 2,080 + 5 * 35 by direct calls, and 123 + 1.25 * 1,590 + 5 * 45 with a search.
		"where it loses at real prices": "| 1 | and storing at 1.25 | 1 of 1 | 1 of 1 | small | small |",
		"in words":                      "Code mode costs more than direct calls in 1 of 1 tasks with one server and in 0 to 1 of 2 tasks with 5 servers.",
		"break-even in words":           "like prices: in 1 of 2 tasks code mode is cheaper even without definitions; in 1 from 14,990 tokens of definitions (75 tools).",
		"what it saves":                 "| 5 servers | 50 | 91 % / 88 % | 86 % / **-44 %** | 85 % / 17 % | 86 % / **-39 %** |",
		"what is not counted":           "they have 312 tokens with 5 servers",
		"what a tool search shows":      "Tool search showed 3 tools a search in 3 and 5 tools a search in 2, of 5 counts",
		"plays are no counts":           "17 plays, 15 counts (",
		"which servers":                 "| x, shown | @acme/x | 2.0.0 | 5 | 700 | 36 |",
		"a wrong answer is named":       `- Wrong: large, tool search, 36 servers: check large: answered "41", not "42"`,
		"it is said on top":             "**1 of 15 counts have no right answer; these results are unreliable.**",
		"windows":                       "- direct, 36 servers: contexts of up to 950,085 tokens do not fit 200,000: 2, all of 2.",
		"a second search":               "large (2 tries; servers: 5, 36)",
		"failed programs":               "large (one call, 240 tokens; servers: 5, 36)",
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

// What code mode gets wrong is done again by the mode that gets it right: 2,375 and 20,115 tokens, next to 6,145 of the other task.
func TestWrongAnswersCost(t *testing.T) {
	r, _ := read(t, "testdata/small.jsonl")
	lines := slices.Clone(r.Lines)
	for i := range lines {
		if l := &lines[i]; l.Task == "small" && l.Mode == "code" && l.Servers == 5 {
			l.Correct = false
		}
	}
	page := report.New(r.Head, lines).Markdown()
	for _, row := range []string{"| 5 | no cache | 2 | 90,280 | 28,635 | 68 % | **-12 %** |", "| 5 | no cache | 1 of 2 | 1 of 2 | small | small |", "| small | never | never | never | never | never |  | 12 % |"} {
		if !strings.Contains(page, row) {
			t.Errorf("%s is not on the page:\n%s", row, page)
		}
	}
}

// The break-even equals the result of trying every number of definitions.
func TestBreakEven(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 2))
	const most = 9000
	for range 300 {
		direct, rates := conversation(random), tokencount.Rates{Cached: .1, Stored: 1 + .25*float64(random.IntN(2)), Output: 1 + 4*float64(random.IntN(2)), Minimum: 1024 * random.IntN(2), Warm: random.IntN(2) == 0}
		code := float64(random.IntN(6000))
		want := 0
		for n := most; n >= 0 && want == 0; n-- {
			if with(direct, n).WeightedCost(rates) < code {
				want = n + 1
			}
		}
		if got, ok := report.BreakEven(with(direct, 5000), code, rates); want <= most && (got != want || !ok) {
			t.Fatalf("direct calls %+v, %+v: as dear as %g from %d tokens of definitions on (%v), want %d", direct, rates, code, got, ok, want)
		}
	}
	if _, ok := report.BreakEven(with([]turn{{new: 10, written: 5}}, 0), 100, tokencount.Rates{}); ok {
		t.Error("what costs nothing is as dear as code mode at some time")
	}
}

// turn is what a turn reads in addition to what was there before, and what it writes.
type turn struct{ new, written int }

func conversation(random *rand.Rand) (turns []turn) {
	for range 1 + random.IntN(4) {
		turns = append(turns, turn{random.IntN(700), random.IntN(100)})
	}
	return turns
}

// with returns a conversation with a number of tokens of definitions.
func with(turns []turn, definitions int) tokencount.Counts {
	c := tokencount.Counts{Definitions: definitions}
	context, before := definitions, 0
	for _, t := range turns {
		context += t.new
		c.Turns = append(c.Turns, tokencount.Step{Read: context, Cached: before, Written: t.written})
		c.Read, c.Cached, c.Written = c.Read+context, c.Cached+before, c.Written+t.written
		before = context
		context += t.written
	}
	return c
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "EOF",
		`{"format":"x"}`:                  `format is "x"`,
		`{"format":"sallyport tokens 1"}`: `format is "sallyport tokens 1"`,
		"{\"format\":\"sallyport tokens 2\"}\n{\"task\":1}": "line 2",
	} {
		if _, err := report.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Text, pages and plots are those that the committed lines of JSON make.
func TestPageIsMadeOfResults(t *testing.T) {
	const root = "../../.."
	r, _ := read(t, filepath.Join(root, "bench/results/tokens.jsonl"))
	texts, err := doc.ReadTexts(filepath.Join(root, "docs/explanation"), report.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Texts().Wrapped(), texts); diff != "" {
		t.Errorf("docs/explanation/benchmarks.md and benchmarks/tokens.md (make bench-tokens ARGS=-report):\n%s", diff)
	}
	made := map[string]string{filepath.Join(root, "bench/results/tokens.txt"): r.Text()}
	for name, plot := range r.Plots() {
		made[filepath.Join(root, "docs/explanation/benchmarks", name)] = plot
	}
	for path, want := range made {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the results make of it (make bench-tokens ARGS=-report): %v", path, err)
		}
	}
}

// The plots are XML, and nothing in them lies outside of the picture.
func TestPlots(t *testing.T) {
	r, _ := read(t, "testdata/small.jsonl")
	if len(r.Plots()) != 3 {
		t.Errorf("there are %d plots", len(r.Plots()))
	}
	for name, plot := range r.Plots() {
		lines, width, height, marks := xml.NewDecoder(strings.NewReader(plot)), 0., 0., 0
		var element xml.StartElement
		for {
			token, err := lines.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, ok := token.(xml.CharData); ok && element.Name.Local == "text" {
				if from, to := extent(t, element, string(text)); from < 0 || to > width {
					t.Errorf("%s: %q reaches from %g to %g of %g", name, text, from, to, width)
				}
			}
			element, _ = token.(xml.StartElement)
			if element.Name.Local == "svg" {
				width, height = attribute(t, element, "width"), attribute(t, element, "height")
			}
			for _, p := range corners(t, element) {
				marks++
				if !(p[0] >= 0 && p[0] <= width && p[1] >= 0 && p[1] <= height) {
					t.Errorf("%s: %+v is outside of %g x %g", name, element, width, height)
				}
			}
		}
		if marks < 40 {
			t.Errorf("%s has %d coordinates", name, marks)
		}
	}
}

// attribute is 0 where there is none.
func attribute(t *testing.T, e xml.StartElement, name string) float64 {
	t.Helper()
	for _, a := range e.Attr {
		if a.Name.Local == name {
			n, err := strconv.ParseFloat(a.Value, 64)
			if err != nil {
				t.Errorf("%+v: %v", e, err)
			}
			return n
		}
	}
	return 0
}

// extent is where a text begins and ends, with a generous letter.
func extent(t *testing.T, e xml.StartElement, text string) (from, to float64) {
	t.Helper()
	width := 7 * float64(len(text))
	for _, a := range e.Attr {
		if a.Name.Local == "font-size" {
			width *= attribute(t, e, "font-size") / 12
		}
	}
	from = attribute(t, e, "x")
	for _, a := range e.Attr {
		switch {
		case a.Name.Local == "text-anchor" && a.Value == "middle":
			from -= width / 2
		case a.Name.Local == "text-anchor" && a.Value == "end":
			from -= width
		}
	}
	return from, from + width
}

// corners are where an element of a plot reaches to; of a text, where it is anchored.
func corners(t *testing.T, e xml.StartElement) (list [][2]float64) {
	t.Helper()
	at := func(x, y, dx, dy string) [2]float64 {
		return [2]float64{attribute(t, e, x) + attribute(t, e, dx), attribute(t, e, y) + attribute(t, e, dy)}
	}
	switch e.Name.Local {
	case "", "svg", "title":
	case "rect":
		return [][2]float64{at("x", "y", "", ""), at("x", "y", "width", "height")}
	case "line":
		return [][2]float64{at("x1", "y1", "", ""), at("x2", "y2", "", "")}
	case "text":
		return [][2]float64{at("x", "y", "", "")}
	case "circle":
		return [][2]float64{at("cx", "cy", "r", "r")}
	case "polyline", "path":
		for _, a := range e.Attr {
			if a.Name.Local != "points" && a.Name.Local != "d" {
				continue
			}
			for _, point := range regexp.MustCompile(`([-\d.]+)[, ]([-\d.]+)`).FindAllStringSubmatch(strings.Split(a.Value, "l")[0], -1) {
				x, err := strconv.ParseFloat(point[1], 64)
				y, err2 := strconv.ParseFloat(point[2], 64)
				if err := errors.Join(err, err2); err != nil {
					t.Errorf("%+v: %v", e, err)
				}
				list = append(list, [2]float64{x, y})
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || len(list) == 0 {
				t.Errorf("%+v has no coordinates", e)
			}
		}
	default:
		t.Errorf("a plot has a %s at an unknown place", e.Name.Local)
	}
	return list
}
