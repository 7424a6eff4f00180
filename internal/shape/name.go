package shape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of a member, in bytes.
const maxName = 64

// isName reports whether a key may be the name of a member, which is kept. Any
// that may be a value is none: ids, numbers, dates, e-mail addresses, paths,
// domains, sentences. It is kept the same in the guest (shapes.py, shapes.mjs).
func isName(key string) bool {
	if key == "" || len(key) > maxName || !utf8.ValidString(key) || key[0] >= '0' && key[0] <= '9' || key[0] == '-' {
		return false
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(key, "@"), "odata.") // as in "@type", "@odata.nextLink"
	return !strings.ContainsFunc(rest, notInName) && !isCode(rest) && !isHex(rest)
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

// isHex reports whether s looks like a digest: sixteen hexadecimal digits, or
// seven with a decimal one among them.
func isHex(s string) bool {
	if len(s) < 7 || strings.Trim(s, "0123456789abcdefABCDEF") != "" {
		return false
	}
	return len(s) >= 16 || strings.ContainsAny(s, "0123456789")
}
