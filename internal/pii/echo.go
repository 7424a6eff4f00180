package pii

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

const (
	// leastPart is the minimum length of a part of a value that is searched for, in bytes, if that is a third of the
	// value; enoughPart suffices for any value. leastDigitPart is for digits.
	leastPart, enoughPart, leastDigitPart = 6, 16, 8
	// maxPartGrams bounds the index of parts of values.
	maxPartGrams = 1 << 16
	// leastWord is the minimum length of a value that is searched for as a separate word.
	leastWord = 3
)

// Echo finds values of a vault in the output of an upstream: those that were sent to it, in any context and also
// encoded or reversed; parts of those that one call sent; and, if all, those that were only read. It is safe for
// concurrent use.
type Echo struct {
	vault    *Vault
	upstream string
	all      bool
	wrote    string // the arguments as the program wrote them
	sent     []Known
	parts    map[gram][]piece
	filter   filter
	grams    int
}

// piece is a position in a value that was sent.
type piece struct {
	value string // in lower case
	kind  Kind
	at    int
}

// Echo returns an Echo for the response to a call of an upstream. wrote are the arguments before values were
// restored: a part of a value that they contain is not a secret in the response.
func (v *Vault) Echo(upstream, wrote string, all bool) *Echo {
	return &Echo{vault: v, upstream: upstream, all: all, wrote: foldCase(wrote)}
}

// AddSent records values that the call sends to the upstream.
func (x *Echo) AddSent(values []Known) {
	x.vault.mu.Lock()
	defer x.vault.mu.Unlock()
	x.vault.recordSent(values, x.upstream)
	for _, k := range values {
		if slices.Contains(x.sent, k) {
			continue
		}
		x.sent = append(x.sent, k)
		x.addParts(k)
	}
	slices.SortStableFunc(x.sent, func(a, b Known) int { return cmp.Compare(len(b.Value), len(a.Value)) })
}

func (x *Echo) addParts(k Known) {
	value := foldCase(k.Value)
	if x.parts == nil {
		x.parts = map[gram][]piece{}
	}
	for at := 0; at+leastKnown <= len(value) && x.grams < maxPartGrams; at++ {
		g := gramOf(value[at:])
		x.filter.add(g)
		x.parts[g] = append(x.parts[g], piece{value, k.Kind, at})
		x.grams++
	}
}

// recordSent records that values were sent to an upstream. It is called with mu held.
func (v *Vault) recordSent(values []Known, upstream string) {
	for _, k := range values {
		for _, number := range []bool{false, true} {
			e := v.values[valueKey{k.Kind, k.Value, number}]
			if e == nil || slices.Contains(e.sent, upstream) {
				continue
			}
			e.sent = append(e.sent, upstream)
			v.note(e)
			e.part = false
			v.index.add(e)
		}
	}
	if len(values) > 0 {
		if v.sentTo == nil {
			v.sentTo = map[string]bool{}
		}
		v.sentTo[upstream] = true
	}
}

// Find finds values and parts of them in a text.
func (x *Echo) Find(text string) (found []Finding) {
	x.vault.mu.Lock()
	defer x.vault.mu.Unlock()
	depth := 0
	if x.vault.sentTo[x.upstream] || x.all && len(x.vault.sentTo) > 0 {
		depth = maxViews
	}
	if depth == 0 && !x.all {
		return nil
	}
	views(view{text: text}, depth, func(v view) {
		small := foldCase(v.text)
		put := func(kind Kind, start, end int) {
			from, to := v.place(start, end)
			from, to = characters(text, from, to)
			found = append(found, Finding{Kind: kind, Start: from, End: to, number: isNumberPlace(text, from, to), echo: true})
		}
		x.findWhole(v, small, put)
		if !v.stripped {
			x.findParts(small, put)
			x.findWords(v.text, put)
		}
	})
	return mergeOverlaps(found)
}

// findWhole finds whole values.
func (x *Echo) findWhole(v view, small string, put func(kind Kind, start, end int)) {
	index := &x.vault.index
	index.filter.grams(small, func(g gram, at int) {
		for _, p := range index.at[g] {
			end := at + len(p.text)
			if strings.HasPrefix(small[at:], p.text) && x.accepts(v, p, small, at, end) {
				put(p.of.kind, at, end)
			}
		}
	})
}

