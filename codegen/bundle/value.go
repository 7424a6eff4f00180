package bundle

import (
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// maxCandidates bounds the search for the start of the last statement.
const maxCandidates = 200

// captureValue makes a trailing expression statement the default export. It returns
// code unchanged, and false, if there is none. code must be printed by esbuild, which
// starts every top-level statement in the first column and indents its further lines,
// except in template literals. captureValue checks candidates by parsing both halves.
// Line numbers do not change.
func captureValue(code string) (string, bool) {
	code = strings.TrimRight(code, "\n")
	if !strings.HasSuffix(code, ";") {
		return code + "\n", false
	}
	end := len(code)
	for range maxCandidates {
		start := strings.LastIndexByte(code[:end], '\n') + 1
		if before, last := code[:start], strings.TrimSuffix(code[start:], ";"); isExpression(last) && (start == 0 || parses(before)) {
			return before + "export default (" + last + ");\n", true
		}
		if start == 0 {
			break
		}
		end = start - 1
	}
	return code + "\n", false
}

// isExpression reports whether statement is an expression statement.
func isExpression(statement string) bool {
	if statement == "" || strings.ContainsRune(" \t{})]", rune(statement[0])) {
		return false
	}
	for _, declaration := range []string{"function", "async function", "class", "import ", "import{", "export", "let ", "const ", "var "} {
		if strings.HasPrefix(statement, declaration) {
			return false
		}
	}
	return parses("export default (" + statement + ");")
}

func parses(code string) bool {
	result := api.Transform(code, api.TransformOptions{Loader: api.LoaderJS, Target: api.ESNext, Format: api.FormatESModule, LogLevel: api.LogLevelSilent})
	return len(result.Errors) == 0
}
