package pii

import (
	"strconv"
	"strings"
)

// A token is [KIND_N], or [KIND_N_M] for another spelling of the value of [KIND_N]. It is also recognized in lower
// case and URL-encoded: %5BKIND_N%5D. External text that looks like a token is itself replaced by a token, of the
// kind TEXT, so that only the vault makes tokens.
type token struct {
	label         string // in capitals
	number, spell int    // spell counts from 1
	end           int    // where it ends in the text
	encoded       bool   // as in a URL
}

// longestToken is the maximum length of a token, in bytes.
const longestToken = 32 + 2*12 + 6

// readToken reads the token at i of a text, with any label; ok false for none.
func readToken(t string, i int) (k token, ok bool) {
	rest := t[i:min(len(t), i+longestToken)]
	open, closed := "[", "]"
	if k.encoded = rest[0] == '%'; k.encoded {
		open, closed = "%5b", "%5d"
		if !hasPrefixFold(rest, open) {
			return k, false
		}
	}
	j := labelEnd(rest, len(open))
	name := rest[len(open):j]
	if !strings.HasSuffix(name, "_") || len(name) < 2 {
		return k, false
	}
	k.label = strings.ToUpper(name[:len(name)-1])
	j, k.number, k.spell = readNumbers(rest, j)
	if k.number == 0 || !hasPrefixFold(rest[j:], closed) {
		return k, false
	}
	k.end = i + j + len(closed)
	return k, true
}

// hasPrefixFold is strings.HasPrefix, ignoring case.
func hasPrefixFold(t, prefix string) bool {
	return len(t) >= len(prefix) && strings.EqualFold(t[:len(prefix)], prefix)
}

// labelEnd returns the end of the letters and "_" at i.
func labelEnd(t string, i int) int {
	for i < len(t) && (isLetter(t[i]) || t[i] == '_') {
		i++
	}
	return i
}

// readNumbers reads N or N_M; number 0 for neither.
func readNumbers(t string, i int) (end, number, spell int) {
	end, number = readNumber(t, i)
	if end == len(t) || t[end] != '_' {
		return end, number, 1
	}
	if end, spell = readNumber(t, end+1); spell < 2 {
		return end, 0, 0
	}
	return end, number, spell
}

// readNumber reads digits without a leading zero, at most nine; 0 for none.
func readNumber(t string, i int) (end, n int) {
	start := i
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	if i == start || i-start > 9 || t[start] == '0' {
		return i, 0
	}
	return i, num(t[start:i])
}

// tokenAt returns the end of text at i that looks like a token, 0 for none.
func (d *Detector) tokenAt(t string, i int) int {
	if i >= len(t) || t[i] != '[' && t[i] != '%' {
		return 0
	}
	k, ok := readToken(t, i)
	if !ok || !d.labels[k.label] {
		return 0
	}
	return k.end
}

func (k token) String() string {
	text := "[" + k.label + "_" + strconv.Itoa(k.number)
	if k.spell > 1 {
		text += "_" + strconv.Itoa(k.spell)
	}
	return text + "]"
}
