package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/internal/sanitize"
)

// Activity is what happens: programs, and what they leave behind.
type Activity interface {
	Records
	Skills
	// AuditLog is for operators only.
	AuditLog(ctx context.Context, filter auditor.Filter) (auditor.Page, error)
}

// Span is where something stands on a line of time, in percent of all of it.
type Span struct{ X, Width float64 }

// span places something on a line that begins at a time and is so long. What is short is wide enough to be seen.
func span(start time.Time, total time.Duration, began, ended time.Time) Span {
	if total <= 0 {
		return Span{0, 100}
	}
	part := func(t time.Time) float64 { return min(max(100*float64(t.Sub(start))/float64(total), 0), 100) }
	s := Span{X: min(part(began), 100-thinnest)}
	s.Width = max(part(ended)-s.X, thinnest)
	return s
}

// thinnest is the narrowest bar, in percent.
const thinnest = 0.6

// offset is a time since the beginning of something, in words.
func offset(start, t time.Time) string {
	if t.IsZero() || start.IsZero() {
		return ""
	}
	return "+" + duration(max(t.Sub(start), 0))
}

// Line is a line of a program.
type Line struct {
	Text string
	// Failed says that the program failed here.
	Failed bool
}

const (
	// maxLines is how many lines of a program are shown, maxLine how long one may be, in characters.
	maxLines, maxLine = 2000, 1000
)

// Source is a program as it is shown: nothing in it hides.
type Source struct {
	// Label says what it is.
	Label string
	Lines []Line
	// More is how many lines are not shown.
	More int
}

// source makes lines of a program, of which one may be where it failed.
func source(label, code string, failed int) Source {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(code, "\r\n", "\n"), "\n"), "\n")
	s := Source{Label: label, More: max(0, len(lines)-maxLines)}
	for i, line := range lines[:len(lines)-s.More] {
		s.Lines = append(s.Lines, Line{visible(line, maxLine), i+1 == failed})
	}
	return s
}

// visible is one line of text in which every character that does not show is written out; of a long one the beginning.
func visible(line string, most int) string {
	var b strings.Builder
	n := 0
	for _, c := range strings.ToValidUTF8(line[:min(len(line), 4*most)], "\uFFFD") {
		if n++; n > most {
			b.WriteString("…")
			break
		}
		if c != '\t' && sanitize.Hidden(c) {
			fmt.Fprintf(&b, "‹U+%04X›", c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// maxWords is how much of one text is shown, in bytes.
const maxWords = 64 << 10

// words is text of several lines, made visible; of a long one the beginning. What is JSON is put in lines.
func words(text string) string {
	var pretty bytes.Buffer
	if len(text) <= maxWords && json.Valid([]byte(text)) && json.Indent(&pretty, []byte(text), "", "  ") == nil {
		text = pretty.String()
	}
	lines := strings.Split(strings.ReplaceAll(text[:min(len(text), maxWords)], "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = visible(lines[i], maxWords)
	}
	return strings.Join(lines, "\n")
}
