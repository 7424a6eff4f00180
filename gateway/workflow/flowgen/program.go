package flowgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/history"
	"sallyport/internal/tool"
)

// Program returns a definition with that name and description, and one step that runs the program of an execution unchanged. The name
// is not checked. Errors are *tool.Error.
func Program(done history.Record, name, description string) ([]byte, error) {
	d := newDrafter(history.Succeeded{Record: done}, nil)
	if len(done.Code) > maxProgram {
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the program has more than %d KiB", maxProgram>>10), Hint: "a step of a workflow can have no larger one"}
	}
	return d.writeProgram(fmt.Sprintf("# The program of execution %s.", done.ID), quote(name), description), nil
}

// program returns a draft with one step that runs the program unchanged.
func (d *drafter) program() ([]byte, error) {
	if len(d.done.Code) > maxProgram {
		return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s made %d calls, and its program is too large for a step", d.done.ID, len(d.done.Did)), Hint: "write the definition by hand"}
	}
	comment := fmt.Sprintf("# A draft of execution %s: the program unchanged in one step, since %s. Review it before you run it.", d.done.ID, d.programReason())
	return d.writeProgram(comment, d.name(), d.description()), nil
}

// writeProgram writes a definition with the program in one step.
func (d *drafter) writeProgram(comment, name, description string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nname: %s\ndescription: %s\n\n", comment, name, yamlText(description))
	d.writeVariables(&b)
	b.WriteString("outputs:\n  result: {value: \"${{ steps.program.output }}\"}\n\nsteps:\n  - id: program\n")
	if d.done.Language == "typescript" {
		b.WriteString("    language: typescript\n")
	}
	if d.done.Environment != "" {
		fmt.Fprintf(&b, "    environment: %s\n", yamlText(d.done.Environment))
	}
	if d.done.Workspace != "" {
		fmt.Fprintf(&b, "    workspace: %s\n", yamlText(d.done.Workspace))
	}
	if names := slices.Sorted(maps.Keys(d.done.Variables)); len(names) > 0 {
		b.WriteString("    with:\n")
		for _, name := range names {
			fmt.Fprintf(&b, "      %s: %s\n", yamlKey(name), yamlText("${{ inputs."+name+" }}"))
		}
	}
	fmt.Fprintf(&b, "    code: %s", block(d.done.Code, "      "))
	return []byte(b.String())
}

func (d *drafter) programReason() string {
	switch {
	case d.methods:
		return "it uses upstreams for more than tools"
	case len(d.steps) == 0:
		return "none of its calls succeeded"
	case len(d.steps) > maxSteps:
		return fmt.Sprintf("it made %d calls", len(d.done.Did))
	}
	return "its calls have large arguments"
}

// maxDefault limits a variable that becomes the default of an input, in bytes of JSON.
const maxDefault = 4 << 10

// writeVariables writes the variables of the program as inputs.
func (d *drafter) writeVariables(b *strings.Builder) {
	if len(d.done.Variables) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(d.done.Variables))
	b.WriteString("inputs:\n")
	for _, name := range names {
		if size := len(d.done.Variables[name]); size > maxDefault {
			fmt.Fprintf(b, "  %s: {} # it was %d bytes long, too large for a default\n", yamlKey(name), size)
			continue
		}
		if v, err := parse(d.done.Variables[name]); err == nil {
			fmt.Fprintf(b, "  %s: {default: %s}\n", yamlKey(name), flow(v))
		}
	}
	b.WriteString("\n")
}

// block returns a program as a YAML literal block if possible, else quoted.
func block(text, indent string) string {
	odd := func(r rune) bool {
		return r != '\n' && r != '\t' && r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd
	}
	if strings.ContainsFunc(text, odd) || strings.TrimSpace(text) == "" {
		return quote(text) + "\n"
	}
	var b strings.Builder
	b.WriteString("|2-\n")
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line == "\n" {
			b.WriteString("\n")
			continue
		}
		b.WriteString(indent + line)
	}
	return b.String()
}
