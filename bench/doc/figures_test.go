package doc_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/bench/stats"
	"sallyport/internal/testutil"
)

// claim is a figure that a page states as measured.
type claim struct {
	page, text string
	// command measures the figure; the page names it.
	command string
	// result returns the figure of the results, rounded as on the page; it is nil if no results are kept.
	result func(t *testing.T) (figure string)
}

// claims are the measured figures of the README and of the pages that people write.
func claims() []claim {
	const (
		waits, series, empty = "warm pool (one waits, each run uses one up)", "warm pool, one right after the other", "empty pool"
		sessions             = "20 sessions at once: programs a second"
	)
	const readme, benchmarks, limits, libraries = "README.md", "docs/explanation/benchmarks.md", "docs/explanation/limits.md", "docs/explanation/libraries.md"
	const install, policy, privacy, resume, workflows = "docs/how-to/install.md", "docs/how-to/policy.md", "docs/how-to/privacy.md", "docs/how-to/resume.md", "docs/how-to/workflows.md"
	const demo, timing, load, search, builds, sections = "make demo", "make bench-latency", "make bench-load", "make bench-search", "results are not kept", "go tool nm -size"
	return []claim{
		{readme, "5 ms when a sandbox waits", timing, latency(waits, "python", median, "%.0f ms")},
		{readme, "16 ms right after another", timing, latency(series, "python", median, "%.0f ms")},
		{readme, "148 ms in a new sandbox", timing, latency(empty, "python", median, "%.0f ms")},
		{readme, "20 sessions at once run 40 programs a second", timing, latency(sessions, "", median, "%.0f programs a second")},
		{readme, "bare interpreters 48", timing, latency(sessions, "", bare, "%.0f")},
		{readme, "| tool definitions | 212 | 4,059 |", demo, kept("demo.txt", "tool definitions 212 4059", "212 | 4,059")},
		{readme, "| calls and results | 742 | 13,034 |", demo, kept("demo.txt", "calls and results 742 13034", "742 | 13,034")},
		{readme, "| together | 954 | 17,093 |", demo, kept("demo.txt", "together 954 17093", "954 | 17,093")},

		{benchmarks, "ran 14.5 programs a second", load, kept("load.txt", "programs a second 14.5", "14.5")},
		{benchmarks, "the median program took 4.7 s", load, kept("load.txt", "p50 of those that ran 4.708s", "4.7 s")},
		{benchmarks, "3,945 requests were refused", load, kept("load.txt", "answers 503 3945", "3,945")},

		{"docs/explanation/capacity.md", "about 5 KB", "go test ./gateway/executor -run QueueMemory -v", nil},

		{limits, "34 to 43 MB", timing, span(latency("waiting sandbox, MemAvailable", "", median, "%.0f"), latency("waiting sandbox, PSS", "", median, "%.0f MB"))},
		{limits, "1,000 files of 1 kB add 0.3 s", "go test ./sandbox -bench Workspace", kept("workspace.txt", "1,000 files of 1 kB 801 1040 294", "0.3 s")},
		{limits, "6.1 % of good queries", search, kept("search.txt", "all good queries all 2773 6.1%", "6.1 %")},
		{limits, "15.1 % of those that use other words", search, kept("search.txt", "catalog/paraphrase all 139 15.1%", "15.1 %")},

		{libraries, "2,000 tools in 153 ms", timing, latency("index of 2,000 tools", "", median, "%.0f ms")},
		{libraries, "lean bleve: 297 ms", timing, latency("index of 2,000 tools", "", bare, "%.0f ms")},
		{libraries, "100,000 in 6.4 s", timing, latency("index of 100,000 tools", "", seconds(median), "%.1f s")},
		{libraries, "(18.1 s)", timing, latency("index of 100,000 tools", "", seconds(bare), "%.1f s")},
		{libraries, "17 MB of the binary", builds, nil},
		{libraries, "7 MB of the binary", builds, nil},
		{libraries, "326 kB", builds, nil},
		{libraries, "19 MB to a minimal program, anthropic-sdk-go 6 MB", builds, nil},
		{libraries, "11 MB of the binary, compressed files 1.1 MB", builds, nil},

		{install, "119.1 MB", "make build", nil},
		{install, "59.8 MB", "make dist", nil},
		{install, "80.4 MB", "make dist", nil},
		{install, "50.8 MB", "make dist", nil},
		{install, "take 0.11 s of", "make dist", nil},
		{install, "5 to 18 s", "make dist-check", nil},
		{readme, "5 to 18 s", "make dist-check", nil},
		{install, "| 8.3 MB |", "make dist", nil},
		{install, "| 4.2 MB |", "make dist", nil},
		{install, "| 3.1 MB |", "make dist", nil},
		{install, "| 0.9 MB |", "make dist", nil},
		{install, "| 0.7 MB |", "make dist", nil},
		{install, "| 0.5 MB |", "make dist", nil},
		{install, "| 0.2 MB |", "make dist", nil},
		{install, "0.2 MB less", "make dist", nil},
		{install, "0.4 MB less", "make dist", nil},
		{install, "0.6 MB less", "make dist", nil},
		{install, "takes 0.19 s, as of what `make build` builds (12 pairs", "make dist", nil},

		{policy, "take 14 µs per call", "go test -bench Decide ./internal/policy", kept("go.txt", "24866 13788 ns/op", "14 µs")},
		{policy, "up to 63 µs on a busy machine", "go test -bench Decide ./internal/policy", kept("go.txt", "10000 62517 ns/op", "63 µs")},
		{privacy, "77% found, 92% of its findings right | 95% found, 97% right | 0.2 ms per KB; 2 MB of memory", "make names", nil},
		{privacy, "70 in 2.4 MB of tool descriptions, 73 in 1 MB of code", "make names", nil},
		{resume, "0.7 to 0.8 ms", "go test ./internal/journal -bench Begin", span(kept("go.txt", "798 687468 ns/op", "0.7"), kept("go.txt", "579 819960 ns/op", "0.8 ms"))},
		{workflows, "about 0.8 ms", "go test ./gateway/workflow -bench Step", kept("workflow-engine.txt", "sequence 642 819 934", "0.8 ms")},
		{workflows, "1.7 to 2.8 ms on a busy machine", "go test ./gateway/workflow -bench Step", kept("workflow-engine.txt", "sequence p50 1,656 to 2,750", "1.7 to 2.8 ms")},
	}
}

