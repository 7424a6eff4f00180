package execution

import (
	"regexp"
	"strings"

	"sallyport/sandbox"
)

// fence matches the first line of a block of Markdown, and its language.
var fence = regexp.MustCompile("^\\s*```+[ \\t]*([A-Za-z0-9]*)[^\\n`]*\\n")

// fenceEnd matches the last line of a block of Markdown.
var fenceEnd = regexp.MustCompile("\n```+[ \t\r\n]*$")

// CleanCode returns a program without what surrounds it in a chat: the fences of Markdown, and for Python a common
// indentation. Lines keep their numbers. A missing language is that of the fence, or else what the program looks like.
func CleanCode(code, language string) (cleaned, lang string) {
	if strings.TrimSpace(code) == "" {
		return code, language
	}
	if found := fence.FindStringSubmatchIndex(code); found != nil {
		label := code[found[2]:found[3]]
		code = strings.Repeat("\n", strings.Count(code[:found[1]], "\n")) + strings.TrimRight(code[found[1]:], " \t\r\n`")
		if _, err := Interpreter(label); err == nil && language == "" {
			language = label
		}
	}
	code = fenceEnd.ReplaceAllString(code, "")
	if language == "" && Guess(code) == sandbox.Node {
		language = "typescript"
	}
	if interpreter, err := Interpreter(language); err == nil && interpreter == sandbox.Python {
		code = dedent(code)
	}
	return code, language
}

// dedent removes the indentation of the first line, if all lines have it.
func dedent(code string) string {
	first := strings.TrimLeft(code, "\r\n")
	indent := first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	if indent == "" {
		return code
	}
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		rest, indented := strings.CutPrefix(line, indent)
		if !indented && strings.TrimSpace(line) != "" {
			return code
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n")
}

// Lines that are valid in only one of the languages.
var (
	typescriptLine = regexp.MustCompile(`(?m)^[ \t]*(?:import\b[^;"']*["'][^"']*["'];?[ \t]*$|import \{|(?:export )?(?:const|let|var) [\w$\[{]|(?:export )?(?:async )?function\b.*\{|(?:\w+ = )?await \w+\(\{|console\.\w+\(|\}\);[ \t]*$|\} (?:else|catch|finally)\b|(?:if|for|while) \(.*\) \{|//)`)
	pythonLine     = regexp.MustCompile(`(?m)^[ \t]*(?:from [\w.]+ import\b|import [\w.]+(?:[ \t]*[,;]| as |[ \t]*(?:#.*)?$)|(?:async )?def \w+\(|class \w+.*:[ \t]*$|(?:if|elif|else|for|while|with|try|except|finally)\b.*:[ \t]*(?:#.*)?$|print\(|@\w+|#)|"""|'''`)
)

// Guess returns the language that a program is written in, judged by its lines; "" if it is not certain.
func Guess(code string) sandbox.Interpreter {
	typescript, python := typescriptLine.MatchString(code), pythonLine.MatchString(code)
	switch {
	case typescript && !python:
		return sandbox.Node
	case python && !typescript:
		return sandbox.Python
	}
	return ""
}
