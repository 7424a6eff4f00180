package yamlstrict

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Inside returns the position in the file of an offset in the text of n.
func (s *Source) Inside(n *yaml.Node, offset int) (line, column int) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return s.insideQuoted(n, offset)
	}
	from := n.Column
	at, number := 0, n.Line // what of the text comes before the line
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		number, from = number+1, 1
	}
	for last := number + strings.Count(n.Value, "\n") + maxLines; number <= last && number <= len(s.starts); number, from = number+1, 1 {
		here := s.Line(number)
		start := OffsetOf(here, from)
		start += len(here[start:]) - len(strings.TrimLeft(here[start:], " "))
		at += len(n.Value[at:]) - len(strings.TrimLeft(n.Value[at:], " \n"))
		same := common(here[start:], n.Value[at:])
		if same == 0 && strings.TrimSpace(here) != "" {
			break
		}
		if offset <= at+same {
			return number, utf8.RuneCountInString(here[:start+max(offset-at, 0)]) + 1
		}
		at += same
	}
	return n.Line, n.Column
}

// common returns the length of the common prefix of two texts, in whole characters.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}