// settings are figures that are not measured, by page: defaults, limits and intervals of the
// code, sizes of test data, and token counts that have a test of their own.
func settings() map[string][]string {
	return map[string][]string{
		"docs/deploy/README.md":                 {"15 s", "25 s", "30 s", "5 s", "60 s"},
		"docs/explanation/architecture.md":      {"2 s", "0.35 s"},
		"docs/explanation/attacks.md":           {"1 GB"},
		"docs/explanation/benchmarks/tokens.md": {"1,024 tokens"},
		"docs/explanation/capacity.md":          {"16 KB", "10 GB", "15 %", "70 %"},
		"docs/explanation/limits.md":            {"20 ms", "2 GB", "40 MB", "100 ms", "2 s", "3 s", "4 MB", "200 ms", "10 s"},
		"docs/explanation/security-model.md":    {"20 ms"},
		"docs/how-to/access.md":                 {"10 s", "30 s"},
		"docs/how-to/add-a-server.md":           {"0.1 s"},
		"docs/how-to/approvals.md":              {"5 s"},
		"docs/how-to/choose-a-mode.md":          {"1.5 s"},
		"docs/how-to/install.md":                {"60 MB"},
		"docs/how-to/measure-with-a-model.md":   {"8 s", "15 s"},
		"docs/how-to/measure-your-savings.md":   {"200,000 tokens", "1,024 tokens", "10 s"},
		"docs/how-to/plugins.md":                {"10s", "5s"},
		"docs/how-to/privacy.md":                {"5 s"},
		"docs/how-to/share-a-store.md":          {"10 s"},
		"docs/how-to/remote-sandboxes.md":       {"1 s", "2 s", "4 s", "30 s"},
		"docs/how-to/troubleshooting.md":        {"60 s"},
		"docs/how-to/workflows.md":              {"20 s", "30 s", "5 requests a second"},
		"docs/reference/bridge.md":              {"10 s", "30 s", "100 ms"},
		"docs/reference/tools.md":               {"193 tokens", "554 tokens", "317 tokens", "135 tokens", "53 tokens", "127 tokens", "283 tokens", "0 tokens"},
	}
}

// figure is a number with a unit of measurements. KiB, MiB and GiB are units of settings.
var figure = regexp.MustCompile(`\d[\d,.]*(?: to \d[\d,.]*)? ?(?:ms|us|µs|s|%|tokens|kB|KB|MB|GB)\b|\d[\d,.]*(?: to \d[\d,.]*)? ?%|\d[\d,.]*(?: \w+)? a second\b`)

