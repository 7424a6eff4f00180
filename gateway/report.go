package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/internal/plain"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// Failed reports whether the program did not do what it was to do.
func (e Execution) Failed() bool { return e.Status != sandbox.OK }

// Text is what a model reads of an execution: what was printed, the value, and
// if it failed why, where, and what to do about it. Nothing is said of what went well.
func (e Execution) Text() string {
	var parts []string
	if out := strings.TrimRight(e.Stdout.Text, "\n"); out != "" {
		parts = append(parts, out)
	}
	if value := e.valueText(len(parts) > 0); value != "" {
		parts = append(parts, value)
	}
	if errs := strings.TrimRight(e.Stderr.Text, "\n"); errs != "" {
		parts = append(parts, "stderr:\n"+errs)
	}
	if ending := e.ending(); ending != "" {
		parts = append(parts, ending)
	}
	if len(parts) == 0 {
		return "(no output: print something, or end with an expression)"
	}
	return strings.Join(parts, "\n")
}

// valueText marks the value only where something else was printed before it.
func (e Execution) valueText(marked bool) string {
	if e.Value == nil {
		return ""
	}
	text := valueString(*e.Value)
	if cut := e.Value.Size - int64(len(e.Value.Text)); cut > 0 {
		text += fmt.Sprintf("\n[... %d bytes cut ...]", cut)
	}
	if marked {
		return "=> " + text
	}
	return text
}

// valueString shows a string as it is, and all else as the guest described it.
func valueString(v bridge.Value) string {
	text := strings.ToValidUTF8(v.Text, "\uFFFD")
	if v.Kind == "json" && strings.HasPrefix(text, `"`) {
		if s, ok := unquote(text); ok {
			return s
		}
	}
	return text
}

// ending tells how the program ended, "" if it simply did.
func (e Execution) ending() string {
	switch e.Status {
	case sandbox.OK:
		return ""
	case sandbox.Failed:
		return faultText(e.Fault)
	case sandbox.Exited:
		return fmt.Sprintf("exited with status %d", e.Exit)
	case sandbox.TimedOut:
		return fmt.Sprintf("stopped: it ran longer than %g s. Do less at a time, or call tools in parallel.", e.Limits.Timeout.Seconds())
	case sandbox.OutOfMemory:
		return fmt.Sprintf("stopped: it used more than %d MiB of memory. Work on smaller pieces.", e.Limits.Memory>>20)
	case sandbox.Flooded:
		return fmt.Sprintf("stopped: it printed without end; only %d KiB are kept. Print what you need.", e.Limits.Output>>10)
	case sandbox.Canceled:
		return "canceled"
	default:
		return e.crash()
	}
}

func (e Execution) crash() string {
	if e.Exit > 128 {
		return fmt.Sprintf("the program's process was killed (signal %d) before it could report. Nothing more is known; try again.", e.Exit-128)
	}
	return "the sandbox died before the program ended. Try again; calls that it had made are not undone."
}

func faultText(f *bridge.Fault) string {
	if f == nil {
		return "failed"
	}
	var b strings.Builder
	b.WriteString(plain.Line(f.Type, 100))
	if message := plain.Text(f.Message, 4000); message != "" {
		b.WriteString(": " + message)
	}
	for _, line := range f.Lines[:min(len(f.Lines), 12)] {
		fmt.Fprintf(&b, "\n  line %d", line.Line)
		if function := plain.Line(line.Function, 60); function != "" {
			b.WriteString(" in " + function)
		}
		if source := plain.Line(line.Source, 160); source != "" {
			b.WriteString(": " + source)
		}
	}
	if hint := plain.Line(f.Hint, 500); hint != "" {
		b.WriteString("\nhint: " + hint)
	}
	return b.String()
}

// Text is what a model reads of a search.
func (f Found) Text() string {
	var b strings.Builder
	if len(f.Tools) == 0 && f.Total == 0 && len(f.Upstreams) > 0 && f.listing() {
		f.writeUpstreams(&b)
		b.WriteString("search_tools(upstream=NAME) lists the tools of one.")
		return b.String()
	}
	f.writeVerdict(&b)
	f.writeTools(&b)
	if more := f.Total - len(f.Tools); more > 0 && !f.Weak {
		fmt.Fprintf(&b, "(%d more match less well)\n", more)
	}
	for _, up := range f.Upstreams {
		fmt.Fprintf(&b, "(not searched: %s, %s)\n", up.ID, up.Problem)
	}
	return strings.TrimRight(b.String(), "\n")
}

// listing reports whether the answer is the list of all upstreams.
func (f Found) listing() bool {
	for _, up := range f.Upstreams {
		if up.Problem == "" {
			return true
		}
	}
	return false
}

func (f Found) writeUpstreams(b *strings.Builder) {
	for _, up := range f.Upstreams {
		fmt.Fprintf(b, "%s (%d tools)", up.ID, up.Tools)
		if up.Description != "" {
			b.WriteString(": " + up.Description)
		}
		if up.Problem != "" {
			b.WriteString(" [" + up.Problem + "]")
		}
		b.WriteString("\n")
	}
}

func (f Found) writeVerdict(b *strings.Builder) {
	switch {
	case len(f.Tools) == 0:
		b.WriteString("No tool matches.")
	case f.Weak:
		b.WriteString("No good match; closest:")
	default:
		return
	}
	if len(f.Suggest) > 0 {
		b.WriteString(" Did you mean: " + strings.Join(f.Suggest[:min(5, len(f.Suggest))], ", ") + "?")
	}
	if len(f.Tools) == 0 {
		b.WriteString(` search_tools("") lists the upstreams.`)
	}
	b.WriteString("\n")
}

// writeTools writes the hits in their order; those of one upstream that stand together share its import line.
func (f Found) writeTools(b *strings.Builder) {
	shared := ""
	for _, t := range f.Tools {
		mark := ""
		if t.Destructive {
			mark = " [destructive]"
		}
		switch f.Detail {
		case Names:
			fmt.Fprintf(b, "%s\n", t.ID)
		case Summary:
			fmt.Fprintf(b, "%s%s: %s\n", t.ID, mark, t.Summary)
		case Full:
			fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(t.Text)+mark)
		default:
			if header := f.importHeader(t); header != shared {
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

// importHeader is the import line of an upstream, for whichever tools are wanted.
func (f Found) importHeader(t FoundTool) string {
	return strings.Replace(t.Import, " "+t.ID.Name, " ...", 1)
}

func unquote(text string) (string, bool) {
	var s string
	err := json.Unmarshal([]byte(text), &s)
	return s, err == nil
}
