package pii

import (
	"encoding/base64"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxViews bounds how many nested encodings are undone.
const maxViews = 3

// view is a decoded text, with the position in the original of each of its bytes.
type view struct {
	text     string
	from, to []int32 // nil: the original itself
	stripped bool
}

// place returns the original position of a part of the view.
func (v view) place(start, end int) (from, to int) {
	if v.from == nil {
		return start, end
	}
	return int(v.from[start]), int(v.to[end-1])
}

// viewBuilder builds a view.
type viewBuilder struct {
	of       view
	text     []byte
	from, to []int32
}

// put appends bytes that represent a part of the parent view.
func (d *viewBuilder) put(text string, start, end int) {
	from, to := d.of.place(start, end)
	for i := range len(text) {
		d.text, d.from, d.to = append(d.text, text[i]), append(d.from, int32(from)), append(d.to, int32(to)) //nolint:gosec // no text is 2 GiB
	}
}

func (d *viewBuilder) view() view { return view{text: string(d.text), from: d.from, to: d.to} }

// views calls do for a text and for its decoded forms.
func views(v view, depth int, do func(view)) {
	do(v)
	if depth == 0 {
		return
	}
	if strings.ContainsAny(v.text, `%&\`) {
		if u := unescapedView(v); len(u.text) < len(v.text) {
			views(u, depth-1, do)
		}
	}
	if s := stripView(v); len(s.text) >= leastStripped {
		do(s)
	}
	encodedRuns(v, func(run view) { views(run, depth-1, do) })
}

// stripView returns a view of letters and digits only.
func stripView(v view) view {
	d := viewBuilder{of: v}
	for i := 0; i < len(v.text); i++ {
		if b := v.text[i]; isLetter(b) || isDigit(b) || b >= 0x80 {
			d.put(v.text[i:i+1], i, i+1)
		}
	}
	s := d.view()
	s.stripped = true
	return s
}

// unescapedView undoes one layer of URL, HTML and JSON escapes.
func unescapedView(v view) view {
	d := viewBuilder{of: v}
	for i := 0; i < len(v.text); {
		text, size := unescapeAt(v.text[i:])
		d.put(text, i, i+size)
		i += size
	}
	return d.view()
}

// unescapeAt decodes the start of a text, and returns how many bytes that takes.
func unescapeAt(t string) (text string, size int) {
	switch {
	case t[0] == '%' && len(t) >= 3:
		if n, err := strconv.ParseUint(t[1:3], 16, 8); err == nil {
			return string([]byte{byte(n)}), 3
		}
	case t[0] == '&':
		const longest = 12
		if end := strings.IndexByte(t[:min(len(t), longest)], ';'); end > 0 {
			if text := html.UnescapeString(t[:end+1]); text != t[:end+1] {
				return text, end + 1
			}
		}
	case t[0] == '\\' && len(t) >= 2:
		return escapeAt(t)
	}
	return t[:1], 1
}

// escapeAt is unescapeAt for the escapes of JSON and of programs.
func escapeAt(t string) (text string, size int) {
	digits := map[byte]int{'u': 4, 'x': 2}[t[1]]
	if digits > 0 && len(t) >= 2+digits {
		if n, err := strconv.ParseUint(t[2:2+digits], 16, 32); err == nil {
			return string(rune(n)), 2 + digits
		}
	}
	if instead := strings.IndexByte("nrtbf", t[1]); instead >= 0 {
		return "\n\r\t\b\f"[instead : instead+1], 2
	}
	return t[1:2], 2
}

// encodedRuns calls do for the decoded runs of base64 and hex in a text. The start of a run is not known, as other
// characters may precede it: all alignments are decoded.
func encodedRuns(v view, do func(view)) {
	for i := 0; i < len(v.text); {
		end := i
		for end < len(v.text) && inBase64(v.text[end]) {
			end++
		}
		const least = leastKnown * 8 / 6
		if end-i >= least {
			for shift := range 4 {
				do(base64View(v, i+shift, end))
			}
			hexRuns(v, i, end, do)
		}
		i = end + 1
	}
}

func inBase64(b byte) bool {
	return isLetter(b) || isDigit(b) || b == '+' || b == '/' || b == '-' || b == '_'
}

var urlSigns = strings.NewReplacer("-", "+", "_", "/")

// base64View decodes the base64 from start to end; an incomplete last group is decoded as far as possible.
func base64View(v view, start, end int) view {
	text := urlSigns.Replace(v.text[start:end])
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	plain, _ := base64.RawStdEncoding.DecodeString(text) // all its signs are of base64
	d := viewBuilder{of: v}
	for i := range plain {
		at := start + i*4/3
		d.put(string(plain[i:i+1]), at, min(end, at+2))
	}
	return d.view()
}

// hexRuns calls do for the decoded hex digits from start to end.
func hexRuns(v view, start, end int, do func(view)) {
	for i := start; i < end; {
		stop := i
		for stop < end && isHex(v.text[stop]) {
			stop++
		}
		if stop-i >= 2*leastKnown {
			do(hexView(v, i, stop))
			do(hexView(v, i+1, stop))
		}
		i = stop + 1
	}
}

func isHex(b byte) bool { return isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }

func hexView(v view, start, end int) view {
	d := viewBuilder{of: v}
	for i := start; i+2 <= end; i += 2 {
		n, _ := strconv.ParseUint(v.text[i:i+2], 16, 8) // both are digits
		d.put(string([]byte{byte(n)}), i, i+2)
	}
	return d.view()
}

// characters extends a range to whole characters.
func characters(text string, start, end int) (from, to int) {
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return start, end
}
