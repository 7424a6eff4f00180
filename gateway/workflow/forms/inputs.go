package forms

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
)

// FromInputs returns a form that asks for the missing required inputs of a workflow; nil if none is
// missing. Its result has those inputs. check, if not nil, validates a value against the full schema of its input.
func FromInputs(d *spec.Definition, given map[string]any, check func(name string, value any) error) *Form {
	asked := &spec.Form{Title: literal("inputs of " + d.Name)}
	for _, in := range d.Inputs {
		if _, ok := given[in.Name.Text]; !ok && in.Default == nil && !in.Optional {
			asked.Fields = append(asked.Fields, inputField(in))
		}
	}
	f, problems := Compile(template.Only(), asked)
	if len(asked.Fields) == 0 || len(problems) > 0 { // too many to ask
		return nil
	}
	for _, field := range f.fields {
		if check != nil {
			field.check = func(value any) error { return check(field.name, value) }
		}
	}
	return f
}

// schema is the part of a JSON Schema that a question can express.
type schema struct {
	Type      any
	Format    string
	Enum      []any
	Items     *schema
	Minimum   any
	Maximum   any
	MinLength int
	MaxLength int
	MinItems  int
	MaxItems  int
	AnyOf     []schema
}

func inputField(in spec.Input) spec.Field {
	f := spec.Field{Name: in.Name, Title: in.Prompt, Description: in.Description, Required: true, Type: typeJSON}
	if f.Title == "" {
		f.Title, f.Description = in.Description, ""
	}
	var s schema
	if read, err := expr.Decode(in.Schema); err != nil || decodeInto(read, &s) != nil {
		return f
	}
	a := s.toField()
	f.Type, f.Min, f.Max, f.MinLength, f.MaxLength = a.kind, boundValue(a.min), boundValue(a.max), a.minLength, a.maxLength
	if a.options != nil {
		f.Options = optionSource(a.options)
	}
	return f
}

// fieldSpec is the part of a field that is derived from a schema.
type fieldSpec struct {
	kind                 string
	min, max             any // numbers, or nil
	minLength, maxLength int
	options              []any // nil if it is not a choice
}

// toField returns the field for a schema, of type json if no other type fits.
func (s *schema) toField() fieldSpec {
	if one := s.optional(); one != nil {
		return one.toField()
	}
	if selectable(s.Enum) {
		return fieldSpec{kind: typeChoice, options: s.Enum}
	}
	switch s.kind() {
	case "string":
		return s.text()
	case "integer", "number":
		return fieldSpec{kind: s.kind(), min: s.Minimum, max: s.Maximum}
	case "boolean":
		return fieldSpec{kind: typeBoolean}
	case "array":
		if s.Items != nil && selectable(s.Items.Enum) {
			return fieldSpec{kind: typeChoices, options: s.Items.Enum, minLength: s.MinItems, maxLength: s.MaxItems}
		}
	}
	return fieldSpec{kind: typeJSON}
}

// optional returns the other schema of an anyOf of two, one of which is null; nil for any other schema.
func (s *schema) optional() *schema {
	if s.Type != nil || s.Enum != nil || len(s.AnyOf) != 2 {
		return nil
	}
	for i, one := range s.AnyOf {
		if one.Type == "null" && s.AnyOf[1-i].AnyOf == nil {
			return &s.AnyOf[1-i]
		}
	}
	return nil
}

func decodeInto(value any, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// kind returns the schema's type besides null, "" for several.
func (s *schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		t = slices.DeleteFunc(slices.Clone(t), func(v any) bool { return v == "null" })
		if len(t) == 1 {
			kind, _ := t[0].(string)
			return kind
		}
	}
	return ""
}

func (s *schema) text() fieldSpec {
	formats := map[string]string{"email": typeEmail, "uri": typeURI, "date": typeDate, "date-time": typeDatetime}
	a := fieldSpec{kind: cmp.Or(formats[s.Format], typeString)}
	if isTextType(a.kind) && (s.MaxLength == 0 || s.MinLength <= s.MaxLength) {
		a.minLength, a.maxLength = s.MinLength, s.MaxLength
	}
	return a
}

// selectable reports whether all values can be options: strings or numbers within the limits.
func selectable(values []any) bool {
	return len(values) > 0 && len(values) <= maxOptions && !slices.ContainsFunc(values, func(v any) bool {
		_, ok := option(normalizeNumber(v))
		return !ok
	})
}

func normalizeNumber(v any) any {
	if f, ok := v.(float64); ok {
		return whole(f)
	}
	return v
}

func optionSource(values []any) *spec.Source {
	v := literal(values)
	return &spec.Source{Value: &v}
}

func boundValue(v any) *spec.Value {
	if _, ok := v.(float64); !ok {
		return nil
	}
	out := literal(v)
	return &out
}

// literal returns a value without expressions.
func literal(v any) spec.Value {
	switch v := v.(type) {
	case string:
		return spec.Value{Kind: spec.String, Text: spec.Text{Text: strings.ReplaceAll(v, "${{", "$${{")}}
	case float64:
		return spec.Value{Kind: spec.Number, Scalar: whole(v)}
	case []any:
		out := spec.Value{Kind: spec.List}
		for _, item := range v {
			out.Items = append(out.Items, literal(item))
		}
		return out
	}
	return spec.Value{Kind: spec.Null}
}
