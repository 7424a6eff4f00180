package bundle

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Export is an exported function of a module.
type Export struct {
	Name string
	// Signature is "name(parameters): result", Parameters holds the parameters.
	Signature  string
	Parameters []string
	// Doc is the comment before the function.
	Doc string
}

// maxExports bounds the exports of one module.
const maxExports = 50

// Exports returns the exported functions of a TypeScript module, in source order, and the comment at the
// start of the module. The names come from esbuild; signatures are found heuristically and checked by
// parsing, with "name(...)" for those that fail.
func Exports(source string) (list []Export, doc string) {
	names := exportNames(source)
	for _, found := range exportedFunction.FindAllStringSubmatchIndex(source, -1) {
		name := source[found[2]:found[3]]
		if !slices.Contains(names, name) || len(list) == maxExports || slices.ContainsFunc(list, func(e Export) bool { return e.Name == name }) {
			continue
		}
		e := Export{Name: name, Signature: name + "(...)", Doc: commentBefore(source[:found[0]])}
		e.read(source[found[3]:])
		list = append(list, e)
	}
	if head := strings.TrimSpace(source); strings.HasPrefix(head, "/*") {
		if end := strings.Index(head, "*/"); end > 0 {
			doc = commentText(head[:end])
		}
	}
	return list, doc
}

// exportedFunction is a heuristic: it also matches in comments and strings. Exports discards names that
// the module does not export.
var exportedFunction = regexp.MustCompile(`(?m)^export\s+(?:async\s+)?(?:function\s*\*?|const|let|class)\s+([\p{L}_$][\p{L}\p{Nd}_$]*)`)

func exportNames(source string) []string {
	built := api.Build(api.BuildOptions{
		Stdin: &api.StdinOptions{Contents: source, Sourcefile: Name, Loader: api.LoaderTS}, Format: api.FormatESModule, Target: api.ESNext,
		Metafile: true, Outfile: "/skill.js", AbsWorkingDir: "/", LogLevel: api.LogLevelSilent, TsconfigRaw: `{}`,
	})
	var meta struct {
		Outputs map[string]struct{ Exports []string }
	}
	if json.Unmarshal([]byte(built.Metafile), &meta) != nil {
		return nil
	}
	for _, output := range meta.Outputs {
		return output.Exports
	}
	return nil
}

// read parses the signature from the text after the name.
func (e *Export) read(rest string) {
	open := strings.IndexAny(rest, "(=;{\n")
	if open < 0 {
		return
	}
	if rest[open] == '=' { // const name = async (...) => or function (...)
		skipped := arrowHead.FindString(rest[open:])
		if skipped == "" {
			return
		}
		rest = rest[open+len(skipped):]
		open = 0
	}
	if rest[open] != '(' {
		return
	}
	end := closingBracket(rest, open)
	if end < 0 {
		return
	}
	parameters := rest[open+1 : end-1]
	result := resultType(rest[end:])
	signature := "(" + oneLine(parameters) + ")"
	if result != "" {
		signature += ": " + oneLine(result)
	}
	if !parsesTypeScript("async function f" + signature + "{}") {
		return
	}
	e.Signature = e.Name + signature
	for _, p := range splitTop(parameters) {
		e.Parameters = append(e.Parameters, oneLine(p))
	}
}

var arrowHead = regexp.MustCompile(`^=\s*(?:async\s*)?(?:function\s*\*?\s*\w*\s*)?`)

func parsesTypeScript(code string) bool {
	return len(api.Transform(code, api.TransformOptions{Loader: api.LoaderTS, Target: api.ESNext, LogLevel: api.LogLevelSilent}).Errors) == 0
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// closingBracket returns the offset after the bracket that closes the one at open, -1 if there is none.
func closingBracket(code string, open int) int {
	depth := 0
	for _, t := range lex(code[open:]) {
		switch {
		case t.kind != punctuation:
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			if depth--; depth == 0 {
				return open + t.end
			}
		}
	}
	return -1
}

// resultType returns the type after the parameters, up to the body, which begins with a brace where no type can begin.
func resultType(rest string) string {
	tokens := lex(rest)
	if len(tokens) == 0 || tokens[0].text != ":" {
		return ""
	}
	depth := 0
	for i, t := range tokens[1:] {
		before := tokens[i].text // tokens[i+1] is t
		switch {
		case t.kind != punctuation:
		case depth == 0 && t.text == "{" && !strings.Contains(":|&<(,[", before), depth == 0 && t.text == "=" && strings.HasPrefix(rest[t.start:], "=>"):
			return strings.TrimSpace(rest[tokens[0].end:t.start])
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			depth--
		}
	}
	return ""
}

// splitTop splits a list at the commas outside of brackets.
func splitTop(list string) (parts []string) {
	depth, from := 0, 0
	for _, t := range lex(list) {
		switch {
		case t.kind != punctuation:
		case strings.Contains("([{<", t.text):
			depth++
		case strings.Contains(")]}", t.text), t.text == ">" && (t.start == 0 || list[t.start-1] != '='):
			depth--
		case t.text == "," && depth == 0:
			parts, from = append(parts, list[from:t.start]), t.end
		}
	}
	if strings.TrimSpace(list[from:]) != "" {
		parts = append(parts, list[from:])
	}
	return parts
}

// commentBefore returns the comment at the end of before, "" if there is none.
func commentBefore(before string) string {
	before = strings.TrimRight(before, " \t\r\n")
	if !strings.HasSuffix(before, "*/") {
		return ""
	}
	if start := strings.LastIndex(before, "/*"); start >= 0 {
		return commentText(before[start : len(before)-2])
	}
	return ""
}

var commentStar = regexp.MustCompile(`(?m)^[ \t]*\*[ \t]?`)

func commentText(comment string) string {
	return strings.TrimSpace(commentStar.ReplaceAllString(strings.TrimLeft(comment, "/*"), ""))
}
