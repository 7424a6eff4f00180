package form

import (
	"encoding/json"
	"slices"
	"strings"

	"sallyport/gateway/workflow/binding"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
)

// FromInputs is a form that asks for the inputs of a workflow that have to be given and are not; nil where none is
// missing. Its result are those inputs. Check, where it is not nil, holds a value against the whole schema of its input.
func FromInputs(d *spec.Definition, given map[string]any, check func(name string, value any) error) *Form {
	asked := &spec.Form{Title: literal("inputs of " + d.Name)}
	for _, in := range d.Inputs {
		if _, ok := given[in.Name.Text]; !ok && in.Default == nil && !in.Optional {
			asked.Fields = append(asked.Fields, inputField(in))
		}
	}
	f, problems := Compile(binding.Only(), asked)
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

// schema is what a question can say of a JSON Schema.
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
	switch s.kind() {
	case "string":
		s.text(&f)
	case "integer", "number":
		f.Type, f.Min, f.Max = s.kind(), bound(s.Minimum), bound(s.Maximum)
	case "boolean":
		f.Type = typeBoolean
	case "array":
		if s.Items != nil && optional(s.Items.Enum) {
			f.Type, f.Options, f.MinLength, f.MaxLength = typeChoices, chosen(s.Items.Enum), s.MinItems, s.MaxItems
		}
	}
	if optional(s.Enum) {
		f.Type, f.Options, f.Min, f.Max, f.MinLength, f.MaxLength = typeChoice, chosen(s.Enum), nil, nil, 0, 0
	}
	return f
}

func decodeInto(value any, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// kind is the schema's type, "" where there are several.
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

func (s *schema) text(f *spec.Field) {
	formats := map[string]string{"email": typeEmail, "uri": typeURI, "date": typeDate, "date-time": typeDatetime}
	if f.Type = formats[s.Format]; f.Type == "" {
		f.Type = typeString
	}
	if worded(f.Type) && (s.MaxLength == 0 || s.MinLength <= s.MaxLength) {
		f.MinLength, f.MaxLength = s.MinLength, s.MaxLength
	}
}

// optional reports whether all are texts or numbers that can be chosen from.
func optional(values []any) bool {
	return len(values) > 0 && len(values) <= maxOptions && !slices.ContainsFunc(values, func(v any) bool {
		_, ok := option(whatever(v))
		return !ok
	})
}

func whatever(v any) any {
	if f, ok := v.(float64); ok {
		return whole(f)
	}
	return v
}

func chosen(values []any) *spec.Source {
	v := literal(values)
	return &spec.Source{Value: &v}
}

func bound(v any) *spec.Value {
	if _, ok := v.(float64); !ok {
		return nil
	}
	out := literal(v)
	return &out
}

// literal is a value without expressions.
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
