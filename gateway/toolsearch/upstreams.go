package toolsearch

import (
	"fmt"
	"strings"

	"sallyport/internal/sanitize"
)

// descriptionLengths returns the maximum lengths of descriptions to try where all upstreams
// are listed, in characters.
func descriptionLengths() []int { return []int{120, 60, 30, 0} }

// fillUpstreams cuts the descriptions of the upstreams, and their number, to the budget.
func (l *layout) fillUpstreams() {
	all := l.found.Upstreams
	for _, length := range descriptionLengths() {
		l.found.Upstreams = truncateDescriptions(all, length)
		if l.count(l.found.Text()) <= l.budget {
			return
		}
	}
	// The names alone are too many.
	for n := len(all); n > 1 && l.count(l.found.Text()) > l.budget; {
		n = n * 9 / 10
		l.found.More = len(all) - n
		l.found.Upstreams = l.found.Upstreams[:n]
	}
}

func truncateDescriptions(all []FoundUpstream, length int) []FoundUpstream {
	cut := make([]FoundUpstream, len(all))
	for i, up := range all {
		cut[i] = up
		cut[i].Description, cut[i].Problem = shorten(up.Description, length), shorten(up.Problem, max(length, minProblem))
	}
	return cut
}

// minProblem is the minimum length of a shortened problem, in characters.
const minProblem = 40

func shorten(text string, length int) string {
	if length == 0 {
		return ""
	}
	return sanitize.Line(text, length)
}

func (f Found) writeUpstreams(b *strings.Builder) {
	if f.Unknown != "" {
		b.WriteString(f.noUpstream(""))
	}
	for _, up := range f.Upstreams {
		held := ""
		if up.Held > 0 {
			held = fmt.Sprintf(", %d quarantined", up.Held)
		}
		fmt.Fprintf(b, "%s (%d %s%s)", up.ID, up.Tools, plural(up.Tools), held)
		if up.Description != "" {
			b.WriteString(": " + up.Description)
		}
		if up.Problem != "" {
			b.WriteString(" [" + up.Problem + "]")
		}
		b.WriteString("\n")
	}
	if f.More > 0 {
		fmt.Fprintf(b, "(%d more upstreams; every query searches them too)\n", f.More)
	}
	if f.Problem != "" {
		fmt.Fprintf(b, "(the last edit of the settings is not in force: %s)\n", sanitize.Line(f.Problem, 2*maxProblem))
	}
	if len(f.Upstreams) == 0 {
		b.WriteString("No upstreams; the operator adds them to upstreams.yaml.")
		return
	}
	b.WriteString("search_tools(upstream=NAME) lists the tools of one; NAME sallyport: helpers for programs (emit, parallel, ...).")
}
