package toolsearch

import (
	"cmp"
	"fmt"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/index"
	"sallyport/internal/sanitize"
)

// Text returns the result of a search as text for a model.
func (f Found) Text() string {
	var b strings.Builder
	if f.listsUpstreams() {
		f.writeUpstreams(&b)
		return b.String()
	}
	b.WriteString(f.verdict())
	w := newToolWriter(f)
	for _, t := range f.Tools {
		b.WriteString(w.text(t))
	}
	b.WriteString(w.end())
	b.WriteString(f.footer(len(f.Tools)))
	return strings.TrimRight(b.String(), "\n")
}

func (f Found) listsUpstreams() bool { return f.Listing && f.Upstream == "" }

// verdict returns the line above the hits if there is no good match.
func (f Found) verdict() string {
	switch {
	case len(f.Tools) == 0 && f.Listing:
		return "No tools.\n"
	case len(f.Tools) == 0 && len(f.Quarantined) > 0:
		return ""
	case len(f.Tools) == 0 && f.Upstream != "":
		return "No tool of " + f.Upstream + " matches." + f.suggestion() + " Leave out upstream to search all, or query to list its tools.\n"
	case len(f.Tools) == 0 && len(f.Likely) > 0:
		return "No tool matches." + f.suggestion() + "\n"
	case len(f.Tools) == 0:
		return "No tool matches." + f.suggestion() + " search_tools(\"\") lists the upstreams.\n"
	case f.Weak:
		return "Not sure: try other words" + f.narrower() + "." + f.suggestion() + " Closest:\n"
	case f.Confidence == Medium:
		return perhaps
	}
	return ""
}

// narrower names the upstreams to search instead, where some look right.
func (f Found) narrower() string {
	likely := f.Likely[:min(len(f.Likely), maxLikely)]
	if len(likely) == 0 {
		return ""
	}
	text := ", or upstream:" + likely[0]
	if len(likely) > 1 {
		text += " (" + strings.Join(likely[1:], ", ") + ")"
	}
	return text
}

// perhaps is the line above hits of medium confidence.
const perhaps = "Perhaps:\n"

func (f Found) suggestion() string {
	if len(f.Suggest) == 0 {
		return ""
	}
	return " Did you mean: " + sanitize.Line(strings.Join(f.Suggest[:min(5, len(f.Suggest))], ", "), 200) + "?"
}

const (
	// maxLikely is how many likely upstreams are named.
	maxLikely = 4
	// maxHeldRank is how many of the first hits are reported if they are quarantined.
	maxHeldRank = 5
	// maxUnknown is how much of the name of an unknown upstream is repeated, in characters.
	maxUnknown = 40
)

// footer returns the lines below that many hits.
func (f Found) footer(hits int) string {
	var b strings.Builder
	if likely := f.Likely[:min(len(f.Likely), maxLikely)]; len(likely) > 0 && hits == 0 {
		fmt.Fprintf(&b, "Upstreams that look right: %s.\n", strings.Join(likely, ", "))
	}
	if f.Offers != "" {
		b.WriteString(f.Offers + "\n")
	}
	switch more := f.Total - hits; {
	case more <= 0 || f.Weak || f.settled:
	case f.Listing:
		fmt.Fprintf(&b, "(%d more; give a query)\n", more)
	default:
		fmt.Fprintf(&b, "(%d more)\n", more)
	}
	if f.Unknown != "" {
		b.WriteString(f.noUpstream("; all were searched"))
	}
	b.WriteString(f.refusedLine())
	for _, h := range f.Quarantined {
		if h.Reason == guard.ReasonDenied {
			continue
		}
		why := catalog.WhyHeld(h.Reason) + "; an operator must approve it"
		fmt.Fprintf(&b, "(%s [quarantined]: %s)\n", h.ID, cmp.Or(h.Rejected, why))
	}
	f.writeMissing(&b)
	return b.String()
}

