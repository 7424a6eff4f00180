package doc

import (
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Texts are what one benchmark writes: where Sallyport loses and a summary, on the page
// of all benchmarks, and all tables, on a page of its own.
type Texts struct{ Losses, Summary, Tables string }

// Write wraps the texts and writes them into folder: into benchmarks.md between the marks
// NAME-losses and NAME, and into benchmarks/NAME.md between the marks NAME.
func (t Texts) Write(folder, name string) error {
	t = t.Wrapped()
	index, page := pages(folder, name)
	return errors.Join(Replace(index, name+"-losses", t.Losses), Replace(index, name, t.Summary), Replace(page, name, t.Tables))
}

// ReadTexts returns the texts that [Texts.Write] wrote.
func ReadTexts(folder, name string) (t Texts, err error) {
	index, page := pages(folder, name)
	var errs [3]error
	t.Losses, errs[0] = Section(index, name+"-losses")
	t.Summary, errs[1] = Section(index, name)
	t.Tables, errs[2] = Section(page, name)
	return t, errors.Join(errs[:]...)
}

func pages(folder, name string) (index, page string) {
	return filepath.Join(folder, "benchmarks.md"), filepath.Join(folder, "benchmarks", name+".md")
}

// Wrapped returns the texts as they are written.
func (t Texts) Wrapped() Texts {
	return Texts{wrap(t.Losses), wrap(t.Summary), wrap(t.Tables)}
}

// width is the longest line of a document, in characters; rows of tables may be longer.
const width = 120

// wrap breaks the lines of a text at width, except headings, rows of tables and images.
func wrap(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		lines = append(lines, wrapLine(line)...)
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string) (lines []string) {
	for _, prefix := range []string{"|", "#", "!["} {
		if strings.HasPrefix(line, prefix) {
			return []string{line}
		}
	}
	indent := ""
	if strings.HasPrefix(line, "- ") {
		indent = "  "
	}
	current := ""
	for word := range strings.FieldsSeq(line) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width:
			lines, current = append(lines, current), indent+word
		default:
			current += " " + word
		}
	}
	return append(lines, current)
}
