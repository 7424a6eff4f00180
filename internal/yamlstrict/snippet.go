package yamlstrict

import (
	"fmt"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"

	"sallyport/internal/sanitize"
)

// maxWidth is how many columns of a source line are shown.
const maxWidth = 100

// snippet shows a source line with its number and a caret under a column,
// counted in runes from 1. Tabs stay, and stand before the caret too, so that
// both lines move alike; what a terminal would not show is shown as "\ufffd".
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

// window chooses which runes of a line to show: all, or those around at.
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

// blank is as wide as r.
func blank(r rune) string {
	if r == '\t' {
		return "\t"
	}
	return strings.Repeat(" ", width(r))
}

// width is how many columns of a terminal r takes.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me) || r == '\u200c' || r == '\u200d':
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wide holds for East Asian wide characters, emoji among them.
func wide(r rune) bool {
	kind := eastasian.LookupRune(r).Kind()
	return kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth
}