// TestClaims checks that each measured figure is the one of the results, and that its page names the command.
func TestClaims(t *testing.T) {
	for _, c := range claims() {
		text := read(t, c.page)
		if !strings.Contains(text, c.text) {
			t.Errorf("%s no longer has %q: update claims", c.page, c.text)
			continue
		}
		if !strings.Contains(text, c.command) {
			t.Errorf("%s does not name %q, which measures %q", c.page, c.command, c.text)
		}
		if c.result == nil {
			continue
		}
		if want := c.result(t); !strings.Contains(c.text, want) {
			t.Errorf("%s has %q, the results have %s", c.page, c.text, want)
		}
	}
}

// TestFigures checks that the README and the pages that people write have no other figure: each
// is measured, and in claims, or a default or limit, and in settings.
func TestFigures(t *testing.T) {
	for _, page := range written(t) {
		text := prose(read(t, page))
		for _, c := range claims() {
			if c.page == page {
				text = strings.ReplaceAll(text, prose(c.text), strings.Repeat("_", len(prose(c.text))))
			}
		}
		for _, at := range figure.FindAllStringIndex(text, -1) {
			found := text[at[0]:at[1]]
			if !slices.Contains(settings()[page], found) {
				t.Errorf("%s: %q is neither in claims nor in settings of figures_test.go: ...%s...", page, found, text[max(0, at[0]-40):min(len(text), at[1]+40)])
			}
		}
	}
}

// TestPagesOfBenchmarks checks the length of the page of benchmarks, and the lines of all its pages.
func TestPagesOfBenchmarks(t *testing.T) {
	if words := len(strings.Fields(read(t, "docs/explanation/benchmarks.md"))); words > 2500 {
		t.Errorf("docs/explanation/benchmarks.md has %d words, not at most 2,500", words)
	}
	for _, page := range []string{"benchmarks.md", "benchmarks/tokens.md", "benchmarks/latency.md", "benchmarks/cluster.md", "benchmarks/search.md"} {
		data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs/explanation", page))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if utf8.RuneCountInString(strings.TrimSpace(line)) > 120 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s has a line of more than 120 characters: %.60s", page, line)
			}
		}
	}
}

// written returns the README and the pages of docs that people write.
func written(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	root := testutil.ModuleRoot(t)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := filepath.Rel(root, path)
		if page = filepath.ToSlash(page); !strings.Contains(read(t, page), "<!-- Generated.") {
			pages = append(pages, page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	generated = regexp.MustCompile(`(?s)<!-- begin [\w-]+ -->.*?<!-- end [\w-]+ -->`)
	fenced    = regexp.MustCompile("(?s)```.*?```")
	code      = regexp.MustCompile("`[^`]*`")
	image     = regexp.MustCompile(`\]\([^)]*\)`)
)

// prose returns a text without generated sections, code and link targets.
func prose(text string) string {
	for _, leave := range []*regexp.Regexp{generated, fenced, code, image} {
		text = leave.ReplaceAllString(text, "_")
	}
	return text
}

// read returns a file of the project with single spaces in place of white space.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

// kept returns a figure that was rounded by hand from a line of a file of bench/results.
func kept(file, line, rounded string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		if !strings.Contains(read(t, "bench/results/"+file), line) {
			t.Errorf("bench/results/%s has no line %q", file, line)
		}
		return rounded
	}
}

// span returns a range from one figure to another.
func span(from, to func(*testing.T) string) func(*testing.T) string {
	return func(t *testing.T) string { t.Helper(); return from(t) + " to " + to(t) }
}

// latencyRow is a row of bench/results/latency.jsonl.
type latencyRow struct {
	Case     string `json:"case"`
	Language string `json:"language"`
	stats.Compared
}

func median(r latencyRow) float64 { return r.P50 }
func bare(r latencyRow) float64   { return r.Bare.P50 }

// seconds is of in seconds, of a row in milliseconds.
func seconds(of func(latencyRow) float64) func(latencyRow) float64 {
	return func(r latencyRow) float64 { return of(r) / 1000 }
}

// latency returns a figure of a row, rounded by format.
func latency(name, language string, of func(latencyRow) float64, format string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "bench/results/latency.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var r latencyRow
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Case == name && r.Language == language {
				return fmt.Sprintf(format, of(r))
			}
		}
		t.Fatalf("latency.jsonl has no row %q %s", name, language)
		return ""
	}
}
