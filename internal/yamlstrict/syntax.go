package yamlstrict

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yamlMessage takes apart what the YAML library says: an optional line, and what is wrong.
var yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxError gives err of the YAML library a place. The library names a line
// that is often another one and never a column, so the place is searched for:
// where the shortest piece of the file ends that is already wrong in the same way.
func (s *Source) syntaxError(err error) error {
	line, message := takeApart(err)
	from := 0
	if line > 1 && line <= len(s.starts) {
		from = s.starts[line-1]
	}
	if len(s.data) > maxSearch {
		return s.faultAt(from, "%s", explain(message, s.data[from:]))
	}
	ends := runeEnds(s.data[from:]) // half a rune would be wrong in a way of its own
	n := sort.Search(len(ends)-1, func(i int) bool {
		_, err := readAll(s.data[:from+ends[i]])
		if err == nil {
			return false
		}
		_, m := takeApart(err)
		return m == message
	})
	at := from
	if n > 0 {
		at += ends[n-1]
	}
	line, _ = s.place(at)
	if mark := bareMark(message, s.Line(line)); mark > 0 {
		return s.faultAt(s.starts[line-1]+mark, `a text with a "?" must be in quotes inside of [] and {}`)
	}
	return s.faultAt(at, "%s", explain(message, s.data[at:]))
}

// bareMark is where, in a line with a bracket that seems not to be closed, a "?" stands without quotes: the library takes it
// for a key's mark, and people end questions with it. 0 is nowhere.
func bareMark(message, line string) int {
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

// runeEnds returns the offset behind each rune.
func runeEnds(data []byte) []int {
	var ends []int
	for i := 0; i < len(data); {
		_, size := utf8.DecodeRune(data[i:])
		i += size
		ends = append(ends, i)
	}
	return ends
}

func takeApart(err error) (line int, message string) {
	parts := yamlMessage.FindStringSubmatch(err.Error())
	if parts == nil {
		return 0, err.Error()
	}
	line, _ = strconv.Atoi(parts[1])
	return line, parts[2]
}

// explain says in plain words what the library's commonest messages mean.
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
		return "this is no key of the block it stands in; check the indentation and the quotes"
	case has("could not find expected ':'"):
		return `a key must be followed by ": "`
	case has("did not find expected ',' or"):
		return "this bracket is not closed, or a comma is missing"
	case has("unknown anchor"), has("alphabetic or numeric character"):
		return `a value that starts with "*" or "&" must be in quotes; aliases are not supported`
	case has("unknown escape character"):
		return `this is no escape; write "\\" for a backslash, or use single quotes`
	case has("unexpected end of stream"):
		return "this quote is not closed"
	}
	return "is not YAML: " + message
}
