package gateway

import (
	"fmt"
	"strings"

	"sallyport/codegen"
	"sallyport/internal/plain"
)

// Text is what a model reads of a search.
func (f Found) Text() string {
	var b strings.Builder
	if f.listsUpstreams() {
		f.writeUpstreams(&b)
		return b.String()
	}
	f.writeVerdict(&b)
	f.writeTools(&b)
	if f.Offers != "" {
		b.WriteString(f.Offers + "\n")
	}
	switch more := f.Total - len(f.Tools); {
	case more <= 0 || f.Weak:
	case f.Listing:
		fmt.Fprintf(&b, "(%d more; raise limit, or give a query)\n", more)
	default:
		fmt.Fprintf(&b, "(%d more match less well)\n", more)
	}
	f.writeMissing(&b)
	return strings.TrimRight(b.String(), "\n")
}

func (f Found) listsUpstreams() bool { return f.Listing && f.Upstream == "" }

func (f Found) writeUpstreams(b *strings.Builder) {
	for _, up := range f.Upstreams {
		fmt.Fprintf(b, "%s (%d %s)", up.ID, up.Tools, plural(up.Tools))
		if up.Description != "" {
			b.WriteString(": " + up.Description)
		}
		if up.Problem != "" {
			b.WriteString(" [" + up.Problem + "]")
		}
		b.WriteString("\n")
	}
	if f.Problem != "" {
		fmt.Fprintf(b, "(the last edit of the settings is not in force: %s)\n", plain.Line(f.Problem, 2*maxProblem))
	}
	if len(f.Upstreams) == 0 {
		b.WriteString("There are no upstreams; the operator adds them to upstreams.yaml.")
		return
	}
	b.WriteString("search_tools(upstream=NAME) lists the tools of one; NAME sallyport: helpers for programs (emit, parallel, ...).")
}

func (f Found) writeVerdict(b *strings.Builder) {
	switch {
	case len(f.Tools) == 0 && f.Listing:
		b.WriteString("No tools.\n")
		return
	case len(f.Tools) == 0:
		b.WriteString("No tool matches.")
	case f.Weak:
		b.WriteString("No good match; closest:")
	default:
		return
	}
	if len(f.Suggest) > 0 {
		b.WriteString(" Did you mean: " + plain.Line(strings.Join(f.Suggest[:min(5, len(f.Suggest))], ", "), 200) + "?")
	}
	if len(f.Tools) == 0 {
		b.WriteString(` search_tools("") lists the upstreams.`)
	}
	b.WriteString("\n")
}

func plural(tools int) string {
	if tools == 1 {
		return "tool"
	}
	return "tools"
}

// maxProblem is how much is said about each upstream that is not there, in characters.
const maxProblem = 100

// writeMissing names the upstreams that are not there: a tool may be sought in
// vain because of that, or found and of no use.
func (f Found) writeMissing(b *strings.Builder) {
	for _, up := range f.Upstreams {
		what := "not searched"
		if up.Tools > 0 {
			what = "lost, a call connects again"
		}
		fmt.Fprintf(b, "(%s: %s, %s)\n", what, up.ID, plain.Line(up.Problem, maxProblem))
	}
}

// writeTools writes the hits in their order; those of one upstream that stand together share its import line.
func (f Found) writeTools(b *strings.Builder) {
	shared, explained := "", once{}
	for _, t := range f.Tools {
		mark := ""
		if t.Destructive {
			mark = " [destructive]"
		}
		switch f.Detail {
		case Names:
			fmt.Fprintf(b, "%s\n", t.ID)
		case Summary:
			fmt.Fprintf(b, "%s%s\n", t.ID, strings.TrimSuffix(mark+": "+t.Summary, ": "))
		case Full:
			fmt.Fprintf(b, "%s\n\n", explained.full(t, mark))
		default:
			if header := t.header(f.Language); header != shared {
				b.WriteString(header + "\n")
				shared = header
			}
			fmt.Fprintf(b, "  %s%s\n", strings.TrimPrefix(t.Text, t.ID.Upstream+"."), mark)
			if t.Summary != "" {
				fmt.Fprintf(b, "    %s\n", t.Summary)
			}
		}
	}
}

// header is the import line of an upstream, for whichever tools are wanted.
func (t FoundTool) header(language string) string {
	if language == string(codegen.TypeScript) {
		return strings.Replace(t.Import, "{ "+t.ID.Name+" }", "{ ... }", 1)
	}
	return strings.TrimSuffix(t.Import, " "+t.ID.Name) + " ..."
}
