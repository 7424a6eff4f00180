package pii

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// leastKnown is how long a value must be to be found in any neighbourhood, in bytes: what is
	// shorter is a part of too many words and numbers.
	leastKnown = 6
	// leastDistinct is that for a value that was only read and never sent, leastDigits for one of digits.
	leastDistinct, leastDigits = 8, 10
	// leastStripped is how many letters and digits a value must have to be found with other signs between them.
	leastStripped = 8
	gramBits      = 18
)

// gram is the first leastKnown bytes of a text, in small letters.
type gram uint64

// slot is where a gram stands in a filter.
func (g gram) slot() uint64 { return uint64(g) * 0x9e3779b97f4a7c15 >> (64 - gramBits) }

// filter says of most grams that they are not in a set.
type filter []uint64

func (f *filter) add(g gram) {
	if *f == nil {
		*f = make(filter, 1<<gramBits/64)
	}
	(*f)[g.slot()/64] |= 1 << (g.slot() % 64)
}

func (f filter) has(g gram) bool { s := g.slot(); return f[s/64]&(1<<(s%64)) != 0 }

// grams calls do for each place of a text, as long as do returns how far to go on.
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

// pattern is a form in which a value may stand in a text, in small letters.
type pattern struct {
	text string
	of   *entry
	// stripped: letters and digits alone.
	stripped bool
}

// index finds the values of a vault in texts. It changes with each value, so that an automaton,
// which must be built again, does not fit.
type index struct {
	filter filter
	at     map[gram][]pattern
}

// add adds the forms of a value. One that was sent is looked for backwards and without separators, too.
func (x *index) add(e *entry) {
	if e.kind == Text || e.part {
		return
	}
	text := folded(e.value)
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
	text := folded(e.value)
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

// distinct reports whether a value is distinctive enough to be recognised anywhere, also if it was not sent:
// it is long, and neither a word nor a part of a number.
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

// folded is a text in small letters, byte for byte as long as it was.
func folded(text string) string {
	small := strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); utf8.RuneLen(l) == utf8.RuneLen(r) {
			return l
		}
		return r
	}, text)
	if len(small) == len(text) {
		return small
	}
	return string(lowered(nil, text))
}

func backwards(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// strip leaves letters and digits.
func strip(text string) string { return stripped(view{text: text}).text }
