package catalog

import (
	"regexp"
	"strings"

	"sallyport/internal/sanitize"
)

const (
	// SummaryLength is the maximum length of a tool's summary, in characters.
	SummaryLength = 120
	// maxOpening is how much of a description is searched for a sentence, in characters.
	maxOpening = 500
	// minSpaces is how many spaces a line has at least that is not a heading.
	minSpaces = 2
)

var (
	// sentenceEnd is a full stop before what looks like a new sentence: not one in "e.g. files".
	sentenceEnd = regexp.MustCompile(`[^. ]{2,}\)?(\.) +[^a-z ]`)
	// lineEnd is the end of a line where no sentence continues: a blank line, a list, a heading or a section on parameters or results follows.
	lineEnd = regexp.MustCompile(`[\pL\pN.)]( *\n\s*(\n|[-*#•]|[A-Z][A-Za-z ]{2,20}:))`)
	// link is a Markdown link.
	link = regexp.MustCompile(`\[([^\[\]\n]{1,80})\]\([^()\s]*\)`)
)

// FirstSentence returns the first sentence of a description, or of the title if the description is empty.
func FirstSentence(description, title string) string {
	description = sanitize.Text(description, maxOpening)
	if end := lineEnd.FindStringSubmatchIndex(description); end != nil && strings.Count(description[:end[2]], " ") >= minSpaces {
		description = description[:end[2]]
	}
	text := sanitize.Line(description, maxOpening)
	if text == "" {
		text = sanitize.Line(title, maxOpening)
	}
	text = link.ReplaceAllString(text, "$1")
	if end := sentenceEnd.FindStringSubmatchIndex(text); end != nil {
		text = text[:end[2]]
	}
	return strings.TrimSuffix(sanitize.Line(text, SummaryLength), ".")
}
