package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"

	"sallyport/internal/suggest"
)

// Shape describes a value before it exists. A nil *Shape, and one of type [Any], means unknown. A Shape that is in
// use must not be changed; shapes may refer to each other in cycles.
type Shape struct {
	// Type is Any, Bool, Int, Double (a number that may be whole), String, List or Map.
	Type Type
	// Elem is the shape of all items of a List, and of all members of a Map without Fields.
	Elem *Shape
	// Fields are the members of a Map. Open means that there may be others: selecting one of those is a warning, else
	// an error.
	Fields []Field
	Open   bool
	// Absent returns why there is no member of this name, "" if unknown; nil means always unknown.
	Absent func(name string) string
}

// Field is one member of a [Shape].
type Field struct {
	Name string
	// Optional means that the member may be missing.
	Optional bool
	Shape    *Shape
}

// Field returns the shape of a member: nil and true for an allowed member of unknown shape.
func (s *Shape) Field(name string) (shape *Shape, known bool) {
	if s == nil || s.Type == Any {
		return nil, true
	}
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Shape, true
		}
	}
	if len(s.Fields) == 0 && (s.Elem != nil || s.Open) {
		return s.Elem, true
	}
	return nil, false
}

// Names are those of the fields.
func (s *Shape) Names() []string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return names
}

// kind is the type of a shape, Any for none.
func (s *Shape) kind() Type {
	if s == nil || s.Type == "" {
		return Any
	}
	return s.Type
}

// missing returns the message for an unknown member name.
func (s *Shape) missing(name string) string {
	if s.Absent != nil {
		if why := s.Absent(name); why != "" {
			return why
		}
	}
	names, none := s.Names(), "there is no member "+name
	if s.Open {
		none = "no member " + name + " was seen so far"
	}
	if near := suggest.Of(name, names); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", none, near)
	}
	if len(names) == 0 {
		return none + ", nor any other"
	}
	const shown = 12
	if len(names) > shown {
		names = append(names[:shown:shown], "...")
	}
	return fmt.Sprintf("%s; the members are %s", none, strings.Join(names, ", "))
}

// placeholder returns the placeholder variable of a type, used during type checks. Expressions cannot contain such a name.
func placeholder(t Type) string { return "@" + string(t) }

// placeholders declares all placeholders. Elements of lists and maps are tracked by shapes, not by CEL's types: to CEL,
// lists and maps may be mixed.
func placeholders() (set []cel.EnvOption) {
	for _, t := range []Type{Any, Bool, Int, String, List, Map} {
		set = append(set, cel.Variable(placeholder(t), celType(t)))
	}
	return set
}

// shapeOf converts CEL's type to a shape.
func shapeOf(t *cel.Type) *Shape {
	for _, known := range []Type{Bool, Int, Double, String} {
		if t.IsExactType(celType(known)) {
			return &Shape{Type: known}
		}
	}
	switch {
	case t.IsExactType(cel.TimestampType), t.IsExactType(cel.DurationType):
		return &Shape{Type: String} // in JSON
	case t.Kind() == cel.ListKind:
		return &Shape{Type: List, Elem: shapeOf(t.Parameters()[0])}
	case t.Kind() == cel.MapKind:
		return &Shape{Type: Map, Elem: shapeOf(t.Parameters()[1]), Open: true}
	}
	return nil
}
