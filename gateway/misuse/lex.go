package misuse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	end kind = iota
	name
	number
	text // a literal; its text is the value as it is written
	sign // an operator or a bracket
	open // begins an expression inside of a text, shut ends it
	shut
)

// token is a token of a program.
type token struct {
	kind kind
	text string
}

// maxTokens bounds the work on one program.
const maxTokens = 50_000

// lexer splits a program in Python or JavaScript into tokens, well enough to find calls and members.
type lexer struct {
	code   string
	python bool
	at     int
	depth  int // of brackets
	tokens []token
}

// lex returns the tokens of a program. Texts with expressions inside become the tokens of these, between open and shut.
func lex(code string, python bool) []token {
	l := &lexer{code: code, python: python}
	l.until("")
	return l.tokens
}

// until reads tokens up to a closing brace that has no opening one, if stop is "}", else to the end.
func (l *lexer) until(stop string) {
	for outer := l.depth; l.at < len(l.code) && len(l.tokens) < maxTokens; {
		switch c := l.code[l.at]; {
		case stop != "" && l.depth == outer && (c == '}' || l.python && (c == ':' || c == '!' && !strings.HasPrefix(l.code[l.at:], "!="))):
			return
		case l.skip():
		default:
			if l.next(); strings.IndexByte("{([", c) >= 0 {
				l.depth++
			} else if strings.IndexByte("})]", c) >= 0 {
				l.depth--
			}
		}
	}
}

// skip skips white space or a comment.
func (l *lexer) skip() bool {
	rest := l.code[l.at:]
	switch {
	case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n' && (!l.python || l.depth > 0):
		l.at++
	case strings.HasPrefix(rest, "\\\n"):
		l.at += 2
	case l.python && rest[0] == '#', !l.python && strings.HasPrefix(rest, "//"):
		l.to("\n", 0)
	case !l.python && strings.HasPrefix(rest, "/*"):
		l.to("*/", 2)
	default:
		return false
	}
	return true
}

// to moves to the next occurrence of text and past its first n bytes, or to the end.
func (l *lexer) to(text string, n int) {
	if i := strings.Index(l.code[l.at:], text); i >= 0 {
		l.at += i + n
		return
	}
	l.at = len(l.code)
}

func (l *lexer) add(k kind, s string) { l.tokens = append(l.tokens, token{k, s}) }

func isLetter(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// next reads a token.
func (l *lexer) next() {
	rest := l.code[l.at:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case isLetter(r):
		word := rest[:wordEnd(rest)]
		l.at += len(word)
		if l.python && len(word) <= 2 && l.at < len(l.code) && strings.ContainsRune(`"'`, rune(l.code[l.at])) {
			l.quoted(strings.ContainsAny(word, "fF"))
			return
		}
		l.add(name, word)
	case r >= '0' && r <= '9':
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789._abcdefxnABCDEF"))
		l.at += n
		l.add(number, rest[:n])
	case r == '"' || r == '\'':
		l.quoted(false)
	case r == '`' && !l.python:
		l.at++
		l.inside("`", "${")
	case r == '/' && !l.python && l.beforeExpression():
		l.pattern()
	default:
		s := operator(rest, size)
		l.at += len(s)
		l.add(sign, s)
	}
}

func wordEnd(s string) int {
	for i, r := range s {
		if !isLetter(r) && !unicode.IsDigit(r) {
			return i
		}
	}
	return len(s)
}

// operators are those that must not be taken apart.
var operators = []string{"===", "!==", "...", "**=", "??=", "=>", "==", "!=", "<=", ">=", "?.", "??", "||", "&&", "+=", "-=", "*=", "/=", ":=", "->", "**", "++", "--"}

func operator(rest string, size int) string {
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return o
		}
	}
	return rest[:size]
}

// quoted reads a text in quotes, with expressions inside if it is formatted.
func (l *lexer) quoted(formatted bool) {
	quote := l.code[l.at : l.at+1]
	if triple := strings.Repeat(quote, 3); l.python && strings.HasPrefix(l.code[l.at:], triple) {
		quote = triple
	}
	l.at += len(quote)
	brace := ""
	if formatted {
		brace = "{"
	}
	l.inside(quote, brace)
}

// inside reads the rest of a text up to its quote. brace begins an expression.
func (l *lexer) inside(quote, brace string) {
	from := l.at
	for l.at < len(l.code) {
		rest := l.code[l.at:]
		switch {
		case strings.HasPrefix(rest, quote):
			l.add(text, l.code[from:l.at])
			l.at += len(quote)
			return
		case rest[0] == '\\':
			l.at = min(l.at+2, len(l.code))
		case brace == "{" && strings.HasPrefix(rest, "{{"):
			l.at += 2
		case brace != "" && strings.HasPrefix(rest, brace):
			l.at += len(brace)
			l.add(open, brace)
			l.until("}")
			l.add(shut, "}")
			l.formatEnd()
			from = l.at
		default:
			l.at++
		}
	}
}

// formatEnd skips the format of an expression in a text, and its brace.
func (l *lexer) formatEnd() {
	if l.python && l.at < len(l.code) && l.code[l.at] != '}' {
		l.to("}", 0)
	}
	l.at = min(l.at+1, len(l.code))
}

// beforeExpression reports whether the next token begins an expression, so that a slash begins a regular expression.
func (l *lexer) beforeExpression() bool {
	if len(l.tokens) == 0 {
		return true
	}
	switch last := l.tokens[len(l.tokens)-1]; last.kind {
	case sign:
		return last.text != ")" && last.text != "]" && last.text != "}"
	case name:
		return last.text == "return" || last.text == "typeof" || last.text == "case"
	default:
		return last.kind == open
	}
}

// pattern reads a regular expression.
func (l *lexer) pattern() {
	from, class := l.at, false
	for l.at++; l.at < len(l.code) && l.code[l.at] != '\n'; l.at++ {
		switch c := l.code[l.at]; {
		case c == '\\':
			l.at++
		case c == '[' || c == ']':
			class = c == '['
		case c == '/' && !class:
			l.at++
			l.at += wordEnd(l.code[l.at:])
			l.add(sign, "/regexp/")
			return
		}
	}
	l.at = min(l.at, len(l.code))
	l.add(sign, l.code[from:from+1])
}
