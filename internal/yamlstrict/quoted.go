package yamlstrict

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// insideQuoted finds the position of an offset in a quoted text, by decoding its escapes and folded lines again.
func (s *Source) insideQuoted(n *yaml.Node, offset int) (line, column int) {
	if n.Line < 1 || n.Line > len(s.starts) {
		return n.Line, n.Column
	}
	start := s.starts[n.Line-1]
	rest := string(s.data[start+OffsetOf(s.Line(n.Line), n.Column):])
	at, text := 1, 0 // behind the quote; where that is in the text
	for at < len(rest) && text < offset {
		from, is := step(rest[at:], n.Style&yaml.DoubleQuotedStyle != 0)
		if from == 0 || text+is > offset {
			break
		}
		at, text = at+from, text+is
	}
	return s.place(len(s.data) - len(rest) + at)
}

// step returns the length of the next part of a quoted text, and the length that it decodes to; 0, 0 at its end.
func step(rest string, double bool) (from, is int) {
	switch {
	case rest[0] == '\'' && !double:
		if strings.HasPrefix(rest, "''") {
			return 2, 1
		}
		return 0, 0
	case rest[0] == '"' && double:
		return 0, 0
	case rest[0] == '\\' && double && len(rest) > 1:
		return escape(rest)
	}
	if blank := len(rest) - len(strings.TrimLeft(rest, " \t")); blank < len(rest) && isBreak(rest[blank:]) > 0 {
		return fold(rest, blank)
	}
	_, size := utf8.DecodeRuneInString(rest)
	return size, size
}

// fold decodes a line break within a text: to a space, or to as many line breaks as there are empty lines.
func fold(rest string, at int) (from, is int) {
	breaks := 0
	for at < len(rest) {
		size := isBreak(rest[at:])
		if size == 0 {
			break
		}
		breaks++
		at += size
		at += len(rest[at:]) - len(strings.TrimLeft(rest[at:], " \t"))
	}
	return at, max(breaks-1, 1)
}

func isBreak(rest string) int {
	switch {
	case strings.HasPrefix(rest, "\r\n"):
		return 2
	case strings.HasPrefix(rest, "\n"), strings.HasPrefix(rest, "\r"):
		return 1
	}
	return 0
}

// escape decodes an escape sequence.
func escape(rest string) (from, is int) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]
	switch {
	case isBreak(rest[1:]) > 0: // a line continuation
		at := 1 + isBreak(rest[1:])
		return at + len(rest[at:]) - len(strings.TrimLeft(rest[at:], " \t")), 0
	case rest[1] == 'N' || rest[1] == '_':
		return 2, 2
	case rest[1] == 'L' || rest[1] == 'P':
		return 2, 3
	case digits == 0 || len(rest) < 2+digits:
		return 2, 1
	}
	r := hex(rest[2 : 2+digits])
	if low := 2 + digits; utf16.IsSurrogate(r) && strings.HasPrefix(rest[low:], `\u`) && len(rest) >= low+6 { // of JSON
		if both := utf16.DecodeRune(r, hex(rest[low+2:low+6])); both != utf8.RuneError {
			return low + 6, utf8.RuneLen(both)
		}
	}
	return 2 + digits, len(string(r))
}

func hex(digits string) rune {
	n, err := strconv.ParseUint(digits, 16, 31)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