// refusedLine returns a line with the tools that the policy refuses, so that a model stops looking for them.
func (f Found) refusedLine() string {
	var ids []string
	for _, h := range f.Quarantined {
		if h.Reason == guard.ReasonDenied {
			ids = append(ids, h.ID.String())
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "(refused by policy: " + strings.Join(ids, ", ") + ")\n"
}

// noUpstream says that the upstream that the query names does not exist.
func (f Found) noUpstream(more string) string {
	return "(no upstream " + sanitize.Line(f.Unknown, maxUnknown) + more + ")\n"
}

func plural(tools int) string {
	if tools == 1 {
		return "tool"
	}
	return "tools"
}

const (
	// maxProblem is how much of the problem of each unavailable upstream is shown, in characters.
	maxProblem = 100
	// maxMissing is how many of them are listed with the reason, maxMissingNamed how many more by name.
	maxMissing, maxMissingNamed = 3, 10
)

// writeMissing names the unavailable upstreams: their tools may not be found, or
// their calls may fail.
func (f Found) writeMissing(b *strings.Builder) {
	for _, up := range f.Upstreams[:min(len(f.Upstreams), maxMissing)] {
		what := "not searched"
		if up.Tools > 0 {
			what = "lost, a call connects again"
		}
		fmt.Fprintf(b, "(%s: %s, %s)\n", what, up.ID, sanitize.Line(up.Problem, maxProblem))
	}
	if len(f.Upstreams) <= maxMissing {
		return
	}
	var names []string
	for _, up := range f.Upstreams[maxMissing:] {
		names = append(names, up.ID)
	}
	more := ""
	if len(names) > maxMissingNamed {
		more, names = fmt.Sprintf(" and %d more", len(names)-maxMissingNamed), names[:maxMissingNamed]
	}
	fmt.Fprintf(b, "(not available either: %s%s)\n", strings.Join(names, ", "), more)
}

// toolWriter writes hits one after the other: adjacent hits of one upstream share its
// import line, and hits without details share one line. A copy continues independently.
type toolWriter struct {
	detail       Detail
	language     string
	header       string // the current import line
	lastUpstream string // the last upstream in the line of names, "" before that line
	started      bool   // something precedes that line
	explained    *parameterDedup
}

func newToolWriter(f Found) toolWriter {
	return toolWriter{detail: f.Detail, language: f.Language}
}

// text returns the next hit.
func (w *toolWriter) text(t FoundTool) string {
	level := cmp.Or(t.Shown, w.detail)
	if level == Names {
		return w.id(t)
	}
	w.started = true
	switch level {
	case Summary:
		w.header = ""
		return strings.TrimSuffix(t.name()+t.mark()+": "+t.Summary, ": ") + "\n"
	case Full:
		if w.explained == nil {
			w.explained = &parameterDedup{}
		}
		return w.explained.full(t, t.mark()) + "\n\n"
	}
	if t.Repeated {
		return w.importLine(t) + "  " + t.ID.Name + t.mark() + ": shown above\n"
	}
	var b strings.Builder
	b.WriteString(w.importLine(t) + "  " + strings.TrimPrefix(t.Text, t.ID.Upstream+".") + t.mark() + "\n")
	if t.Summary != "" {
		b.WriteString("    " + t.Summary + "\n")
	}
	for _, note := range t.Notes {
		b.WriteString("    " + note + "\n")
	}
	return b.String()
}

// importLine returns the import line for a hit, "" if it is the current one.
func (w *toolWriter) importLine(t FoundTool) string {
	header := t.header(w.language)
	if header == w.header {
		return ""
	}
	w.header = header
	return header + "\n"
}

// id returns a hit without details: on a line of its own where only ids
// were asked for, else on one line with all of them, "also git: log, add; github: fork".
func (w *toolWriter) id(t FoundTool) string {
	if w.detail == Names {
		return t.name() + "\n"
	}
	before, name := w.lastUpstream, strings.TrimPrefix(t.name(), t.ID.Upstream+".")
	w.lastUpstream = t.ID.Upstream
	switch {
	case before == t.ID.Upstream:
		return ", " + name
	case before != "":
		return "; " + t.ID.Upstream + ": " + name
	case w.started:
		return "also " + t.ID.Upstream + ": " + name
	}
	return t.ID.Upstream + ": " + name
}

// end returns the end of the line of names.
func (w *toolWriter) end() string {
	if w.lastUpstream != "" {
		return "\n"
	}
	return ""
}

// mark returns the warnings about a tool in brackets.
func (t FoundTool) mark() string {
	var words []string
	if t.Destructive {
		words = append(words, "destructive")
	}
	switch t.Policy {
	case "ask":
		words = append(words, "needs approval")
	case "deny":
		words = append(words, "refused by policy")
	}
	if len(words) == 0 {
		return ""
	}
	return " [" + strings.Join(words, ", ") + "]"
}

// name returns the id, or for other kinds the call with which a program reaches it.
func (t FoundTool) name() string {
	if isOffer(t.Kind) {
		return t.ID.Upstream + "." + offerCall(t.Kind, t.ID.Name)
	}
	return t.ID.String()
}

// isOffer reports whether a hit is a resource, a template or a prompt of an upstream.
func isOffer(kind index.Kind) bool {
	return kind == index.Resource || kind == index.Template || kind == index.Prompt
}

// header returns the import line of an upstream, with ... for the names.
func (t FoundTool) header(language string) string {
	if t.Kind != index.Tool && t.Kind != index.Function {
		return t.Import // the same for all of its kind
	}
	if language == string(codegen.TypeScript) {
		return strings.Replace(t.Import, "{ "+t.ID.Name+" }", "{ ... }", 1)
	}
	return strings.TrimSuffix(t.Import, " "+t.ID.Name) + " ..."
}
