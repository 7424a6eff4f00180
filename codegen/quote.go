package codegen

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

// code is text that is safe to write to a generated file. A string becomes code only
// in this file, by quoting or by a check that it is an identifier. The printer accepts
// only this type, so that missing quoting is a compile error.
type code string

// ident returns a name as code. It replaces an invalid identifier by one made of its digest.
func ident(name string) code {
	if !isIdentifier(name) {
		return code("_" + shortDigest(name))
	}
	return code(name)
}

// digits returns a number literal as code, "0" if text is not a number.
func digits(text string) code {
	if _, err := strconv.ParseFloat(text, 64); err != nil || strings.Trim(text, "0123456789+-.e") != "" {
		return "0"
	}
	return code(text)
}

// pyString returns a Python string literal with exactly the runes of s.
func pyString(s string) code { return quoteString(s, '"', pyRune) }

// tsString returns a TypeScript string literal with exactly the runes of s.
func tsString(s string) code { return quoteString(s, '"', tsRune) }

// pyText and tsText are the same in single quotes, for JSON.
func pyText(s string) code { return quoteString(s, '\'', pyRune) }
func tsText(s string) code { return quoteString(s, '\'', tsRune) }

func quoteString(s string, quote rune, escape func(*strings.Builder, rune)) code {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r >= ' ' && r <= '~':
			b.WriteByte(byte(r))
		case r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r) && !sanitize.Hidden(r):
			b.WriteRune(r)
		default:
			escape(&b, r)
		}
	}
	b.WriteRune(quote)
	return code(b.String())
}

func pyRune(b *strings.Builder, r rune) {
	if r > 0xFFFF {
		b.WriteString(`\U` + hexDigits(r, 8))
		return
	}
	b.WriteString(`\u` + hexDigits(r, 4))
}

func tsRune(b *strings.Builder, r rune) {
	if r > 0xFFFF {
		b.WriteString(`\u{` + hexDigits(r, 1) + `}`)
		return
	}
	b.WriteString(`\u` + hexDigits(r, 4))
}

func hexDigits(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// pyDoc returns the lines of a docstring, with its quotes, for untrusted text. It
// escapes triple quotes, a final quote and every backslash, so that the text cannot
// end the docstring.
func pyDoc(text string) []code {
	text = strings.ReplaceAll(withoutDirectives(docText(text)), `\`, `\\`)
	text = strings.ReplaceAll(text, `"""`, `\"\"\"`)
	if strings.HasSuffix(text, `"`) {
		text = text[:len(text)-1] + `\"`
	}
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		return []code{code(`"""` + text + `"""`)}
	}
	lines[0] = `"""` + lines[0]
	return asCode(append(lines, `"""`))
}

// pyComment returns one comment line. "#:" keeps checkers from reading directives
// ("type: ignore", "coding: ...") at its start.
func pyComment(text string, limit int) code {
	return code("#: " + withoutDirectives(sanitize.Line(text, limit)))
}

// pyDirective matches directives that disable a checker, linter or formatter: pyright reads them anywhere in a
// comment, mypy in any line of the file.
var pyDirective = regexp.MustCompile(`(?i)#(\s*(?:type|pyright|pyre|pytype|mypy|pylint|flake8|ruff|isort|fmt|yapf|black|noqa|nosec|pragma|coding|-\*-)\b|\s*-\*-)`)

func withoutDirectives(text string) string { return pyDirective.ReplaceAllString(text, "#_$1") }

// tsEnd escapes the end of a comment; tsDirective matches directives to a compiler, or references to files that it reads.
var (
	tsEnd       = strings.NewReplacer("*/", `*\/`)
	tsDirective = regexp.MustCompile(`(?i)([@#])(ts-|__|jsx|license|preserve|source(?:mapping)?url)`)
)

// tsDoc returns the lines of a JSDoc comment for untrusted text. It escapes the end of
// the comment and compiler directives ("@ts-nocheck", "@__PURE__", "@jsxImportSource x").
func tsDoc(text string) []code {
	lines := strings.Split(tsDirective.ReplaceAllString(tsEnd.Replace(docText(text)), "$1 $2"), "\n")
	if len(lines) == 1 {
		return []code{code("/** " + lines[0] + " */")}
	}
	out := []code{"/**"}
	for _, line := range lines {
		out = append(out, code(strings.TrimRight(" * "+line, " ")))
	}
	return append(out, " */")
}

// docText sanitizes text for a comment. It expands tabs and trims trailing white space.
func docText(text string) string {
	lines := strings.Split(strings.ReplaceAll(sanitize.Text(text, maxDoc), "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	return strings.Join(lines, "\n")
}

// maxDoc bounds a whole docstring, in runes.
const maxDoc = 24_000

func asCode(lines []string) []code {
	out := make([]code, len(lines))
	for i, line := range lines {
		out[i] = code(line)
	}
	return out
}
