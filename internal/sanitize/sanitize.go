// Package sanitize makes untrusted text safe to show: to a model, on a terminal, in a log line. Text of upstreams and
// of programs may contain terminal escapes, bidirectional overrides, invisible tag characters, and may be arbitrarily
// long.
package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sequence is a terminal control sequence (ECMA-48, 5.4), such as a colour. Text after other escapes stays visible,
// without the escape.
var sequence = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]`)

// Line returns s as one line of at most max runes: all white space runs become one
// space, invisible characters and colours are dropped, and a cut is marked with "…".
func Line(s string, max int) string {
	return cutRunes(strings.Join(strings.Fields(clean(truncate(s, max))), " "), max)
}

// Text is Line for text of several lines: newlines and tabs stay.
func Text(s string, max int) string {
	return cutRunes(strings.TrimSpace(clean(truncate(s, max))), max)
}

// truncate limits the work to the output size: at most 16 bytes per requested rune are examined.
func truncate(s string, max int) string {
	if limit := 16*max + 64; len(s) > limit {
		return s[:limit]
	}
	return s
}

func clean(s string) string {
	if isPlain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085' || r == '\v' || r == '\f':
			return '\n'
		case r == utf8.RuneError:
			return '\uFFFD'
		case Hidden(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(StripEscapes(s), "\r\n", "\n"))
}

// isPlain reports whether s is ASCII that needs no change, as most text is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// StripEscapes returns s without the control sequences of a terminal, such as colours.
func StripEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 && !strings.Contains(s, "\u009b") { // ContainsAny is much slower
		return s
	}
	return sequence.ReplaceAllString(s, "")
}

// Hidden reports whether r shows nothing or changes how its neighbours show:
// controls, bidirectional marks, zero-width and tag characters, private use.
// The joiners and variation selectors that scripts and emoji need are not hidden.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < ' ' // by far the most common, and quick
	}
	switch {
	case r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f':
		return false
	case r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0': // Hangul fillers
		return true
	case r >= 0xE0000 && r <= 0xE0FFF: // tags and variation selectors supplement
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

func cutRunes(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n == max-1 {
			return strings.TrimRight(s[:i], " \n") + "…"
		}
		n++
	}
	return s
}

// JSON encodes a value without escaping HTML in texts.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Head returns at most the first n characters of s.
func Head(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// Count writes a number of things: "1 file", "2 files".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
