package flowgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// node is an argument to write: an expression, a text with expressions, a constant, a list or an object.
type node struct {
	expr     string
	parts    []piece
	constant *constant
	items    []node
	members  []namedNode
}

type namedNode struct {
	name string
	node
}

// maxShown limits the lines of the program that a draft shows.
const maxShown = 80

// piiToken matches a token of personal data, which is valid in one session only.
var piiToken = regexp.MustCompile(`\[[A-Z]+(_\d+)+\]`)

// write writes the definition.
func (d *drafter) write() string {
	var b strings.Builder
	d.writeHeader(&b)
	d.writeInputs(&b)
	last := d.steps[len(d.steps)-1]
	fmt.Fprintf(&b, "outputs:\n  result: {value: %s}\n\nsteps:\n", yamlText("${{ steps."+last.id+".output }}"))
	for i, s := range d.steps {
		if i > 0 {
			b.WriteString("\n")
		}
		d.writeStep(&b, s)
	}
	return b.String()
}

// writeHeader writes the comment at the top: the origin and the limitations of the draft.
func (d *drafter) writeHeader(b *strings.Builder) {
	fmt.Fprintf(b, "# A draft from execution %s on %s. Review it before you run it.\n", d.done.ID, d.done.Started.UTC().Format("2006-01-02"))
	b.WriteString("# It makes the calls of the program, in order. Computations between them are not visible: where a value\n" +
		"# below was computed from results, write an expression or a code step. Conditions and loop ends are not visible either.\n")
	for _, part := range []struct {
		what  string
		calls []string
	}{{"Left out, because they failed and the program continued: ", d.failed}, {"Results too large to be stored, so not used: ", d.lost}} {
		if len(part.calls) > 0 {
			fmt.Fprintf(b, "# %s%s.\n", part.what, sanitize.Line(strings.Join(part.calls, "; "), 400))
		}
	}
	if slices.ContainsFunc(d.calls, func(c *call) bool { return piiToken.MatchString(c.arguments.raw) }) {
		b.WriteString("# Some constants have tokens of personal data, such as [EMAIL_1], which are invalid in another session: replace them.\n")
	}
	d.showProgram(b)
	fmt.Fprintf(b, "name: %s\ndescription: %s\n\n", d.name(), yamlText(d.description()))
}

func (d *drafter) showProgram(b *strings.Builder) {
	b.WriteString("#\n# The program:\n")
	n := 0
	for line := range strings.Lines(d.done.Code) {
		if n++; n > maxShown {
			b.WriteString("#   (the rest is left out)\n")
			break
		}
		rest := strings.TrimLeft(line, " ")
		b.WriteString(strings.TrimRight("#   "+strings.Repeat(" ", min(len(line)-len(rest), 40))+sanitize.Line(rest, 200), " ") + "\n")
	}
	b.WriteString("\n")
}

// name returns a unique workflow name.
func (d *drafter) name() string {
	return "draft_" + invalidNameChars.ReplaceAllString(strings.ToLower(strings.TrimPrefix(d.done.ID, "e-")), "_")
}

func (d *drafter) description() string {
	var names []string
	for _, c := range d.calls {
		if name := c.tool.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return sanitize.Line("Calls "+strings.Join(names, ", "), 200)
}

func (d *drafter) writeInputs(b *strings.Builder) {
	first := true
	for _, c := range d.inputs.order {
		if c.name == "" {
			continue
		}
		if first {
			b.WriteString("inputs:\n")
			first = false
		}
		fmt.Fprintf(b, "  %s: {type: %s, default: %s} # %s\n", c.name, c.schemaType(), flow(c.value), sanitize.Line(c.origin(), 120))
	}
	if !first {
		b.WriteString("\n")
	}
}

// origin describes the origin of a constant.
func (c *constant) origin() string {
	if c.variable != "" {
		return "a variable of the program"
	}
	return c.param + " of " + strings.Join(c.steps, ", ")
}

func (d *drafter) writeStep(b *strings.Builder, s *step) {
	indent := "  "
	fmt.Fprintf(b, "  - id: %s\n", s.id)
	if s.loop != nil {
		fmt.Fprintf(b, "    for_each: %s\n    steps:\n      - id: %s\n", d.loopList(s), s.loop.inner)
		indent = "      "
	}
	if what := d.toolWarning(s.tool); what != "" {
		fmt.Fprintf(b, "%s  # %s\n", indent, what)
	}
	fmt.Fprintf(b, "%s  tool: %s\n", indent, s.tool)
	if len(s.with.members) > 0 {
		fmt.Fprintf(b, "%s  with:\n", indent)
		for _, m := range s.with.members {
			fmt.Fprintf(b, "%s    %s: %s\n", indent, yamlKey(m.name), m.yaml())
		}
	}
}

// loopList returns the list of a loop as YAML.
func (d *drafter) loopList(s *step) string {
	if s.loop.expr != "" {
		return yamlText("${{ " + s.loop.expr + " }}")
	}
	for _, c := range d.inputs.order {
		if c.list && slices.Contains(c.steps, s.id) {
			return node{constant: c}.yaml()
		}
	}
	return "[]"
}

// toolWarning returns a warning about a tool that is missing or may write; "" for none, or if the tools are unknown.
func (d *drafter) toolWarning(id tool.ID) string {
	t, there := d.tools[id]
	switch readOnly := t.Annotations.ReadOnly; {
	case len(d.tools) == 0:
		return ""
	case !there:
		return "this tool is missing now"
	case readOnly == nil || !*readOnly:
		return "it may change something"
	}
	return ""
}

// yaml writes a node on one line.
func (n node) yaml() string {
	switch {
	case n.expr != "":
		return yamlText("${{ " + n.expr + " }}")
	case n.parts != nil:
		return joinText(n.parts)
	case n.constant != nil && n.constant.name != "":
		return yamlText("${{ inputs." + n.constant.name + " }}")
	case n.constant != nil && n.constant.parts != nil:
		return joinText(n.constant.parts)
	case n.constant != nil:
		return flow(n.constant.value)
	case n.items != nil:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.yaml()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	parts := make([]string, len(n.members))
	for i, m := range n.members {
		parts[i] = yamlKey(m.name) + ": " + m.yaml()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// joinText returns a text with expressions as YAML.
func joinText(parts []piece) string {
	var b strings.Builder
	for _, p := range parts {
		if p.expr != "" {
			b.WriteString("${{ " + p.expr + " }}")
		} else {
			b.WriteString(escape(p.text))
		}
	}
	return quote(b.String())
}

// flow returns a value as YAML on one line.
func flow(v value) string {
	switch v.kind {
	case '"':
		return yamlText(escape(v.text))
	case '[':
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = flow(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case '{':
		parts := make([]string, len(v.members))
		for i, m := range v.members {
			parts[i] = yamlKey(m.name) + ": " + flow(m.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.raw
}

// escape escapes expression delimiters in a text.
func escape(text string) string { return strings.ReplaceAll(text, "${{", "$${{") }

// plainText matches texts that never need quotes in YAML.
var plainText = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// yamlText returns a text as YAML: plain, or quoted as in JSON.
func yamlText(text string) string {
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return quote(text)
	}
	if plainText.MatchString(text) {
		return text
	}
	return quote(text)
}

// yamlKey returns the name of a member as YAML.
func yamlKey(name string) string { return yamlText(name) }
