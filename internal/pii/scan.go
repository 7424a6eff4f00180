package pii

import (
	"strings"
	"unicode/utf8"
)

// class is a set of roles of a byte.
type class uint8

const (
	letter class = 1 << iota
	digit
	hex
	// sign begins a value without being a letter or a digit: @ + ( [ % -
	sign
	// prefix: a letter that secrets begin with.
	prefix
	// lead begins punctuation and other signs beyond ASCII.
	lead
	alnum = letter | digit
)

func classes() (c [256]class) {
	for b := range 256 {
		switch {
		case isDigit(byte(b)):
			c[b] = digit | hex
		case isLetter(byte(b)), b >= 0x80:
			c[b] = letter
		}
	}
	c[0xc2], c[0xe2] = lead, lead
	for _, b := range []byte("abcdefABCDEF") {
		c[b] |= hex
	}
	for _, b := range []byte("@+([%-") {
		c[b] |= sign
	}
	for _, b := range []byte("sgxAeynpdhSr") {
		c[b] |= prefix
	}
	return c
}

func isDigit(b byte) bool   { return b >= '0' && b <= '9' }
func isCapital(b byte) bool { return b >= 'A' && b <= 'Z' }
func isSmall(b byte) bool   { return b >= 'a' && b <= 'z' }
func isLetter(b byte) bool  { return isSmall(b) || isCapital(b) }

// scan is one pass over one text. The context that it examines around a position is bounded, so the time is linear in
// the text.
type scan struct {
	d     *Detector
	t     string
	hint  hint
	end   int // of the last finding
	found []Finding
}

func (s *scan) run() {
	for i := 0; i < len(s.t); {
		switch c := s.d.class[s.t[i]]; {
		case c&alnum != 0:
			i = s.word(i)
		case c&sign != 0:
			i = s.sign(i)
		case c&lead != 0:
			_, size := utf8.DecodeRuneInString(s.t[i:])
			i += size
		default:
			i++
		}
	}
}

// word examines a run of letters and digits, and returns where to continue.
func (s *scan) word(i int) int {
	first := s.d.class[s.t[i]]
	seen, j := first, i+1
	for j < len(s.t) {
		c := s.d.class[s.t[j]]
		if c&alnum == 0 {
			break
		}
		seen |= c & digit
		j++
	}
	next := s.at(j)
	if first&prefix != 0 {
		if end := (secretScan{s}).secret(i); end > 0 {
			return end
		}
	}
	if seen&digit != 0 || next == ':' && j-i <= 4 {
		if end := (numberScan{s}).number(i, j, next); end > 0 {
			return end
		}
	}
	if end := s.scanAfterWord(i, j, next); end > 0 {
		return end
	}
	return j
}

// scanAfterWord examines what follows the word from i to j: a value that it labels, or the rest of a number in groups.
func (s *scan) scanAfterWord(i, j int, next byte) int {
	switch next {
	case ':', '=', '"':
		return secretScan{s}.labelValue(i, j, next)
	case ' ':
		if j-i == 2 {
			return nationalScan{s}.spacedNINO(i)
		}
		if b := s.at(j + 1); b == '=' && s.at(j+2) == ' ' {
			return secretScan{s}.labelValue(i, j, b)
		}
		return secretScan{s}.statedSecret(i, j)
	}
	return 0
}

func (s *scan) sign(i int) int {
	switch s.t[i] {
	case '@':
		if start, end := emailAt(s.t, i); end > 0 && start >= s.end {
			if s.add(Email, start, end) {
				return end
			}
		}
	case '+', '(':
		if end := (phoneScan{s}).phone(i); end > 0 {
			return end
		}
	case '[', '%':
		if end := s.d.tokenAt(s.t, i); end > 0 {
			s.add(Text, i, end)
			return end
		}
	case '-':
		if end := (secretScan{s}).privateKey(i); end > 0 {
			return end
		}
	}
	return i + 1
}

// add adds a finding, unless its kind is disabled or its value is allowed.
func (s *scan) add(kind Kind, start, end int) bool {
	if kind != Text && !s.d.kinds[kind] || start < s.end || s.d.allowed(kind, s.t[start:end]) {
		return false
	}
	s.found = append(s.found, Finding{Kind: kind, Start: start, End: end, number: isNumberPlace(s.t, start, end)})
	s.end = end
	return true
}

// isNumberPlace reports whether the context is that of a JSON number.
func isNumberPlace(t string, start, end int) bool {
	for i := start; i < end; i++ {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	before := strings.TrimRight(t[max(0, start-4):start], " ")
	return strings.HasSuffix(before, `":`) && (end == len(t) || strings.IndexByte(",}] \r\n\t", t[end]) >= 0)
}

// at returns a byte of the text, 0 beyond its ends.
func (s *scan) at(i int) byte {
	if i < 0 || i >= len(s.t) {
		return 0
	}
	return s.t[i]
}

// isAlnum reports whether the byte at i belongs to a word.
func (s *scan) isAlnum(i int) bool {
	if i < 0 || i >= len(s.t) || s.d.class[s.t[i]]&alnum == 0 {
		return false
	}
	// The last byte of a non-ASCII sign is not part of a word.
	if b := s.t[i]; b >= 0x80 && b < 0xc0 && (s.at(i-1) == 0xc2 || s.at(i-2) == 0xe2) {
		return false
	}
	return true
}

func (s *scan) isDigit(i int) bool { return i >= 0 && i < len(s.t) && isDigit(s.t[i]) }

// joined reports whether the text at i continues something longer: 1-2, v1.2, a_2.
func (s *scan) joined(i int) bool {
	switch s.at(i - 1) {
	case '-', '.', '_', '+', '~', '^':
		return s.isAlnum(i - 2)
	case '$', '#', '\\', '*':
		return true
	case 0xac, 0xa3, 0xa5: // the ends of the signs of euro, pound, yen
		return s.at(i-2) == 0x82 || s.at(i-2) == 0xc2
	}
	return s.isAlnum(i - 1)
}

// ended reports whether the value ends at j.
func (s *scan) ended(j int) bool {
	switch s.at(j) {
	case '-', '.', '_', ':', '@', '/', '+':
		return !s.isAlnum(j+1) || s.at(j) == '-' && s.isLetterWord(j+1)
	case '%', '\\':
		return false
	}
	return !s.isAlnum(j)
}

// isLetterWord reports whether a word of letters begins at i: "555-2671-Office".
func (s *scan) isLetterWord(i int) bool {
	for k := i; k < i+3; k++ {
		if s.d.class[s.at(k)]&letter == 0 {
			return false
		}
	}
	return true
}
