package spec

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

const (
	maxBranches    = 64
	maxConcurrency = 64
	maxPasses      = 100_000
)

func (d stepDecoder) parallelKeys(s *Step) []key {
	p := &Parallel{}
	s.Do = p
	return []key{
		{name: "parallel", shape: `{"type":"object","minProperties":1,"maxProperties":64,"propertyNames":` + idShape + `,"additionalProperties":` + stepsShape + `}`,
			doc: "branches of steps, by name, that run concurrently; the output has their results", required: true, read: d.branches(&p.Branches)},
	}
}

func (d stepDecoder) branches(into *[]Branch) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if many := len(n.Content) / 2; n.Kind == yaml.MappingNode && (many == 0 || many > maxBranches) {
			d.Fail(at, n, "%s has from 1 to %d branches", label(at), maxBranches)
			return
		}
		d.members(at, n, "the name of a branch", func(at yamlstrict.Path, name Text, value *yaml.Node) {
			b := Branch{Name: name}
			d.block(&b.Steps)(at, value)
			*into = append(*into, b)
		})
	}
}

func (d stepDecoder) forEachKeys(s *Step) []key {
	f := &ForEach{As: Text{Text: "item"}, Index: Text{Text: "index"}, Concurrency: 1}
	s.Do = f
	return []key{
		{name: "for_each", shape: listShape, doc: "the list to iterate over; the output is the list of the results", required: true, read: d.list(&f.In)},
		{name: "as", shape: idShape, doc: "the item's name in expressions; default item", read: d.variable(&f.As)},
		{name: "index", shape: idShape, doc: "the name of its number, from 0; default index", read: d.variable(&f.Index)},
		{name: "concurrency", shape: countShape(1, maxConcurrency), doc: "how many items at once; default 1", read: d.count(&f.Concurrency, 1, maxConcurrency)},
		{name: "steps", shape: stepsShape, doc: "the steps for each item", required: true, read: d.block(&f.Steps)},
	}
}

// reservedVariables are the predefined variables of expressions, and the reserved words of CEL.
var reservedVariables = []string{"inputs", "steps", "env", "run", "output", "form", "value", "request", "last",
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace", "null",
	"package", "return", "true", "var", "void", "while"}

// variable reads the name of a variable.
func (d stepDecoder) variable(into *Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) || !d.isIdentifier(at, n, "the name of a variable") {
			return
		}
		if *into = d.textOf(n); slices.Contains(reservedVariables, n.Value) {
			d.Fail(at, n, "the name %q is reserved in expressions; choose another", n.Value)
		}
	}
}

func (d stepDecoder) switchKeys(s *Step) []key {
	w := &Switch{}
	s.Do = w
	return []key{
		{name: "switch", shape: `{"type":"array","minItems":1,"maxItems":64,"items":{"$ref":"#/$defs/case"}}`, doc: "cases; the steps of the first that is true run, and their result is the output", required: true, read: d.cases(&w.Cases)},
		{name: "default", shape: stepsShape, doc: "the steps that run if no case is true", read: d.block(&w.Default)},
	}
}

func (d stepDecoder) cases(into *[]Case) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if many := len(n.Content); n.Kind == yaml.SequenceNode && (many == 0 || many > maxBranches) {
			d.Fail(at, n, "%s has from 1 to %d cases", label(at), maxBranches)
			return
		}
		*into = yamlstrict.List(d.Decoder, at, n, func(at yamlstrict.Path, n *yaml.Node, c *Case) { d.mapping(at, n, "a case", d.caseKeys(c)) })
	}
}

func (d stepDecoder) caseKeys(c *Case) []key {
	return []key{
		{name: "when", shape: exprShape, doc: "an expression", required: true, read: d.expression(&c.When)},
		{name: "steps", shape: stepsShape, doc: "the steps that run if it is true", required: true, read: d.block(&c.Steps)},
	}
}

