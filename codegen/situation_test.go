package codegen_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

const situations = "testdata/situations.txtar"

// TestSituations shows what each thing that a schema can say becomes: a part of
// the file is a situation, with the schemas of a tool "t", then what a model reads
// of it, and the types and heads of its wrappers.
func TestSituations(t *testing.T) {
	data, err := os.ReadFile(situations)
	if err != nil {
		t.Fatal(err)
	}
	want := parseArchive(string(data))
	if len(want.files) < 40 {
		t.Errorf("%d situations, want at least 40", len(want.files))
	}
	got := archive{comment: want.comment}
	for _, m := range want.files {
		asked, _, _ := strings.Cut(m.data, separator)
		got.files = append(got.files, member{m.name, asked + separator + outputFor(t, m.name, asked)})
	}
	if golden.Update() {
		if err := os.WriteFile(situations, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(archive{}, member{})); diff != "" {
		t.Errorf("run go test ./codegen -update if this is right (-golden +got):\n%s", diff)
	}
}

const separator = "=>\n"

// situation is a tool with the schemas of "in: {...}" and "out: {...}" lines.
func situation(t *testing.T, name, asked string) tool.Tool {
	t.Helper()
	tl := tool.Tool{ID: tool.ID{Upstream: "up", Name: "t"}, Description: "Does it."}
	for line := range strings.Lines(asked) {
		for prefix, schema := range map[string]*json.RawMessage{"in: ": &tl.Input, "out: ": &tl.Output} {
			if text, ok := strings.CutPrefix(line, prefix); ok {
				if *schema = json.RawMessage(strings.TrimSpace(text)); !json.Valid(*schema) {
					t.Errorf("%s: %s is no JSON", name, text)
				}
			}
		}
	}
	return tl
}

// outputFor returns what is made of a situation.
func outputFor(t *testing.T, name, asked string) string {
	t.Helper()
	tl := situation(t, name, asked)
	files := codegen.Generate(upstreamWith(tl))
	checkPython(t, files)
	bundle(t, guest(t, files), `import { t } from "./servers/up"; console.log(t);`)
	_, words, _ := strings.Cut(codegen.Describe(tl, codegen.Python).Text, "Does it.\n")
	return codegen.Signature(tl, codegen.Python) + "\n" + codegen.Signature(tl, codegen.TypeScript) + "\n" +
		tildeLines(words) + heads(files) + "\n"
}

// tildeLines marks the lines of words with "~".
func tildeLines(words string) string {
	var b strings.Builder
	for line := range strings.Lines(words) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("~ " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

// heads returns the types and the heads of the functions that were generated.
func heads(files []codegen.File) string {
	var b strings.Builder
	for _, f := range files {
		body := false // of a Python function
		for line := range strings.Lines(string(f.Data)) {
			if f.Path != "up/t.py" && f.Path != "up/t.ts" {
				break
			}
			if body = body && (strings.HasPrefix(line, " ") || line == "\n"); !body && !boilerplate(line) {
				b.WriteString(line)
			}
			body = body || strings.HasSuffix(line, ":\n") && (strings.HasPrefix(line, "def ") || strings.HasPrefix(line, ") ->"))
		}
	}
	return b.String()
}

func boilerplate(line string) bool {
	for _, prefix := range []string{"# ", "// ", "from ", "import ", "@", "if TYPE_CHECKING", "    from ", "SPEC = ", "const SPEC = ", "    '{", "  '{", "  return call"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return strings.TrimSpace(line) == ""
}
