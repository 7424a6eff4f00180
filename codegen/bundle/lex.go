package bundle

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	word tokenKind = iota // identifiers and keywords
	number
	quotedText   // '...' and "..."
	templateText // a part of a template: from ` or } to ` or ${
	regularExpression
	punctuation // one character
)

type token struct {
	kind       tokenKind
	start, end int
	text       string
	// depth is the number of enclosing brackets; line reports that a line break precedes the token.
	depth int
	line  bool
}

// isPlainTemplate reports whether a token is a template without expressions.
func (t token) isPlainTemplate() bool {
	return t.kind == templateText && len(t.text) > 1 && t.text[0] == '`' && strings.HasSuffix(t.text, "`")
}

type lexer struct {
	code      string
	at        int
	tokens    []token
	depth     int
	templates []int // depths at which a ${ was opened
	line      bool
}

// lex splits JavaScript or TypeScript into tokens, without comments and white space. It
// decides from the previous token whether a slash begins a regular expression, which may
// be wrong: callers must check their results by parsing.
func lex(code string) []token {
	l := lexer{code: code}
	for l.at < len(code) {
		l.step()
	}
	return l.tokens
}

func (l *lexer) step() {
	rest := l.code[l.at:]
	if l.skipBlank(rest) {
		return
	}
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		l.add(quotedText, quotedLength(rest, c))
	case c == '`':
		l.template(rest)
	case c == '}' && len(l.templates) > 0 && l.templates[len(l.templates)-1] == l.depth:
		l.templates = l.templates[:len(l.templates)-1]
		l.depth--
		l.template(rest)
	case c == '/' && l.regexpMayBegin():
		l.add(regularExpression, regexpLength(rest))
	case c >= '0' && c <= '9', c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		l.add(number, numberLength(rest))
	default:
		l.wordOrPunctuation(rest)
	}
}

// skipBlank skips white space or a comment, and reports whether there is one.
func (l *lexer) skipBlank(rest string) bool {
	n := 1
	switch {
	case strings.HasPrefix(rest, "//"):
		n = until(rest, "\n", 0)
	case strings.HasPrefix(rest, "/*"):
		n = until(rest, "*/", 2)
	case !strings.Contains(" \t\r\n", rest[:1]):
		return false
	}
	l.line = l.line || strings.Contains(rest[:n], "\n")
	l.at += n
	return true
}

func (l *lexer) wordOrPunctuation(rest string) {
	if n := wordLength(rest); n > 0 {
		l.add(word, n)
		return
	}
	_, n := utf8.DecodeRuneInString(rest)
	switch rest[0] {
	case '(', '[', '{':
		l.add(punctuation, n)
		l.depth++
	case ')', ']', '}':
		l.depth = max(l.depth-1, 0)
		l.add(punctuation, n)
	default:
		l.add(punctuation, n)
	}
}

func (l *lexer) add(kind tokenKind, n int) {
	l.tokens = append(l.tokens, token{kind, l.at, l.at + n, l.code[l.at : l.at+n], l.depth, l.line})
	l.at, l.line = l.at+n, false
}

// template reads a part of a template, which starts with ` or with the } after an expression.
func (l *lexer) template(rest string) {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == '`':
			l.add(templateText, i+1)
			return
		case strings.HasPrefix(rest[i:], "${"):
			l.add(templateText, i+2)
			l.depth++
			l.templates = append(l.templates, l.depth)
			return
		}
	}
	l.add(templateText, len(rest))
}

// regexpMayBegin reports whether the last token is not a value, which a slash would divide.
func (l *lexer) regexpMayBegin() bool {
	if len(l.tokens) == 0 {
		return true
	}
	last := l.tokens[len(l.tokens)-1]
	switch last.kind {
	case word:
		return strings.Contains(" return typeof case in of delete void throw new else do await yield instanceof ", " "+last.text+" ")
	case punctuation:
		return !strings.Contains(")]}", last.text)
	}
	return false
}

func until(text, mark string, from int) int {
	if i := strings.Index(text[min(from, len(text)):], mark); i >= 0 {
		return from + i + len(mark)
	}
	return len(text)
}

func quotedLength(rest string, quote byte) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(rest)
}

func regexpLength(rest string) int {
	class := false
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '\n':
			return 1 // a division after all
		case '/':
			if !class {
				return i + 1 + wordLength(rest[i+1:])
			}
		}
	}
	return 1
}

// numberText matches a number including adjacent word characters.
var numberText = regexp.MustCompile(`^(?:0[xXbBoO]\w*|[\d._]+(?:[eE][+-]?\d+)?\w*)`)

func numberLength(rest string) int { return max(1, len(numberText.FindString(rest))) }

func wordLength(text string) int {
	n := 0
	for i, r := range text {
		if !unicode.IsLetter(r) && r != '_' && r != '$' && (i == 0 || !unicode.IsDigit(r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return min(n, len(text))
}
