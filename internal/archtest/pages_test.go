package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	referenceLink = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	symptom       = regexp.MustCompile("(?m)^### (.*)$")
)

// TestLinks checks that the files that pages link to exist, and that the map links every page of docs.
func TestLinks(t *testing.T) {
	root := testutil.ModuleRoot(t)
	for _, page := range pages(t, root) {
		for _, target := range links(t, filepath.Join(root, page)) {
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to a missing file: %v", page, err)
			}
		}
	}
	mapped := links(t, filepath.Join(root, "docs", "README.md"))
	for _, page := range pages(t, root) {
		if path := filepath.Join(root, page); strings.HasPrefix(page, "docs/") && page != "docs/README.md" && !slices.Contains(mapped, path) {
			t.Errorf("docs/README.md does not link %s", page)
		}
	}
}

// TestReadmeIsShort checks the length of the README, its lines, and of the pages that it leads to first.
func TestReadmeIsShort(t *testing.T) {
	root := testutil.ModuleRoot(t)
	text := read(t, filepath.Join(root, "README.md"))
	body, _, _ := strings.Cut(text, "\n[approvals]: ")
	if words := len(strings.Fields(body)); words > 900 || words == len(strings.Fields(text)) {
		t.Errorf("the README has %d words before its links, not at most 900", words)
	}
	guides, _ := filepath.Glob(filepath.Join(root, "docs", "how-to", "*.md"))
	for _, page := range append(guides, filepath.Join(root, "README.md"), filepath.Join(root, "docs", "README.md")) {
		for line := range strings.Lines(read(t, page)) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 120 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s has a line of more than 120 characters: %.60s", page, line)
			}
		}
	}
}

// TestSymptoms checks that the texts in the headings of the troubleshooting page are texts of the code.
func TestSymptoms(t *testing.T) {
	root := testutil.ModuleRoot(t)
	headings := symptom.FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "how-to", "troubleshooting.md")), -1)
	if len(headings) < 20 {
		t.Fatalf("only %d symptoms", len(headings))
	}
	code := sources(t, root)
	for _, heading := range headings {
		for _, said := range inBackticks.FindAllStringSubmatch(heading[1], -1) {
			for part := range strings.SplitSeq(said[1], "...") {
				if part = strings.Trim(part, ` ":;(),?`); len(part) > 3 && !strings.Contains(code, part) {
					t.Errorf("no code says %q", part)
				}
			}
		}
	}
}

// pages returns the Markdown pages for readers and llms.txt, relative to the root.
func pages(t *testing.T, root string) []string {
	t.Helper()
	found := []string{"README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "llms.txt"}
	for _, path := range tree(t, root) {
		if strings.HasPrefix(path, "/docs/") && strings.HasSuffix(path, ".md") {
			found = append(found, path[1:])
		}
	}
	return found
}

// links returns the files that a page links to.
func links(t *testing.T, page string) (targets []string) {
	t.Helper()
	text := read(t, page)
	for _, found := range append(inlineLink.FindAllStringSubmatch(text, -1), referenceLink.FindAllStringSubmatch(text, -1)...) {
		if path, _, _ := strings.Cut(found[1], "#"); path != "" && !strings.Contains(path, ":") {
			targets = append(targets, filepath.Join(filepath.Dir(page), path))
		}
	}
	return targets
}

// sources returns the texts of the code, tests left out. Formatting verbs are cut out of the comparison by the
// "..." of a heading.
func sources(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range tree(t, root) {
		if ext := filepath.Ext(path); (ext == ".go" || ext == ".py" || ext == ".sh") && !strings.HasSuffix(path, "_test.go") {
			all.WriteString(read(t, filepath.Join(root, path)))
		}
	}
	return strings.NewReplacer("`", "", `\"`, `"`).Replace(all.String())
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
