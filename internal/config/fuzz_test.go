package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sallyport/internal/yamlstrict"
)

// FuzzParse holds Parse to what it promises whatever the file says: a valid
// Config, or errors that point into the file and show no secret.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../../upstreams.yaml", "testdata/everything.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), secret) {
			t.Skip("the file itself shows it")
		}
		c, err := sources.Parse("f", data)
		if err != nil {
			checkErrors(t, data, err)
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("parsed, but not valid: %v", err)
		}
		ids := map[string]bool{}
		for _, u := range c.Upstreams {
			if ids[u.ID] || (u.Command == "") == (u.URL == "" && !u.InProcess()) || u.Command != "" && !filepath.IsAbs(u.Dir) {
				t.Errorf("%v has id %q in %q", u, u.ID, u.Dir)
			}
			ids[u.ID] = true
		}
		if strings.Contains(fmt.Sprintf("%+v", c.Upstreams), secret) {
			t.Errorf("a secret shows: %+v", c.Upstreams)
		}
	})
}

func checkErrors(t *testing.T, data []byte, err error) {
	t.Helper()
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a secret shows:\n%v", err)
	}
	all := allErrors(err)
	if len(all) == 0 || len(all) > yamlstrict.MaxErrors+1 {
		t.Errorf("%d errors: %v", len(all), err)
	}
	src := yamlstrict.NewSource("f", data)
	for _, e := range all {
		if e.Line > 0 && (e.Line > src.Lines() || e.Column < 1 || e.Column > utf8.RuneCountInString(src.Line(e.Line))+2) {
			t.Errorf("points out of the file: %v", e)
		}
		if e.Line > 0 && strings.Count(e.Snippet, "\n") != 1 || e.Message == "" || strings.ContainsAny(e.Message, "\n\x1b") {
			t.Errorf("bad looks: %q", e)
		}
	}
}

// Large files, made to be slow to read or slow to complain about.
func TestLargeFilesAreReadInTime(t *testing.T) {
	for _, piece := range []string{"[", "{a: ", "? ", "- ", "a: 1\n", "- #\n", "#\n", "\"", "a", "\u0085", "&a ", "[]", "--- a\n"} {
		inTime(t, piece, strings.Repeat(piece, yamlstrict.MaxFile/8/len(piece)))
	}
	inTime(t, "faults", "upstreams:\n  a:\n"+numberedLines(10_000, "    n%d: x\n"))
	inTime(t, "unknown keys", "upstreams:\n  a:\n"+numberedLines(10_000, "    commmmmand%d: x\n"))
	inTime(t, "hidden references", "upstreams:\n  a:\n    args:\n"+strings.Repeat(`    - "\x24{A}"`+"\n", 10_000))
	inTime(t, "references", "upstreams: {a: {command: '"+strings.Repeat("${A}", 50_000)+"'}}")
	inTime(t, "files", "upstreams: {a: {command: '"+strings.Repeat("${file:nothing}", 30_000)+"'}}")
	inTime(t, "renames", "upstreams:\n  a:\n    command: x\n    rename:\n"+numberedLines(10_000, "      a-%d: b-c\n"))
	inTime(t, "upstreams", "upstreams:\n"+numberedLines(10_000, "  u%d: {command: x}\n"))
}

func numberedLines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func inTime(t *testing.T, name, text string) {
	t.Helper()
	start := time.Now()
	c, err := sources.Parse("f", []byte(text))
	took := time.Since(start)
	if took > 10*time.Second { // a second at most, on a machine with nothing else to do
		t.Errorf("%q took %v", name, took)
	}
	if err == nil && len(c.Upstreams) == 0 {
		t.Errorf("%q passed", name)
	}
	t.Logf("%q: %d bytes in %v", name, len(text), took)
}
