package pii

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

const (
	leastPhone, mostPhone = 7, 15 // digits; as of E.164
	// longestPhone bounds the length of a number, in bytes.
	longestPhone = 32
)

// phoneForm is a candidate telephone number: digits in groups.
type phoneForm struct {
	end    int
	plus   bool
	parens bool
	n      int
	digits [mostPhone]byte
	count  int // groups
	groups [maxGroups]int
	seps   [maxGroups]byte // before each group but the first; several before one count as one
	hard   int             // how many of those are no spaces
}

// maxGroups bounds the groups of digits in a number.
const maxGroups = 8

// has reports whether a separator precedes at least that many groups.
func (p phoneForm) has(sep byte, least int) bool {
	n := 0
	for _, b := range p.seps[:p.count] {
		if b == sep {
			n++
		}
	}
	return n >= least
}

// phoneScan finds phone numbers.
type phoneScan struct{ *scan }

// phoneAt reads a candidate number at i; end 0 for none.
func (s phoneScan) phoneAt(i int) (p phoneForm) {
	k := i
	if p.plus = s.at(k) == '+'; p.plus {
		k++
	}
	for k-i < longestPhone && p.count < maxGroups {
		start, sep := s.phoneGap(k)
		if sep == '.' && start > k+1 {
			return p // the end of a sentence
		}
		p.parens = p.parens || strings.ContainsAny(s.t[k:start], "()")
		if !s.isDigit(start) || sep == '/' || sep == ' ' && p.hard >= 2 {
			return p
		}
		if s.isTrunkZero(p, start) {
			k, p.parens = start+1, true
			continue
		}
		for k = start; s.isDigit(k) && k-start <= mostPhone; {
			k++
		}
		if !p.add(sep, s.t[start:k]) {
			return phoneForm{}
		}
		p.end = k
	}
	return p
}

// isTrunkZero reports whether at i is the zero of "+49 (0)30", which is dialled within the country only.
func (s phoneScan) isTrunkZero(p phoneForm, i int) bool {
	return p.plus && p.count > 0 && s.at(i) == '0' && s.at(i-1) == '(' && s.at(i+1) == ')'
}

// phoneGap returns the end of the separators at i, and the significant one: the first that is not a space.
func (s phoneScan) phoneGap(i int) (end int, sep byte) {
	end = i
	for end < len(s.t) && end-i < 3 && strings.IndexByte(" -.()/", s.t[end]) >= 0 {
		if sep == 0 || sep == ' ' {
			sep = s.t[end]
		}
		end++
	}
	return end, sep
}

// add adds a group of digits after a separator; false if there are too many.
func (p *phoneForm) add(sep byte, group string) bool {
	if p.n+len(group) > mostPhone {
		return false
	}
	if p.count > 0 {
		p.seps[p.count] = sep
		if sep != ' ' {
			p.hard++
		}
	}
	p.n += copy(p.digits[p.n:], group)
	p.groups[p.count] = len(group)
	p.count++
	return true
}

// phone finds a telephone number at i, and returns its end, 0 for none.
func (s phoneScan) phone(i int) int {
	if !s.mayDial(i) {
		return 0
	}
	start := i
	if s.at(i) == '(' && s.at(i+1) == '+' {
		start++
	}
	p := s.phoneAt(start)
	if p.n < leastPhone {
		return 0
	}
	number := p.end
	p.end = s.extension(p.end)
	if !s.ended(p.end) || s.at(p.end) == ',' && s.isDigit(p.end+1) && !p.plus {
		return 0
	}
	if !s.isPhone(start, number, p) || !s.add(Phone, start, p.end) {
		return 0
	}
	return p.end
}

// mayDial reports whether a number may begin at i: at the beginning of a word, or with a digit or + after a
// parenthesis.
func (s phoneScan) mayDial(i int) bool {
	if s.at(i) == '(' && !s.isDigit(i+1) && s.at(i+1) != '+' {
		return false
	}
	return !s.isAlnum(i-1) && (s.at(i) == '+' || !s.joined(i))
}

// extension returns the end of an extension: x123, ext. 123.
func (s phoneScan) extension(end int) int {
	k := end
	if s.at(k) == ' ' {
		k++
	}
	switch {
	case strings.HasPrefix(s.t[k:], "ext. "):
		k += 5
	case strings.HasPrefix(s.t[k:], "ext "), strings.HasPrefix(s.t[k:], "ext."):
		k += 4
	case s.at(k) == 'x':
		k++
	default:
		return end
	}
	first := k
	for s.isDigit(k) && k-first < 7 {
		k++
	}
	if k == first || s.isAlnum(k) {
		return end
	}
	return k
}

func (s phoneScan) isPhone(start, end int, p phoneForm) bool {
	said := s.around(start, end)
	if p.plus {
		return said&ofPhone != 0 || possible(string(p.digits[:p.n]))
	}
	if d := numberScan(s).digits(start); d.isDate() || p.dotted() || numberScan(s).slashDate(start) > 0 || isClock(s.t, end) {
		return false
	}
	switch {
	case said&ofPhone != 0:
		return p.parens || p.count > 1 || p.n <= 13
	case said != 0 && said&ofPerson == 0:
		return false
	}
	return p.nanp()
}

// dotted reports whether it looks like a fraction or a version.
func (p phoneForm) dotted() bool { return p.count == 2 && p.seps[1] == '.' }

// isClock reports whether a time of day continues at end.
func isClock(t string, end int) bool {
	return end+1 < len(t) && t[end] == ':' && isDigit(t[end+1])
}

// nanp reports whether it has the North American form.
func (p phoneForm) nanp() bool {
	g, d := p.groups[:p.count], string(p.digits[:p.n])
	if p.count == 4 && g[0] == 1 && d[0] == '1' {
		g, d = g[1:], d[1:]
	}
	if len(g) != 3 || g[0] != 3 || g[1] != 3 || g[2] != 4 || d[0] < '2' || d[3] < '1' {
		return false
	}
	return p.parens || p.has('-', 2) || p.has('.', 2)
}

// possible checks digits after a plus against the numbering plans of all countries.
func possible(digits string) bool {
	if len(digits) < 8 || digits[0] == '0' {
		return false
	}
	n, err := phonenumbers.Parse("+"+digits, "")
	return err == nil && phonenumbers.IsPossibleNumber(n)
}
