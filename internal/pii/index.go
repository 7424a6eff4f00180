package pii

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// leastKnown is the minimum length of a value that is searched for in any context, in bytes: shorter ones are part
	// of too many words and numbers.
	leastKnown = 6
	// leastDistinct is the same for a value that was only read and never sent, leastDigits for one of digits.
	leastDistinct, leastDigits = 8, 10
	// leastStripped is the minimum number of letters and digits in a value that is searched for with other separators.
	leastStripped = 8
	gramBits      = 18
)

// gram is the first leastKnown bytes of a text, in lower case.
type gram uint64

// slot returns the position of a gram in a filter.
func (g gram) slot() uint64 { return uint64(g) * 0x9e3779b97f4a7c15 >> (64 - gramBits) }

// filter is a set of grams with false positives.
type filter []uint64

func (f *filter) add(g gram) {
	if *f == nil {
		*f = make(filter, 1<<gramBits/64)
	}
	(*f)[g.slot()/64] |= 1 << (g.slot() % 64)
}

func (f filter) has(g gram) bool { s := g.slot(); return f[s/64]&(1<<(s%64)) != 0 }

// grams calls do for each position of a text; do returns how far to advance.
func (f filter) grams(text string, do func(g gram, at int)) {
	if f == nil || len(text) < leastKnown {
		return
	}
	var g gram
	for i := range len(text) {
		g = (g<<8 | gram(text[i])) & (1<<(8*leastKnown) - 1)
		if i >= leastKnown-1 && f.has(g) {
			do(g, i-leastKnown+1)
		}
	}
}

func gramOf(text string) (g gram) {
	for i := range leastKnown {
		g = g<<8 | gram(text[i])
	}
	return g
}

// pattern is a form of a value that is searched for, in lower case.
type pattern struct {
	text string
	of   *entry
	// stripped: letters and digits alone.
	stripped bool
}

// index finds the values of a vault in texts. It changes with each value, which rules out an automaton that must be
// rebuilt.
type index struct {
	filter filter
	at     map[gram][]pattern
}

// add adds the forms of a value. One that was sent is also searched for reversed and without separators.
func (x *index) add(e *entry) {
	if e.kind == Text || e.part {
		return
	}
	text := foldCase(e.value)
	x.put(pattern{text: text, of: e})
	if len(e.sent) == 0 {
		return
	}
	x.put(pattern{text: backwards(text), of: e})
	if plain := strip(text); len(plain) >= leastStripped {
		x.put(pattern{text: plain, of: e, stripped: true})
		x.put(pattern{text: backwards(plain), of: e, stripped: true})
	}
}

func (x *index) put(p pattern) {
	if len(p.text) < leastKnown {
		return
	}
	if x.at == nil {
		x.at = map[gram][]pattern{}
	}
	g := gramOf(p.text)
	if !slices.Contains(x.at[g], p) {
		x.filter.add(g)
		x.at[g] = append(x.at[g], p)
	}
}

func (x *index) remove(e *entry) {
	text := foldCase(e.value)
	for _, form := range []string{text, backwards(text), strip(text), backwards(strip(text))} {
		if len(form) < leastKnown {
			continue
		}
		g := gramOf(form)
		if left := slices.DeleteFunc(x.at[g], func(p pattern) bool { return p.of == e }); len(left) > 0 {
			x.at[g] = left
		} else {
			delete(x.at, g)
		}
	}
}

// distinct reports whether a value is distinctive enough to be recognized anywhere, even if it was not sent: it is
// long, and neither a word nor part of a number.
func distinct(e *entry, text string, start, end int) bool {
	value := text[start:end]
	if len(value) < leastDistinct || !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return false
	}
	if strings.Trim(value, "0123456789") == "" && len(value) < leastDigits {
		return false
	}
	return !(isDigit(value[0]) && start > 0 && isDigit(text[start-1])) && !(isDigit(value[len(value)-1]) && end < len(text) && isDigit(text[end])) && e.kind != Field
}

// foldCase returns a text in lower case, with the same length in bytes.
func foldCase(text string) string {
	small := strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); utf8.RuneLen(l) == utf8.RuneLen(r) {
			return l
		}
		return r
	}, text)
	if len(small) == len(text) {
		return small
	}
	return string(appendLower(nil, text))
}

func backwards(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// strip keeps letters and digits only.
func strip(text string) string { return stripView(view{text: text}).text }