func (d stepDecoder) whileKeys(s *Step) []key {
	w := &While{}
	s.Do = w
	return []key{
		{name: "while", shape: exprShape, doc: "an expression; its steps repeat while it is true. index counts from 0, last is the previous result", required: true, read: d.expression(&w.When)},
		{name: "max", shape: countShape(1, maxPasses), doc: "the maximum number of iterations; more fail", required: true, read: d.count(&w.Max, 1, maxPasses)},
		{name: "steps", shape: stepsShape, doc: "the steps of each iteration", required: true, read: d.block(&w.Steps)},
	}
}

func (d stepDecoder) tryKeys(s *Step) []key {
	t := &Try{As: Text{Text: "error"}}
	s.Do = t
	return []key{
		{name: "try", shape: stepsShape, doc: "steps that may fail", required: true, read: d.block(&t.Steps)},
		{name: "catch", shape: `{"$ref":"#/$defs/steps_or_none"}`, doc: "steps that run when one failed, with their result used instead; [] continues with null", read: d.blockOrNone(&t.Catch)},
		{name: "as", shape: idShape, doc: "the error's name in catch: {kind, message, hint, step}; default error", read: d.variable(&t.As)},
		{name: "finally", shape: stepsShape, doc: "steps that always run at the end, also after a cancellation", read: d.block(&t.Finally)},
	}
}

func (d stepDecoder) waitKeys(s *Step) []key {
	w := &Wait{}
	s.Do = w
	return []key{{name: "wait", shape: `{"anyOf":[` + spanOrExpr + `,{"$ref":"#/$defs/wait"}]}`, doc: "waits for a time or a person; a duration is for", required: true, read: shortForm(d.spanValue(&w.For), d.wait(w))}}
}

const spanOrExpr = `{"anyOf":[{"$ref":"#/$defs/duration"},{"$ref":"#/$defs/expression"}]}`

func (d stepDecoder) wait(w *Wait) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		seen := d.mapping(at, n, `"wait"`, d.waitingKeys(w))
		if n.Kind == yaml.MappingNode && len(seen) != 1 && !d.Bad(at.Unknown()) {
			d.Fail(at, n, `"wait" has one of "for", "until" and "approval"`)
		}
	}
}

func (d stepDecoder) waitingKeys(w *Wait) []key {
	return []key{
		{name: "for", shape: spanOrExpr, doc: "how long", read: d.spanValue(&w.For)},
		{name: "until", shape: `{"type":"string","minLength":1}`, doc: "until when, in RFC 3339, as 2026-01-31T08:00:00Z", read: d.until(&w.Until)},
		{name: "approval", shape: `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/approval"}]}`, doc: "asks a person for approval; a text is its message", read: func(at yamlstrict.Path, n *yaml.Node) {
			w.Approval = &Approval{Timeout: 24 * time.Hour}
			shortForm(d.message(&w.Approval.Message), func(at yamlstrict.Path, n *yaml.Node) { d.mapping(at, n, `"approval"`, d.approvalKeys(w.Approval)) })(at, n)
		}},
	}
}

func (d stepDecoder) approvalKeys(a *Approval) []key {
	return []key{
		{name: "message", shape: textShape, doc: "what is asked", required: true, read: d.message(&a.Message)},
		{name: "timeout", shape: spanShape, doc: "how long it can be answered, after which the step fails; default 24h", read: d.span(&a.Timeout)},
	}
}

// spanValue reads a duration, or an expression that evaluates to one.
func (d stepDecoder) spanValue(into **Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		*into = &v
		if v.Kind == String && wholeExpression.MatchString(v.Text.Text) || d.Bad(at) {
			return
		}
		var span time.Duration
		d.span(&span)(at, n)
	}
}

// until reads a time, or a text with expressions.
func (d stepDecoder) until(into **Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		*into = &v
		_, plain := v.Plain()
		if _, err := time.Parse(time.RFC3339, v.Text.Text); (v.Kind != String || plain && err != nil) && !d.Bad(at) {
			d.Fail(at, n, "%s must be a time in RFC 3339, as 2026-01-31T08:00:00Z, or an expression, not %.40q", label(at), n.Value)
		}
	}
}

// reason returns a file error without the path, which the message has already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return sanitize.Line(err.Error(), 200)
}
