package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
)

// Activity has executions, skills and the audit log.
type Activity interface {
	Records
	Skills
	// AuditLog is for operators only.
	AuditLog(ctx context.Context, filter auditor.Filter) (auditor.Page, error)
	// VerifyAudit verifies the whole log.
	VerifyAudit(ctx context.Context) (audit.Report, error)
	// VerifyChains verifies the copies of the logs of all gateways that share the store; none without such a store.
	VerifyChains(ctx context.Context) ([]audit.Verified, error)
}

// Span is a position on a timeline, in percent of its length.
type Span struct{ X, Width float64 }

// span returns the position of an interval on a timeline. Short intervals get a visible minimum width.
func span(start time.Time, total time.Duration, began, ended time.Time) Span {
	if total <= 0 {
		return Span{0, 100}
	}
	part := func(t time.Time) float64 { return min(max(100*float64(t.Sub(start))/float64(total), 0), 100) }
	s := Span{X: min(part(began), 100-minWidth)}
	s.Width = max(part(ended)-s.X, minWidth)
	return s
}

// minWidth is the narrowest bar, in percent.
const minWidth = 0.6

// offset formats the time since a start.
func offset(start, t time.Time) string {
	if t.IsZero() || start.IsZero() {
		return ""
	}
	return "+" + duration(max(t.Sub(start), 0))
}

// Line is a line of a program.
type Line struct {
	Text string
	// Failed says that the program failed here, Marked that it may make the call that the page is about.
	Failed, Marked bool
}

const (
	// maxLines is the maximum number of shown lines of a program, maxLine the maximum length of one, in characters.
	maxLines, maxLine = 2000, 1000
)

// Source is a program for display, with invisible characters made visible.
type Source struct {
	// Label is its title.
	Label string
	Lines []Line
	// More is the number of lines that are not shown.
	More int
}

// source splits a program into lines and marks the failed one, 0 for none.
func source(label, code string, failed int) Source {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(code, "\r\n", "\n"), "\n"), "\n")
	s := Source{Label: label, More: max(0, len(lines)-maxLines)}
	for i, line := range lines[:len(lines)-s.More] {
		s.Lines = append(s.Lines, Line{Text: visible(line, maxLine), Failed: i+1 == failed})
	}
	return s
}

// visible returns a line of text, truncated, with invisible characters written out.
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

// maxWords is the maximum length of a shown text, in bytes.
const maxWords = 64 << 10

// prettyText returns a text of several lines, truncated, with invisible characters written out and JSON indented.
func prettyText(text string) string {
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
