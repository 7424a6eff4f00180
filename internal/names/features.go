package names

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is the model's view of a token.
type word struct {
	digest  uint64 // of its small letters
	in      class
	shape   uint64
	affixes [5]uint64
	first   bool // of a sentence or a line
}

// The shapes of tokens.
const (
	shapeSign uint64 = iota
	shapeDigits
	shapeLower
	shapeCapital // Ann
	shapeInitial // A
	shapeUpper   // ANN
	shapeMixed   // McAnn, GmbH
	shapeCamel   // iPhone
)

func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

func mix(h uint64) uint64 {
	h ^= h >> 31
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 29
	return h
}

// shapeOf returns the shape of a token.
func shapeOf(s string) uint64 {
	if '0' <= s[0] && s[0] <= '9' {
		return shapeDigits + uint64(min(len(s), 7))<<4 //nolint:gosec // small
	}
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(first) {
		return shapeSign
	}
	upper, lower := 0, 0
	for _, r := range s {
		if unicode.IsUpper(r) {
			upper++
		} else if unicode.IsLetter(r) {
			lower++
		}
	}
	switch {
	case upper == 0:
		return shapeLower
	case upper+lower == 1 && utf8.RuneCountInString(s) == 1:
		return shapeInitial
	case lower == 0:
		return shapeUpper
	case !unicode.IsUpper(first):
		return shapeCamel
	case upper == 1 || strings.ContainsAny(s, "'’-"):
		return shapeCapital
	}
	return shapeMixed
}

// ends returns the digests of the last 2, 3 and 4 letters and the first 2 and 3.
func ends(s string) (a [5]uint64) {
	at := len(s)
	for n := range 4 {
		if at == 0 {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
		if n > 0 {
			a[n-1] = hash(s[at:])
		}
	}
	at = 0
	for n := range 3 {
		if at == len(s) {
			break
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
		if n > 0 {
			a[n+2] = hash(s[:at])
		}
	}
	return a
}

// word returns the model's view of a token.
func (m *Model) word(text string, t token, before, second *word) word {
	s := text[t.start:t.end]
	low := strings.ToLower(s)
	w := word{digest: hash(low), shape: shapeOf(s)}
	if w.shape != shapeSign && w.shape&15 != shapeDigits {
		w.affixes = ends(low)
		w.in = m.classOf(low, w.digest)
	}
	w.first = begins(t, before, second)
	return w
}

// classOf returns the lists that contain a word.
func (m *Model) classOf(low string, digest uint64) (in class) {
	for c := range classes {
		if m.lists[c].has(digest) {
			in |= 1 << c
		}
	}
	if in&common == 0 && (m.inflected(low) || m.compound(low)) {
		in |= common
	}
	return in
}

// begins reports whether a token begins a sentence or a line.
func begins(t token, before, second *word) bool {
	switch {
	case before == nil, t.lines > 0:
		return true
	case before.shape != shapeSign:
		return false
	case !t.space:
		return before.first || before.digest == digestQuote
	case before.digest == digestDot && second != nil && (second.in&title != 0 || second.shape == shapeInitial):
		return false
	}
	return before.digest == digestDot || before.digest == digestAsk || before.digest == digestCall || before.digest == digestColon
}

var (
	digestDot   = hash(".")
	digestAsk   = hash("?")
	digestCall  = hash("!")
	digestColon = hash(":")
	digestQuote = hash("\"")
)

// compound reports whether a word is made of common ones with hyphens between them.
func (m *Model) compound(low string) bool {
	if !strings.Contains(low, "-") {
		return false
	}
	for part := range strings.SplitSeq(low, "-") {
		if !m.lists[listCommon].has(hash(part)) && !m.inflected(part) {
			return false
		}
	}
	return true
}

// inflected reports whether a word is a form of a common one.
func (m *Model) inflected(low string) bool {
	for _, suffix := range []string{"s", "es", "ed", "d", "ing", "ly", "er", "r", "est"} {
		stem, ok := strings.CutSuffix(low, suffix)
		if !ok || len(stem) < 3 {
			continue
		}
		list := m.lists[listCommon]
		if list.has(hash(stem)) || suffix == "ing" && list.has(hash(stem+"e")) || suffix != "s" && strings.HasSuffix(stem, "i") && list.has(hash(stem[:len(stem)-1]+"y")) {
			return true
		}
		if n := len(stem); suffix != "s" && n > 3 && stem[n-1] == stem[n-2] && list.has(hash(stem[:n-1])) {
			return true
		}
	}
	return false
}

// boundary is the word before the start and after the end of a text.
var boundary = word{digest: 1, shape: 15}

// maxFeatures bounds the features of one token.
const maxFeatures = 48

// features appends the features of token i.
func features(ws []word, i int, out []uint32) []uint32 {
	n := 0
	put := func(v uint64) {
		n++
		out = append(out, uint32(mix(v*0x9e3779b97f4a7c15+uint64(n)*0xd6e8feb86659fd93)>>(64-hashBits))) //nolint:gosec // hashBits are left
	}
	at := func(j int) *word {
		if j < 0 || j >= len(ws) {
			return &boundary
		}
		return &ws[j]
	}
	back := i - 1
	if back > 0 && ws[back].digest == digestDot && ws[back-1].in&title != 0 {
		back-- // Dr. Ann
	}
	w, p, q, a, b := at(i), at(back), at(back-1), at(i+1), at(i+2)
	kind := func(w *word) uint64 { return uint64(w.in) | w.shape<<8 }
	first := uint64(0)
	if w.first {
		first = 1
	}
	put(0)
	put(w.digest)
	for _, x := range w.affixes {
		put(x + w.shape)
	}
	put(kind(w)<<1 | first)
	put(w.shape<<1 | first)
	put(uint64(w.in)<<1 | first)
	for c := range classes {
		put(uint64(w.in&(1<<c)) | w.shape<<9)
	}
	put(p.digest)
	put(p.digest ^ w.shape<<1 ^ first)
	put(kind(p))
	put(kind(p) | kind(w)<<24)
	put(a.digest)
	put(a.digest ^ w.shape)
	put(kind(a))
	put(kind(a) | kind(w)<<24)
	put(q.digest)
	put(q.digest ^ mix(p.digest))
	put(kind(q) | kind(p)<<24)
	put(kind(p) | kind(a)<<24)
	put(kind(p) | kind(w)<<20 | kind(a)<<40)
	put(b.digest)
	put(kind(a) | kind(b)<<24)
	put(a.digest ^ mix(b.digest))
	put(p.digest ^ mix(a.digest))
	put(kind(at(back-2)) | kind(q)<<24)
	put(at(back - 2).digest)
	put(kind(q) | kind(w)<<24)
	put(p.digest ^ mix(kind(w)))
	put(a.digest ^ mix(kind(w)))
	put(kind(at(i + 3)))
	return out
}
