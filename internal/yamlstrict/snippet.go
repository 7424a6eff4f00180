package yamlstrict

import (
	"fmt"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"

	"sallyport/internal/sanitize"
)

// maxWidth bounds the columns of a source line that are shown.
const maxWidth = 100

// snippet returns a source line with its number and a caret under a column, counted in runes from 1. Tabs are
// repeated before the caret so that both lines align; invisible characters are shown as "\ufffd".
func snippet(number int, line string, column int) string {
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	from, to := window(runes, at)
	gutter := fmt.Sprintf("%3d | ", number)
	var text, pad strings.Builder
	text.WriteString(gutter)
	pad.WriteString(strings.Repeat(" ", len(gutter)))
	if from > 0 {
		text.WriteString("…")
		pad.WriteString(" ")
	}
	for i, r := range runes[from:to] {
		text.WriteRune(visible(r))
		if from+i < at {
			pad.WriteString(blank(r))
		}
	}
	if to < len(runes) {
		text.WriteString("…")
	}
	return text.String() + "\n" + pad.String() + "^"
}

// window returns the range of runes of a line to show: all, or those around at.
func window(line []rune, at int) (from, to int) {
	if widthOf(line) <= maxWidth {
		return 0, len(line)
	}
	from, to = at, at
	for room := maxWidth / 2; from > 0 && room > 0; from-- {
		room -= width(line[from-1])
	}
	for room := maxWidth - widthOf(line[from:at]); to < len(line) && room > 0; to++ {
		room -= width(line[to])
	}
	return from, to
}

func widthOf(line []rune) int {
	sum := 0
	for _, r := range line {
		sum += width(r)
	}
	return sum
}

func visible(r rune) rune {
	if r != '\t' && sanitize.Hidden(r) {
		return unicode.ReplacementChar
	}
	return r
}

// blank returns white space as wide as r.
func blank(r rune) string {
	if r == '\t' {
		return "\t"
	}
	return strings.Repeat(" ", width(r))
}

// width returns the number of terminal columns of r.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me) || r == '\u200c' || r == '\u200d':
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wide reports whether r is an East Asian wide character or emoji.
func wide(r rune) bool {
	kind := eastasian.LookupRune(r).Kind()
	return kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth
}
