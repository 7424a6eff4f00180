package yamlstrict

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yamlMessage matches the YAML library's errors: an optional line, and the message.
var yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxError adds a position to an error of the YAML library. The library reports an often wrong line and no column,
// so the position is searched for: the end of the shortest prefix of the file with the same error.
func (s *Source) syntaxError(err error) error {
	line, message := parseMessage(err)
	from := 0
	if line > 1 && line <= len(s.starts) {
		from = s.starts[line-1]
	}
	if len(s.data) > maxSearch {
		return s.faultAt(from, "%s", explain(message, s.data[from:]))
	}
	ends := runeEnds(s.data[from:]) // a partial rune would be another error
	n := sort.Search(len(ends)-1, func(i int) bool {
		_, err := readAll(s.data[:from+ends[i]])
		if err == nil {
			return false
		}
		_, m := parseMessage(err)
		return m == message
	})
	at := from
	if n > 0 {
		at += ends[n-1]
	}
	line, _ = s.place(at)
	if mark := unquotedMark(message, s.Line(line)); mark > 0 {
		return s.faultAt(s.starts[line-1]+mark, `a text with a "?" must be in quotes inside of [] and {}`)
	}
	if strings.Contains(message, "did not find expected key") || strings.Contains(message, "mapping values are not allowed") {
		if wrong := s.misindented(line); wrong != "" {
			return s.faultAt(s.starts[line-1]+indentOf(s.Line(line)), "%s", wrong)
		}
	}
	return s.faultAt(at, "%s", explain(message, s.data[at:]))
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// unquotedMark returns the position of an unquoted "?" in a line with a bracket that seems unclosed: the library takes it
// for a key indicator, while people end questions with it. 0 means none.
func unquotedMark(message, line string) int {
	if !strings.Contains(message, "did not find expected ',' or") {
		return 0
	}
	quote := byte(0)
	for i, c := range []byte(line) {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' && i > 0 && strings.IndexByte(" [{,", line[i-1]) >= 0:
			quote = c
		case c == '?':
			return i
		}
	}
	return 0
}

// runeEnds returns the offset after each rune.
func runeEnds(data []byte) []int {
	var ends []int
	for i := 0; i < len(data); {
		_, size := utf8.DecodeRune(data[i:])
		i += size
		ends = append(ends, i)
	}
	return ends
}

func parseMessage(err error) (line int, message string) {
	parts := yamlMessage.FindStringSubmatch(err.Error())
	if parts == nil {
		return 0, err.Error()
	}
	line, _ = strconv.Atoi(parts[1])
	return line, parts[2]
}

// explain rephrases the library's most common messages.
func explain(message string, at []byte) string {
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("tab character"), has("cannot start any token") && bytes.HasPrefix(at, []byte("\t")):
		return "a tab cannot indent in YAML; use spaces"
	case has("cannot start any token"):
		return "a value cannot start with this character; put the value in quotes"
	case has("mapping values are not allowed"):
		return `a ":" cannot stand here; put a value that contains ": " in quotes, or check the indentation and the line above`
	case has("did not find expected key"):
		return "this is not a key of its block; check the indentation and the quotes"
	case has("could not find expected ':'"):
		return `a key must be followed by ": "`
	case has("did not find expected ',' or"):
		return "this bracket is not closed, or a comma is missing"
	case has("unknown anchor"), has("alphabetic or numeric character"):
		return `a value that starts with "*" or "&" must be in quotes; aliases are not supported`
	case has("unknown escape character"), has("did not find expected hexdecimal number"):
		return `invalid escape; write "\\" for a backslash, or use single quotes, as in 'C:\tools'`
	case has("unexpected end of stream"):
		return "this quote is not closed"
	}
	return "is not YAML: " + message
}
