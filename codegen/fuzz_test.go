package codegen_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

// FuzzGenerate: whatever a tool says of itself, its wrappers parse, hold nothing
// but what a wrapper is made of, come out the same twice, and read clean.
func FuzzGenerate(f *testing.F) {
	for i, text := range breakouts() {
		if len(text) < 1000 && i%5 == 0 {
			tl := hostileTool("x", text)
			f.Add([]byte(tl.Input), []byte(tl.Output), text, text)
		}
	}
	f.Add([]byte(awkward), []byte(`{"$ref":"#"}`), "list", "")
	f.Fuzz(func(t *testing.T, input, output []byte, name, text string) {
		tl := tool.Tool{
			ID: tool.ID{Upstream: "up", Name: tool.Identifiers([]string{name})[0]}, Wire: name, Title: name, Description: text,
			Input: json.RawMessage(input), Output: json.RawMessage(output),
		}
		up := codegen.Upstream{ID: "up", Title: name, Description: text, Tools: []tool.Tool{tl}}
		files := codegen.GenerateUpstream(up)
		if len(files) != 4 {
			t.Fatalf("%d files for tool %q", len(files), tl.ID.Name)
		}
		if again := codegen.GenerateUpstream(up); fmt.Sprint(again) != fmt.Sprint(files) {
			t.Error("the same tool made other files")
		}
		checkPython(t, files)
		checkTypeScript(t, files)
		checkTexts(t, tl, codegen.Python)
		checkTexts(t, tl, codegen.TypeScript)
	})
}

func checkTypeScript(t *testing.T, files []codegen.File) {
	t.Helper()
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".ts") {
			continue
		}
		result := api.Transform(string(f.Data), api.TransformOptions{Loader: api.LoaderTS})
		for _, e := range result.Errors {
			t.Errorf("%s: %s at %+v in\n%.3000s", f.Path, e.Text, e.Location, f.Data)
		}
		for line := range strings.Lines(string(result.Code)) {
			if !strings.HasPrefix(line, " ") && !tsTop.MatchString(line) {
				t.Errorf("%s: unexpected at the top level: %.300q", f.Path, line)
			}
		}
	}
}

// tsTop is what is left of a wrapper without its types and comments.
var tsTop = regexp.MustCompile(`^(import \{ call \} from "sallyport";|const SPEC = ('[^'\n]*'|"[^"\n]*"|` + "`" + `[^` + "`" + `\n]*` + "`" + `);|(export )?function \w+\(args( = \{\})?\) \{|\}|(im|ex)port \{ \w+ \} from "\./\w+";|export \{|\};|)\n$|^\s*/?\*`)

// checkPython reads Python as tokens: brackets and strings must close, and only
// the beginnings of lines that a wrapper has may stand at the top level.
func checkPython(t *testing.T, files []codegen.File) {
	t.Helper()
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".py") || strings.HasPrefix(f.Path, "__") && f.Path != "__init__.py" {
			continue
		}
		if !utf8.Valid(f.Data) {
			t.Errorf("%s: not UTF-8", f.Path)
		}
		s := pyScan{rest: string(f.Data)}
		if fault := s.scan(); fault != "" {
			t.Errorf("%s: %s before %.200q in\n%.3000s", f.Path, fault, s.rest, f.Data)
		}
		for _, line := range s.top {
			if !pyTop.MatchString(line) {
				t.Errorf("%s: unexpected at the top level: %.300q", f.Path, line)
			}
		}
	}
}

// pyTop matches lines in which every string is written as "" and every comment as #.
var pyTop = regexp.MustCompile(`^(#|""|from [\w.]+ import [\w, ]+|import typing( as __typing)?|if __typing\.TYPE_CHECKING:|class \w+\((typing\.)?TypedDict\):|` +
	`\w+ = (typing\.)?TypedDict\("", \{|\w+: _*TypeAlias = ""|_?SPEC = ""|__all__ = \[.*|__package\(__name__, \{.*|def \w+\(.*|@_*with_aio|[\]})].*|)$`)

type pyScan struct {
	rest  string
	depth int
	top   []string // the lines that begin at column 0 outside of brackets and strings
	line  strings.Builder
}

var pyToken = regexp.MustCompile(`^(?:"""(?s:[^"\\]|\\.|"[^"]|""[^"])*"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)`)

func (s *pyScan) scan() (fault string) {
	for s.rest != "" {
		if token := pyToken.FindString(s.rest); token != "" {
			s.rest = s.rest[len(token):]
			s.line.WriteString(map[bool]string{true: "#", false: `""`}[token[0] == '#'])
			continue
		}
		c := s.rest[0]
		switch {
		case c == '"' || c == '\'' || c == '\\':
			return "a string that does not close"
		case c < ' ' && c != '\n' || c > '~':
			return "a character that no code has"
		}
		s.rest = s.rest[1:]
		s.depth += strings.Count("([{", string(c)) - strings.Count(")]}", string(c))
		if c != '\n' {
			s.line.WriteByte(c)
			continue
		}
		if s.depth < 0 {
			return "a bracket too many"
		}
		s.endLine()
	}
	if s.depth != 0 {
		return "a bracket that does not close"
	}
	return ""
}

func (s *pyScan) endLine() {
	if line := s.line.String(); !strings.HasPrefix(line, " ") {
		s.top = append(s.top, line)
	}
	s.line.Reset()
}
