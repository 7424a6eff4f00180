package spec

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// maxNesting limits the nesting of a value.
const maxNesting = 64

// jsonNumber matches the numbers of JSON; YAML has more.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// Plain returns the value as nil, bool, int64, float64, string, []any or map[string]any, and whether it is constant: a value
// with expressions is not.
func (v Value) Plain() (any, bool) {
	switch v.Kind {
	case String:
		return strings.ReplaceAll(v.Text.Text, "$${{", "${{"), openingIndex(v.Text.Text, 0) < 0
	case List:
		return v.plainList()
	case Map:
		return v.plainMap()
	}
	return v.Scalar, true
}

func (v Value) plainList() (any, bool) {
	all, plain := make([]any, len(v.Items)), true
	for i, item := range v.Items {
		var ok bool
		all[i], ok = item.Plain()
		plain = plain && ok
	}
	return all, plain
}

func (v Value) plainMap() (any, bool) {
	all, plain := make(map[string]any, len(v.Members)), true
	for _, m := range v.Members {
		value, ok := m.Value.Plain()
		all[m.Name.Text], plain = value, plain && ok
	}
	return all, plain
}

// openingIndex returns the start of the first expression after an offset, -1 for none.
func openingIndex(text string, from int) int {
	for at := from; ; {
		i := strings.Index(text[at:], "${{")
		if i < 0 {
			return -1
		}
		if at += i; at == 0 || text[at-1] != '$' {
			return at
		}
		at += len("${{")
	}
}

// unclosedIndex returns the start of an expression without end, -1 for none. It does not parse expressions, which package template does.
func unclosedIndex(text string) int {
	for at := openingIndex(text, 0); at >= 0; {
		end := strings.Index(text[at:], "}}")
		if end < 0 {
			return at
		}
		at = openingIndex(text, at+end+len("}}"))
	}
	return -1
}

// value reads a value; its texts may hold expressions.
func (d *decoder) value(at yamlstrict.Path, n *yaml.Node) Value {
	v := d.literal(at, n)
	if v.Kind == String {
		if i := unclosedIndex(v.Text.Text); i >= 0 {
			p := v.Text.At(i)
			d.FailAt(at, p.Line, p.Column, `this "${{" has no "}}"; write "$${{" for a plain "${{"`)
		}
	}
	return v
}

// literal reads a value; the values in it are read by value.
func (d *decoder) literal(at yamlstrict.Path, n *yaml.Node) Value {
	if !d.Allowed(at, n) {
		return Value{}
	}
	if d.nesting++; d.nesting > maxNesting {
		d.Fail(at, n, "%s is nested too deeply: at most %d levels", label(at), maxNesting)
		d.nesting--
		return Value{}
	}
	defer func() { d.nesting-- }()
	switch n.Kind {
	case yaml.MappingNode:
		return d.object(at, n)
	case yaml.SequenceNode:
		v := Value{Pos: posOf(n), Kind: List}
		d.Items(at, n, "a list", func(at yamlstrict.Path, _ int, item *yaml.Node) { v.Items = append(v.Items, d.value(at, item)) })
		return v
	}
	return d.scalar(at, n)
}

func (d *decoder) object(at yamlstrict.Path, n *yaml.Node) Value {
	v := Value{Pos: posOf(n), Kind: Map}
	d.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
		v.Members = append(v.Members, Member{Name: d.textOf(key), Value: d.value(at, value)})
	})
	return v
}

func (d *decoder) scalar(at yamlstrict.Path, n *yaml.Node) Value {
	v := Value{Pos: posOf(n)}
	switch n.Tag {
	case "!!null":
		v.Kind = Null
	case "!!bool":
		on, _ := yamlstrict.Bool(n)
		v.Kind, v.Scalar = Bool, on
	case "!!int", "!!float":
		number, wrong := parseNumber(n.Value)
		if wrong != "" {
			d.Fail(at, n, "%s", wrong)
		}
		v.Kind, v.Scalar = Number, number
	default:
		v.Kind, v.Text = String, d.textOf(n)
	}
	return v
}

// parseNumber returns an int64 or a float64.
func parseNumber(text string) (any, string) {
	if !jsonNumber.MatchString(text) {
		return int64(0), "this is not a JSON number; put it in quotes if it is a text"
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, ""
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") || math.IsInf(f, 0) {
		return int64(0), "this number is too large; put it in quotes if it is a text"
	}
	return f, ""
}

func (d *decoder) textOf(n *yaml.Node) Text {
	return Text{Pos: posOf(n), Text: n.Value, place: place{d.Source, n, 0}}
}

// optionalValue reads a value into a pointer that is nil if the key is missing.
func (d *decoder) optionalValue(into **Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		*into = &v
	}
}

// any reads any value.
func (d *decoder) any(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) { *into = d.value(at, n) }
}

// arguments reads a mapping, or an expression that evaluates to one.
func (d *decoder) arguments(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		if v.Kind == Null {
			d.Kind(at, n, yaml.MappingNode, "") // says so
			return
		}
		if v.Kind != Map && !(v.Kind == String && wholeExpression.MatchString(v.Text.Text)) && !d.Bad(at) {
			d.Fail(at, n, "%s must be a mapping, or one ${{ expression }} that evaluates to one, not %s", label(at), yamlstrict.Describe(n))
		}
		*into = v
	}
}

// variables reads a mapping.
func (d *decoder) variables(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if d.Allowed(at, n) && d.Kind(at, n, yaml.MappingNode, "a mapping of variables") {
			*into = d.value(at, n)
		}
	}
}

// list reads a list, or an expression that evaluates to one.
func (d *decoder) list(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		if v.Kind != List && !(v.Kind == String && wholeExpression.MatchString(v.Text.Text)) && !d.Bad(at) {
			d.Fail(at, n, "%s must be a list, or one ${{ expression }} that evaluates to one, not %s", label(at), yamlstrict.Describe(n))
		}
		*into = v
	}
}

// message reads a text, which may contain expressions.
func (d *decoder) message(into *Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if d.IsText(at, n) {
			*into = d.value(at, n)
		}
	}
}

// expression reads a text that is one expression; "${{" and "}}" around it are left out.
func (d *decoder) expression(into *Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.Allowed(at, n) || n.Tag != "!!bool" && !d.IsText(at, n) { // "if: true" is one
			return
		}
		t, inner := d.textOf(n), strings.TrimSpace(n.Value)
		if strings.HasPrefix(inner, "${{") && strings.HasSuffix(inner, "}}") && len(inner) >= len("${{}}") {
			inner = strings.TrimSpace(inner[len("${{") : len(inner)-len("}}")])
		}
		switch {
		case strings.Contains(inner, "${{"):
			d.Fail(at, n, "%s is one expression already; leave ${{ and }} out", label(at))
		case inner == "":
			d.Fail(at, n, "%s has no expression in it", label(at))
		}
		t.place.skip = max(strings.Index(n.Value, inner), 0)
		t.Text = inner
		t.Pos = t.At(0)
		*into = t
	}
}

// condition is expression for a pointer that is nil if the key is missing.
func (d *decoder) condition(into **Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = &Text{}
		d.expression(*into)(at, n)
	}
}
