package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"

	"sallyport/internal/suggest"
)

// Shape is what is known of a value before there is one. A nil *Shape, and one of type [Any], is nothing.
// A Shape that is in use must not be changed; shapes may point at each other in circles.
type Shape struct {
	// Type is Any, Bool, Int, Double (a number that may be whole), String, List or Map.
	Type Type
	// Elem is what all items of a List are, and all members of a Map that has no Fields.
	Elem *Shape
	// Fields are the members of a Map. Open says that there may be others: to look at one of those is a warning, else an error.
	Fields []Field
	Open   bool
	// Absent says why there is no member of this name, "" where that is not known; nil is never known.
	Absent func(name string) string
}

// Field is one member of a [Shape].
type Field struct {
	Name string
	// Optional says that it may be missing.
	Optional bool
	Shape    *Shape
}

// Field returns what is known of a member: nil and true for one that is allowed, and of which nothing is known.
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

// missing says what is wrong with the name of a member.
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

// stand is the variable for a value of a type while types are checked; no one can write such a name.
func stand(t Type) string { return "@" + string(t) }

// stands are all of them. What a list or a map has in it is followed by shapes, not by CEL's types: to CEL lists and maps may be mixed.
func stands() (set []cel.EnvOption) {
	for _, t := range []Type{Any, Bool, Int, String, List, Map} {
		set = append(set, cel.Variable(stand(t), types(t)))
	}
	return set
}

// of is what CEL's type says of a value.
func of(t *cel.Type) *Shape {
	for _, known := range []Type{Bool, Int, Double, String} {
		if t.IsExactType(types(known)) {
			return &Shape{Type: known}
		}
	}
	switch {
	case t.IsExactType(cel.TimestampType), t.IsExactType(cel.DurationType):
		return &Shape{Type: String} // in JSON
	case t.Kind() == cel.ListKind:
		return &Shape{Type: List, Elem: of(t.Parameters()[0])}
	case t.Kind() == cel.MapKind:
		return &Shape{Type: Map, Elem: of(t.Parameters()[1]), Open: true}
	}
	return nil
}
