package flowgen

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxFound limits the indexed values of one result, maxKnown of all results.
	maxFound, maxKnown = 4000, 40_000
	// maxSearched limits a text that is searched for other texts, in bytes, maxScanned the bytes that are searched in total.
	maxSearched, maxScanned = 16 << 10, 128 << 20
)

// ref is the origin of a value: an expression, and the name of its member, "" for none.
type ref struct{ expr, name string }

// valueIndex is an index of the values in results so far.
type valueIndex struct {
	refs    map[string][]ref // by raw
	texts   []seenText       // those that may be parts of other texts
	lists   []seenList
	count   int
	scanned int
}

type seenText struct {
	text string
	ref
}

type seenList struct {
	expr  string
	items []value
}

// add adds the result of a step.
func (k *valueIndex) add(expr string, v value) {
	room := min(maxFound, maxKnown-k.count)
	before := room
	k.walk(ref{expr: expr}, v, &room)
	k.count += before - room
}

func (k *valueIndex) walk(r ref, v value, room *int) {
	if *room <= 0 {
		return
	}
	*room--
	if v.kind != 'n' && v.kind != 't' && v.raw != `""` {
		k.refs[v.raw] = append(k.refs[v.raw], r)
	}
	if n := utf8.RuneCountInString(v.text); n >= minPart && n <= maxSearched {
		k.texts = append(k.texts, seenText{v.text, r})
	}
	if len(v.items) > 0 {
		k.lists = append(k.lists, seenList{r.expr, v.items})
	}
	for i, item := range v.items {
		k.walk(ref{r.expr + at(i), r.name}, item, room)
	}
	for _, m := range v.members {
		k.walk(ref{r.expr + dot(m.name), m.name}, m.value, room)
	}
}

// find returns the probable origin of an argument: a value with the same name, else the first equal value.
func (k *valueIndex) find(param string, v value) (expr string, ok bool) {
	refs := k.refs[v.raw]
	if i := slices.IndexFunc(refs, func(r ref) bool { return r.name == param }); i >= 0 && param != "" && (v.scalar() || v.distinctive()) {
		return refs[i].expr, true
	}
	if len(refs) == 0 || !v.distinctive() {
		return "", false
	}
	return refs[0].expr, true
}

// piece is a part of a text: an expression or literal text.
type piece struct{ expr, text string }

// splitText splits a text at the earlier texts that it contains as whole words, the longest first; nil if there are none. Earlier constants
// are excluded, since results often repeat the arguments.
func (k *valueIndex) splitText(text string, constant func(value) bool) []piece {
	if len(text) > maxSearched {
		return nil
	}
	var hits []hit
	for _, t := range k.texts {
		if k.scanned += len(text); k.scanned > maxScanned {
			break
		}
		if i := strings.Index(text, t.text); i >= 0 && len(t.text) < len(text) && isWholeWord(text, i, i+len(t.text)) && !constant(textValue(t.text)) {
			hits = append(hits, hit{i, i + len(t.text), t.expr})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	var taken []hit
	for _, h := range hits {
		if !slices.ContainsFunc(taken, func(o hit) bool { return h.from < o.to && o.from < h.to }) {
			taken = append(taken, h)
		}
	}
	slices.SortFunc(taken, func(a, b hit) int { return a.from - b.from })
	return pieces(text, taken)
}

type hit struct {
	from, to int
	expr     string
}

func pieces(text string, taken []hit) (all []piece) {
	if len(taken) == 0 {
		return nil
	}
	last := 0
	for _, h := range taken {
		if h.from > last {
			all = append(all, piece{text: text[last:h.from]})
		}
		all, last = append(all, piece{expr: h.expr}), h.to
	}
	if last < len(text) {
		all = append(all, piece{text: text[last:]})
	}
	return all
}

// isWholeWord reports whether text[from:to] is not part of a longer word.
func isWholeWord(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return !word(before) && !word(after)
}

// findList finds an earlier list whose items, or one member of each, are these values in any order, and returns them in the order of the list. member is "" for the items themselves,
// order is nil if there is none.
func (k *valueIndex) findList(values []value) (expr, member string, order []value) {
	want := sortedRaws(values)
	for _, l := range k.lists {
		if len(l.items) != len(values) {
			continue
		}
		for _, path := range append([]ref{{}}, scalars(ref{}, l.items[0], 3)...) {
			if picked := pick(l.items, path.expr); slices.Equal(want, sortedRaws(picked)) {
				return l.expr, path.expr, picked
			}
		}
	}
	return "", "", nil
}

// findMapped finds an earlier list of which one member of each item gives the items of v, in order.
func (k *valueIndex) findMapped(v value) (expr string, ok bool) {
	if len(v.items) < minFound || slices.ContainsFunc(v.items, func(item value) bool { return !item.distinctive() }) {
		return "", false
	}
	expr, member, order := k.findList(v.items)
	if order == nil || member == "" || !slices.EqualFunc(order, v.items, func(a, b value) bool { return a.raw == b.raw }) {
		return "", false
	}
	return expr + ".map(it, it" + member + ")", true
}

func sortedRaws(values []value) []string {
	raws := make([]string, len(values))
	for i, v := range values {
		raws[i] = v.raw
	}
	slices.Sort(raws)
	return raws
}

// scalars returns the paths to strings and numbers within an object, as expressions.
func scalars(r ref, v value, depth int) (all []ref) {
	for _, m := range v.members {
		path := ref{r.expr + dot(m.name), m.name}
		if m.scalar() {
			all = append(all, path)
		} else if depth > 0 {
			all = append(all, scalars(path, m.value, depth-1)...)
		}
	}
	return all
}

// pick returns the values at a path of all items that have one.
func pick(items []value, path string) []value {
	picked := make([]value, 0, len(items))
	for _, item := range items {
		if v, ok := follow(item, path); ok {
			picked = append(picked, v)
		}
	}
	return picked
}

func follow(v value, path string) (value, bool) {
	if path == "" {
		return v, true
	}
	for _, m := range v.members {
		if rest, ok := strings.CutPrefix(path, dot(m.name)); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return follow(m.value, rest)
		}
	}
	return value{}, false
}
