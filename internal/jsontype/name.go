package jsontype

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of a member, in bytes.
const maxName = 64

// isName reports whether a key may be a member name, which is recorded. A key that may be data is not a name: ids,
// numbers, dates, e-mail addresses, paths, domains, sentences. The guest has the same rules (shapes.py, shapes.mjs).
func isName(key string) bool {
	if key == "" || len(key) > maxName || !utf8.ValidString(key) || key[0] >= '0' && key[0] <= '9' || key[0] == '-' {
		return false
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(key, "@"), "odata.") // as in "@type", "@odata.nextLink"
	return !strings.ContainsFunc(rest, notInName) && !isCode(rest) && !isHex(rest) && !isJumble(rest)
}

func notInName(r rune) bool {
	return r != '_' && r != '-' && r != '$' && !isDigit(r) && !unicode.In(r, unicode.L, unicode.M)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// isCode reports whether letters and digits are mixed as they are in ids, or
// there is a number of four digits.
func isCode(s string) bool {
	digits, changes := 0, 0
	before := '_'
	for _, r := range s {
		if isDigit(r) {
			digits++
		} else {
			digits = 0
		}
		if isDigit(r) != isDigit(before) && isLetterOrDigit(r) && isLetterOrDigit(before) {
			changes++
		}
		if digits == 4 || changes == 4 {
			return true
		}
		before = r
	}
	return false
}

func isLetterOrDigit(r rune) bool { return isDigit(r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// isJumble reports whether a word of s looks random, as tokens and keys do: it is long, and has three or more
// features that are rare in words: numbers, adjacent capitals, a single small letter between them.
func isJumble(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return !isLetterOrDigit(r) }), func(word string) bool {
		return len(word) >= 14 && oddities(word) >= 3
	})
}

func oddities(word string) (n int) {
	start := 0
	for i := 1; i <= len(word); i++ {
		if i < len(word) && class(word[i]) == class(word[start]) {
			continue
		}
		switch class(word[start]) {
		case 'A':
			n += min(i-start-1, 1)
		case '0':
			n++
		case 'a':
			if i == start+1 && start > 0 && i < len(word) && class(word[i]) == 'A' {
				n++
			}
		}
		start = i
	}
	return n
}

func class(c byte) byte {
	switch {
	case c >= 'a':
		return 'a'
	case c >= 'A':
		return 'A'
	}
	return '0'
}

// isHex reports whether s looks like a digest: sixteen hexadecimal digits, or
// seven with a decimal one among them.
func isHex(s string) bool {
	if len(s) < 7 || strings.Trim(s, "0123456789abcdefABCDEF") != "" {
		return false
	}
	return len(s) >= 16 || strings.ContainsAny(s, "0123456789")
}
