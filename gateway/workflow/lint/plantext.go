package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
)

// maxShown limits a value in a line, in characters.
const maxShown = 160

// compact returns a value in one line: a string unquoted, others as JSON.
func compact(v any) string {
	text, err := expr.Text(v)
	if err != nil {
		return ""
	}
	return sanitize.Line(text, maxShown)
}

// Text formats the plan: a line for each step, with its arguments and policy decision below.
func (p Planned) Text() string {
	var out strings.Builder
	out.WriteString(p.Workflow)
	if len(p.Inputs) > 0 {
		out.WriteString(", with")
	}
	out.WriteString("\n")
	writeMembers(&out, "  ", p.Inputs)
	out.WriteString("\n")
	t := tally{}
	t.steps(&out, "", p.Steps)
	if len(p.Outputs) > 0 {
		out.WriteString("\noutputs\n")
		writeMembers(&out, "  ", p.Outputs)
	}
	out.WriteString("\n" + t.String() + "\n")
	return out.String()
}

func writeMembers(out *strings.Builder, indent string, members map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		text := compact(value)
		if value == nil {
			text = "null"
		}
		fmt.Fprintf(out, "%s%s: %s\n", indent, sanitize.Line(name, maxShown), text)
	}
}

// tally counts the calls by policy decision.
type tally struct{ calls, asked, denied, unsure, failing int }

func (t *tally) String() string {
	parts := []string{times(t.calls, "call") + " of tools"}
	for _, one := range []struct {
		n    int
		what string
	}{{t.asked, "with approval"}, {t.denied, "denied"}, {t.unsure, "not certain before the run"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if t.failing > 0 {
		parts = append(parts, times(t.failing, "step")+" would fail")
	}
	return strings.Join(parts, ", ")
}

func (t *tally) steps(out *strings.Builder, indent string, steps []PlannedStep) {
	for _, s := range steps {
		t.step(out, indent, s)
	}
}

func (t *tally) step(out *strings.Builder, indent string, s PlannedStep) {
	fmt.Fprintf(out, "%s%s\n", indent, s.head())
	inner := indent + "    "
	if s.Skipped {
		return
	}
	if with, ok := s.With.(map[string]any); ok {
		writeMembers(out, inner, with)
	} else if s.With != nil {
		fmt.Fprintf(out, "%s%s\n", inner, compact(s.With))
	}
	if s.Kind == "tool" {
		t.calls++
	}
	if text := t.verdict(s.Verdict); text != "" {
		fmt.Fprintf(out, "%s> %s\n", inner, text)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "%s(%s)\n", inner, note)
	}
	if s.Problem != "" {
		t.failing++
		fmt.Fprintf(out, "%s! fails: %s\n", inner, sanitize.Line(s.Problem, 2*maxShown))
	}
	t.steps(out, indent+"  ", s.Steps)
}

// head returns the line of a step: "id: tool files.list", and the condition.
func (s PlannedStep) head() string {
	text := s.Path[strings.LastIndexByte(s.Path, '.')+1:]
	if s.Kind != "block" {
		text += ": " + s.Kind
		if s.What != "" {
			text += " " + sanitize.Line(s.What, maxShown)
		}
	}
	if s.Skipped {
		text += ", left out"
	}
	if s.If != "" {
		text += ", if " + sanitize.Line(s.If, maxShown)
	}
	return text
}

func (t *tally) verdict(v *Verdict) string {
	if v == nil {
		return ""
	}
	text := ""
	switch v.Action {
	case policy.Ask:
		t.asked++
		text = "needs approval"
	case policy.Deny:
		t.denied++
		text = "denied"
	}
	if v.Unsure {
		t.unsure++
		text = or(text, "allowed") + ", by the arguments known so far"
	}
	if text == "" || v.Rule == "" {
		return text
	}
	return text + " (" + sanitize.Line(v.Rule, 80) + ")"
}