func (x *Echo) accepts(v view, p pattern, text string, start, end int) bool {
	if v.stripped != p.stripped && (p.stripped || len(p.text) < leastStripped) {
		return false
	}
	if slices.Contains(p.of.sent, x.upstream) || x.all && len(p.of.sent) > 0 {
		return true
	}
	return x.all && v.from == nil && distinct(p.of, text, start, end)
}

// findParts finds parts of the values that the call sent.
func (x *Echo) findParts(text string, put func(kind Kind, start, end int)) {
	next := 0
	x.filter.grams(text, func(g gram, at int) {
		if at < next {
			return
		}
		for _, p := range x.parts[g] {
			n := common(p.value[p.at:], text[at:])
			if p.isRevealing(n) && !strings.Contains(x.wrote, text[at:at+n]) {
				put(p.kind, at, at+n)
				next = max(next, at+n)
			}
		}
	})
}

// common returns the length of the common prefix of two texts.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// isRevealing reports whether n bytes of a value reveal too much of it. The domain of an address does not.
func (p piece) isRevealing(n int) bool {
	least := min(max(leastPart, (len(p.value)+2)/3), enoughPart)
	text := p.value[p.at : p.at+n]
	switch {
	case n < least, strings.Trim(text, "0123456789") == "" && n < leastDigitPart:
		return false
	case p.kind == Email:
		return p.at < strings.IndexByte(p.value, '@')
	}
	return true
}

// findWords finds values that are too short for a search in any context, as separate words: in their original case, and a
// value of two letters only if it is the whole text.
func (x *Echo) findWords(text string, put func(kind Kind, start, end int)) {
	for _, k := range x.sent {
		switch {
		case k.Value == text && (len(text) >= leastWord || strings.Trim(text, "0123456789") != ""):
			put(k.Kind, 0, len(text))
		case len(k.Value) >= leastWord && len(k.Value) < leastKnown:
			for at := range occurrences(text, k.Value) {
				put(k.Kind, at, at+len(k.Value))
			}
		}
	}
}

// occurrences yields the positions of a word in a text.
func occurrences(text, word string) func(yield func(at int) bool) {
	return func(yield func(int) bool) {
		for at := 0; ; {
			i := strings.Index(text[at:], word)
			if i < 0 {
				return
			}
			start, end := at+i, at+i+len(word)
			if !joins(text, start-1) && !joins(text, end) && !yield(start) {
				return
			}
			at = end
		}
	}
}

// joins reports whether the byte at i belongs to the same word as its neighbours.
func joins(text string, i int) bool {
	return i >= 0 && i < len(text) && (isLetter(text[i]) || isDigit(text[i]) || text[i] >= 0x80)
}

// mergeOverlaps sorts findings and merges those that overlap.
func mergeOverlaps(found []Finding) (all []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	for _, f := range found {
		if n := len(all); n > 0 && f.Start < all[n-1].End {
			all[n-1].End = max(all[n-1].End, f.End)
			continue
		}
		all = append(all, f)
	}
	return all
}

// mergeEchoes merges echoes and findings: a finding that contains an echo replaces it; if they only overlap, both stay.
func mergeEchoes(echoes, found []Finding) (all []Finding) {
	for _, e := range echoes {
		for _, f := range found {
			if f.Start < e.End && e.Start < f.End {
				if f.Start <= e.Start && e.End <= f.End {
					e.Kind = f.Kind
				}
				e.Start, e.End = min(e.Start, f.Start), max(e.End, f.End)
			}
		}
		all = append(all, e)
	}
	return mergeFindings(mergeOverlaps(all), found)
}

// FindScattered returns the kind of a value that the call sent, if JSON contains it in pieces; "" otherwise.
func (x *Echo) FindScattered(raw json.RawMessage) Kind {
	x.vault.mu.Lock()
	defer x.vault.mu.Unlock()
	if len(x.sent) == 0 || !json.Valid(raw) {
		return ""
	}
	said := foldCase(strip(leaves(string(raw))))
	for _, k := range x.sent {
		if value := foldCase(strip(k.Value)); len(value) >= leastStripped && (strings.Contains(said, value) || strings.Contains(said, backwards(value))) {
			return k.Kind
		}
	}
	return ""
}

// leaves returns the strings and numbers of valid JSON, concatenated.
func leaves(raw string) string {
	var b strings.Builder
	w := walker{raw: raw}
	w.leaf = func(text string, _ hint, isKey bool) string {
		if !isKey {
			b.WriteString(text)
		}
		return text
	}
	w.number = func(text string, _ hint) (string, bool) {
		b.WriteString(text)
		return "", false
	}
	w.run()
	return b.String()
}
