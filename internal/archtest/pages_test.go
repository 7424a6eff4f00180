package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/internal/testutil"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	referenceLink = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	symptom       = regexp.MustCompile("(?m)^### (.*)$")
	codeBlock     = regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$")
	heading       = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	headingLink   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchor     = regexp.MustCompile(`[^\pL\pN _-]`)
)

// TestLinks checks that the files and headings that pages link to exist, and that the map links every page of docs.
func TestLinks(t *testing.T) {
	root := testutil.ModuleRoot(t)
	headings := map[string][]string{} // the anchors of each page that a link with an anchor leads to
	anchors := 0
	for _, page := range append(pages(t, root), "llms.txt") {
		for _, to := range links(t, filepath.Join(root, page)) {
			if _, err := os.Stat(to.path); err != nil {
				t.Errorf("%s links to a missing file: %v", page, err)
			}
			if to.anchor == "" || filepath.Ext(to.path) != ".md" {
				continue
			}
			if headings[to.path] == nil {
				headings[to.path] = anchorsOf(read(t, to.path))
			}
			if anchors++; !slices.Contains(headings[to.path], to.anchor) {
				t.Errorf("%s links to #%s, which is no heading of %s", page, to.anchor, to.path)
			}
		}
	}
	if anchors < 50 {
		t.Errorf("only %d links with an anchor were found", anchors)
	}
	var mapped []string
	for _, to := range links(t, filepath.Join(root, "docs", "README.md")) {
		mapped = append(mapped, to.path)
	}
	for _, page := range pages(t, root) {
		if path := filepath.Join(root, page); strings.HasPrefix(page, "docs/") && page != "docs/README.md" && !slices.Contains(mapped, path) {
			t.Errorf("docs/README.md does not link %s", page)
		}
	}
}

// TestLines checks the length of lines in all Markdown files, also in code blocks. Rows of tables may be longer.
func TestLines(t *testing.T) {
	root := testutil.ModuleRoot(t)
	for _, page := range pages(t, root) {
		n := 0
		for line := range strings.Lines(read(t, filepath.Join(root, page))) {
			if n++; utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 && !strings.HasPrefix(strings.TrimLeft(line, " "), "|") {
				t.Errorf("%s:%d has more than 120 characters: %.60s", page, n, line)
			}
		}
	}
}

// TestAnchors checks how headings become anchors, as on GitHub.
func TestAnchors(t *testing.T) {
	got := anchorsOf("# A page\n## `sallyport log` and [more](x.md)\n```sh\n# no heading\n```\n## It's A.B, c_d-e\n## A page\n")
	if want := []string{"a-page", "sallyport-log-and-more", "its-ab-c_d-e", "a-page-1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReadmeIsShort checks the length of the README.
func TestReadmeIsShort(t *testing.T) {
	text := read(t, filepath.Join(testutil.ModuleRoot(t), "README.md"))
	body, _, _ := strings.Cut(text, "\n[approvals]: ")
	if words := len(strings.Fields(body)); words > 900 || words == len(strings.Fields(text)) {
		t.Errorf("the README has %d words before its links, not at most 900", words)
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

// pages returns the Markdown files of the repository, relative to the root, except test data.
func pages(t *testing.T, root string) (found []string) {
	t.Helper()
	for _, path := range tree(t, root) {
		if strings.HasSuffix(path, ".md") && !strings.Contains(path, "/testdata/") {
			found = append(found, path[1:])
		}
	}
	if len(found) < 40 {
		t.Fatalf("only %d Markdown files", len(found))
	}
	return found
}

// link is a file that a page links to, and the heading in it.
type link struct{ path, anchor string }

// links returns the files that a page links to.
func links(t *testing.T, page string) (targets []link) {
	t.Helper()
	text := codeBlock.ReplaceAllString(read(t, page), "")
	for _, found := range append(inlineLink.FindAllStringSubmatch(text, -1), referenceLink.FindAllStringSubmatch(text, -1)...) {
		path, anchor, _ := strings.Cut(found[1], "#")
		switch {
		case strings.Contains(path, ":"):
		case path == "":
			targets = append(targets, link{page, anchor})
		default:
			targets = append(targets, link{filepath.Join(filepath.Dir(page), path), anchor})
		}
	}
	return targets
}

// anchorsOf returns the anchors of the headings in a page, as GitHub makes them.
func anchorsOf(text string) (anchors []string) {
	seen := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		words := headingLink.ReplaceAllString(strings.ToLower(found[1]), "$1")
		anchor := strings.ReplaceAll(notAnchor.ReplaceAllString(words, ""), " ", "-")
		if seen[anchor]++; seen[anchor] > 1 {
			anchor = fmt.Sprintf("%s-%d", anchor, seen[anchor]-1)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
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
