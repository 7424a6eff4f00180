package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is shown as Markdown or as plain text. A cell in ** is one that stands out.
type table struct {
	title string
	// note is below the title: a paragraph, or a list.
	note string
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// markdown has the first column to the left, all others to the right.
func (t *table) markdown() string {
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "### %s\n", t.title)
	}
	if t.note != "" {
		fmt.Fprintf(&b, "%s\n", t.note)
	}
	if len(t.rows) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\n| %s |\n| --- |%s\n", strings.Join(t.head, " | "), strings.Repeat(" ---: |", len(t.head)-1))
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// text marks what stands out with an asterisk.
func (t *table) text() string {
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "%s\n", t.title)
	}
	if t.note != "" {
		fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(t.note, "**", ""))
	}
	if len(t.rows) == 0 {
		return b.String()
	}
	widths := t.widths()
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(unmarked(cell)))
			if i == 0 {
				b.WriteString("  " + unmarked(cell) + pad)
				continue
			}
			b.WriteString("  " + pad + unmarked(cell))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(unmarked(cell)))
		}
	}
	return widths
}

// unmarked returns a cell without the ** of bold text, which gets a trailing asterisk instead.
func unmarked(cell string) string {
	var b strings.Builder
	for i, part := range strings.Split(cell, "**") {
		b.WriteString(part)
		if i%2 == 1 {
			b.WriteByte('*')
		}
	}
	return b.String()
}

// number writes 1234567 as 1,234,567.
func number[N int | float64](n N) string {
	digits := fmt.Sprintf("%.0f", float64(n))
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// savedPercent returns the saving of b over a, in percent; a loss is bold.
func savedPercent(a, b float64) string {
	if a == 0 {
		return ""
	}
	percent := 100 * (1 - b/a)
	text := fmt.Sprintf("%.0f %%", percent)
	if percent > 99 {
		text = fmt.Sprintf("%.1f %%", percent) // it is never 100 %
	}
	if percent < 0 {
		return "**" + text + "**"
	}
	return text
}

// joinWords joins names as in a sentence.
func joinWords(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
