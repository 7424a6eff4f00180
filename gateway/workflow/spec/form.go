package spec

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// fieldTypes are the types of a form's fields.
var fieldTypes = []string{"string", "text", "integer", "number", "boolean", "date", "datetime", "email", "uri", "choice", "choices"}

// formDecoder reads forms.
type formDecoder struct{ *decoder }

func (d formDecoder) formKeys(s *Step) []key {
	f := &Form{Timeout: 24 * time.Hour}
	s.Do = f
	return []key{{name: "form", shape: `{"$ref":"#/$defs/form"}`, doc: "asks a person for missing values; the output is an object of all fields", required: true, read: func(at yamlstrict.Path, n *yaml.Node) {
		d.mapping(at, n, "a form", d.formPartKeys(f))
	}}}
}

func (d formDecoder) formPartKeys(f *Form) []key {
	return []key{
		{name: "title", shape: textShape, doc: "its title", read: d.message(&f.Title)},
		{name: "timeout", shape: spanShape, doc: "how long it can be answered, after which the step fails; default 24h", read: d.span(&f.Timeout)},
		{name: "fields", shape: `{"type":"object","minProperties":1,"maxProperties":256,"propertyNames":` + idShape + `,"additionalProperties":{"anyOf":[` + enumShape(fieldTypes...) + `,{"$ref":"#/$defs/field"}]}}`,
			doc: "its fields, by name, in order; a text is the type", required: true, read: d.fields(&f.Fields)},
	}
}

func (d formDecoder) fields(into *[]Field) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			d.Fail(at, n, "a form has at least one field")
			return
		}
		d.members(at, n, "the name of a field", func(at yamlstrict.Path, name Text, value *yaml.Node) {
			f := Field{Name: name, Type: "string", Required: true}
			shortForm(d.oneOf(&f.Type, fieldTypes...), func(at yamlstrict.Path, n *yaml.Node) {
				d.mapping(at, n, "a field", d.fieldKeys(&f))
			})(at, value)
			d.checkField(at, value, &f)
			*into = append(*into, f)
		})
	}
}

func (d formDecoder) fieldKeys(f *Field) []key {
	source := `{"anyOf":[{"type":["string","number","boolean"]},{"$ref":"#/$defs/source"}]}`
	return []key{
		{name: "type", shape: enumShape(fieldTypes...), doc: "string (default), text (of several lines), integer, number, boolean, date, datetime, email, uri, choice (one of options) or choices (several)", read: d.oneOf(&f.Type, fieldTypes...)},
		{name: "title", shape: wordsShape, doc: "its label; default its name", read: d.words(&f.Title)},
		{name: "description", shape: wordsShape, doc: "what it is for", read: d.words(&f.Description)},
		{name: "required", shape: boolShape, doc: "default true", read: d.bool(&f.Required)},
		{name: "if", shape: exprShape, doc: "an expression, also over form; if it is false the field is left out", read: d.condition(&f.If)},
		{name: "from", shape: source, doc: "where its value comes from before a person is asked: a text with expressions, or a tool", read: d.source(&f.From)},
		{name: "confirm", shape: boolShape, doc: "a person is asked even if from has a value, with it filled in; default false", read: d.bool(&f.Confirm)},
		{name: "default", shape: valueShape, doc: "the value that is filled in when a person is asked", read: d.optionalValue(&f.Default)},
		{name: "options", shape: `{"anyOf":[{"type":"array","minItems":1,"maxItems":1000},{"$ref":"#/$defs/expression"},{"$ref":"#/$defs/source"}]}`,
			doc: "the options: a list of texts or numbers, or of {value, title}; or an expression, or a tool", read: d.options(&f.Options)},
		{name: "pattern", shape: `{"type":"string","minLength":1,"maxLength":1024}`, doc: "a regular expression (RE2) that all of the text must match", read: d.pattern(&f.Pattern)},
		{name: "min", shape: boundShape, doc: "the least number, date or time", read: d.boundValue(&f.Min)},
		{name: "max", shape: boundShape, doc: "the greatest", read: d.boundValue(&f.Max)},
		{name: "min_length", shape: countShape(1, maxLength), doc: "characters of a text, or choices, at least", read: d.count(&f.MinLength, 1, maxLength)},
		{name: "max_length", shape: countShape(1, maxLength), doc: "the same, at most", read: d.count(&f.MaxLength, 1, maxLength)},
		{name: "rule", shape: exprShape, doc: "an expression over value and form that must hold", read: d.condition(&f.Rule)},
		{name: "message", shape: wordsShape, doc: "the error if the rule or the pattern does not match", read: d.words(&f.Message)},
	}
}

