package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sallyport/internal/yamlstrict"
)

// FuzzParse holds Parse to what it promises whatever the file says: a definition that editors take too, with places that are in
// the file, or errors that are.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/faults/*.yaml", "testdata/faults/*.json", "testdata/everything.*", "../../../workflows/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(filepath.Ext(file) == ".json", data)
		}
	}
	f.Fuzz(func(t *testing.T, json bool, data []byte) {
		path := "f.yaml"
		if json {
			path = "f.json"
		}
		d, err := Parse(path, data, func(string) ([]byte, error) { return []byte("result = 1"), nil })
		if err != nil {
			checkErrors(t, path, data, err)
			return
		}
		if _, problem := acceptedBySchema(t, path, data); problem != nil {
			t.Errorf("loaded, but an editor says: %v", problem)
		}
		checkDefinition(t, d)
	})
}

func checkDefinition(t *testing.T, d *Definition) {
	t.Helper()
	for _, schema := range [][]byte{InputSchema(d), OutputSchema(d)} {
		if _, err := compile(schema); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	ids, steps := map[string]bool{}, 0
	Walk(d.Steps, func(s *Step, in []*Step) {
		if steps++; ids[s.ID.Text] || s.Do == nil || len(in) >= MaxDepth {
			t.Errorf("step %q, %d deep: %T", s.ID, len(in), s.Do)
		}
		ids[s.ID.Text] = true
		inFile(t, d, s.ID)
		if s.If != nil {
			inFile(t, d, *s.If)
		}
	})
	if steps == 0 || steps > MaxSteps || !workflowName.MatchString(d.Name) {
		t.Errorf("%d steps of %q", steps, d.Name)
	}
}

// inFile holds places of a text to the lines of the file.
func inFile(t *testing.T, d *Definition, text Text) {
	t.Helper()
	for at := range len(text.Text) + 1 {
		p := text.At(at)
		if p.Line < 1 || p.Line > d.lines.Lines() || p.Column < 1 || p.Column > utf8.RuneCountInString(d.lines.Line(p.Line))+1 {
			t.Errorf("byte %d of %q is at %v", at, text, p)
		}
	}
}

// all takes a joined error apart.
func all(err error) (faults []*yamlstrict.Error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			faults = append(faults, all(e)...)
		}
		return faults
	}
	if e, ok := errors.AsType[*yamlstrict.Error](err); ok {
		return []*yamlstrict.Error{e}
	}
	return nil
}

func checkErrors(t *testing.T, path string, data []byte, err error) {
	t.Helper()
	faults := all(err)
	if len(faults) == 0 || len(faults) > yamlstrict.MaxErrors+1 {
		t.Errorf("%d errors: %v", len(faults), err)
	}
	src := yamlstrict.NewSource(path, data)
	for _, e := range faults {
		if e.Line > 0 && (e.Line > src.Lines() || e.Column < 1 || e.Column > utf8.RuneCountInString(src.Line(e.Line))+2) {
			t.Errorf("points out of the file: %v", e)
		}
		if e.Line > 0 && strings.Count(e.Snippet, "\n") != 1 || e.Message == "" || strings.ContainsAny(e.Message, "\n\x1b") {
			t.Errorf("bad looks: %q", e)
		}
	}
}

// TestLargeFiles: what is made to be slow to read, or to complain about, is read in time.
func TestLargeFiles(t *testing.T) {
	const size = 256 << 10 // of YAML less: config has a test of how the library takes large ones
	for _, piece := range []string{"[", "{a: ", "- ", "? ", "a: 1\n", "\"", "\u0085", "&a "} {
		inTime(t, "f.yaml", strings.Repeat(piece, size/32/len(piece)))
	}
	for _, piece := range []string{"[", `{"a":`, `"`, "\\", "1,"} {
		inTime(t, "f.json", `{"steps":`+strings.Repeat(piece, size/len(piece)))
	}
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	inTime(t, "f.json", `{"steps":[{"id":"a","tool":"a.b","with":{"x":`+deep+`}}]}`)
	laughs := "a0: &a0 [x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	inTime(t, "f.yaml", laughs+"steps: *a9\n")
	inTime(t, "f.yaml", "steps:\n"+repeatFormat(MaxSteps+1, "- {id: s%d, tool: a.b, with: {x: '${{ 1 }}'}}\n"))
	inTime(t, "f.yaml", "steps:\n"+repeatFormat(10_000, "- {idd: s%d}\n"))
	inTime(t, "f.yaml", "steps: [{id: a, tool: a.b}]\ninputs:\n"+repeatFormat(10_000, "  i%d: {type: string}\n"))
	nested := "[{id: a, tool: a.b}]"
	for i := range MaxDepth {
		nested = fmt.Sprintf("[{id: t%d, finally: [{id: f%d, tool: a.b}], try: %s}]", i, i, nested)
	}
	inTime(t, "f.yaml", "steps: "+nested)
	schema := strings.Repeat("{not: ", 100) + "{type: string}" + strings.Repeat("}", 100)
	inTime(t, "f.yaml", "steps: [{id: a, tool: a.b}]\ninputs: {a: "+schema+"}\n")
	inTime(t, "f.yaml", strings.Repeat("#", yamlstrict.MaxFile+1))
}

func repeatFormat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// inTime parses what is no definition.
func inTime(t *testing.T, path, text string) {
	t.Helper()
	start := time.Now()
	_, err := Parse(path, []byte(text), nil)
	if took := time.Since(start); took > 10*time.Second { // a second at most, on a machine with nothing else to do
		t.Errorf("%.20q took %v", text, took)
	}
	t.Logf("%.20q: %d bytes in %v", text, len(text), time.Since(start))
	if err == nil {
		t.Errorf("%.40q passed", text)
		return
	}
	checkErrors(t, path, []byte(text), err)
}

// TestLimits: what is just small enough is taken.
func TestLimits(t *testing.T) {
	if d := parse(t, "steps:\n"+repeatFormat(MaxSteps, "- {id: s%d, tool: a.b}\n")); len(d.Steps) != MaxSteps {
		t.Errorf("%d steps", len(d.Steps))
	}
	parse(t, "steps: [{id: a, tool: a.b}]\ninputs:\n"+repeatFormat(MaxNames, "  i%d: string\n"))
	parse(t, "steps: [{id: a, code: '"+strings.Repeat("#", MaxCode)+"'}]\n")
	parse(t, "timeout: 366d\nsteps: [{id: a, tool: a.b, timeout: 1ms}]\n")
}