const (
	maxLength  = 65536
	maxOptions = 1000
	boundShape = `{"type":["number","string"]}`
)

// source reads a value, or a tool that provides it.
func (d formDecoder) source(into **Source) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = &Source{}
		if n.Kind == yaml.MappingNode {
			d.mapping(at, n, "where values come from", d.sourceKeys(*into))
			return
		}
		if d.Allowed(at, n) && d.Kind(at, n, yaml.ScalarNode, "a text with expressions, or a mapping with a tool") {
			d.optionalValue(&(*into).Value)(at, n)
		}
	}
}

func (d formDecoder) sourceKeys(s *Source) []key {
	s.Tool = &Tool{}
	return append(stepDecoder(d).toolCallKeys(s.Tool), key{name: "output", shape: valueShape, doc: "the part of its result to use, over output; default all of it", read: d.optionalValue(&s.Output)})
}

// options reads a list, an expression, or a tool.
func (d formDecoder) options(into **Source) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = &Source{}
		if n.Kind == yaml.MappingNode {
			d.mapping(at, n, "where options come from", d.sourceKeys(*into))
			return
		}
		var v Value
		d.list(&v)(at, n)
		(*into).Value = &v
		if many := len(v.Items); v.Kind == List && (many == 0 || many > maxOptions) {
			d.Fail(at, n, "%s has from 1 to %d items", label(at), maxOptions)
		}
	}
}

func (d formDecoder) pattern(into **Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		var t Text
		if d.line(&t, 1024)(at, n); d.Bad(at) {
			return
		}
		*into = &t
		if _, err := regexp.Compile(t.Text); err != nil {
			d.Fail(at, n, "this is not a regular expression (RE2): %s", sanitize.Line(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 200))
		}
	}
}

// boundValue reads a number, a date or an expression.
func (d formDecoder) boundValue(into **Value) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		v := d.value(at, n)
		*into = &v
		if v.Kind != Number && v.Kind != String && !d.Bad(at) {
			d.Fail(at, n, "%s must be a number, a date or an expression, not %s", label(at), yamlstrict.Describe(n))
		}
	}
}

// checkField reports keys that are invalid for the field's type.
func (d formDecoder) checkField(at yamlstrict.Path, n *yaml.Node, f *Field) {
	if d.Bad(at, at.To("type"), at.Unknown()) {
		return
	}
	chosen := f.Type == "choice" || f.Type == "choices"
	if chosen && f.Options == nil {
		d.Fail(at, n, `a field of type %q needs "options"`, f.Type)
	}
	text := slices.Contains([]string{"string", "text", "email", "uri"}, f.Type)
	ordered := slices.Contains([]string{"integer", "number", "date", "datetime"}, f.Type)
	for _, k := range []struct {
		name    string
		set, ok bool
	}{
		{"options", f.Options != nil, chosen},
		{"pattern", f.Pattern != nil, text},
		{"min", f.Min != nil, ordered},
		{"max", f.Max != nil, ordered},
		{"min_length", f.MinLength > 0, text || f.Type == "choices"},
		{"max_length", f.MaxLength > 0, text || f.Type == "choices"},
		{"confirm", f.Confirm, f.From != nil},
		{"message", f.Message != "", f.Rule != nil || f.Pattern != nil},
	} {
		if k.set && !k.ok {
			d.Fail(at.To(k.name), keyOf(n, k.name), "%s", misplacedMessage(k.name, f.Type))
		}
	}
	if f.MaxLength > 0 && f.MinLength > f.MaxLength {
		d.Fail(at, keyOf(n, "max_length"), `"max_length" is less than "min_length"`)
	}
}

func misplacedMessage(name, fieldType string) string {
	switch name {
	case "confirm":
		return `"confirm" needs "from", the value to confirm`
	case "message":
		return `"message" needs "rule" or "pattern", which it explains`
	}
	return `"` + name + `" has no meaning for the type "` + fieldType + `"`
}
