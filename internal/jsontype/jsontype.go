// Package jsontype describes what the values of many results have in common: kinds, members, element types, formats
// of strings. The gateway uses it to learn the type of a result that its upstream has not declared. A shape never
// holds a value, a size or a count, and its size is bounded: results are untrusted.
package jsontype

// Kind is a set of JSON value kinds, plus bytes.
type Kind uint8

// The kinds. A whole number is Int, any other is Number.
const (
	Null Kind = 1 << iota
	Bool
	Int
	Number
	String
	List
	Object
	Blob
)

// Shape describes what a set of values has in common. The zero Shape describes no value: merged with another it
// yields the other. A Shape is immutable, including what it points to.
type Shape struct {
	// Kinds are all kinds that were seen. Any means that the shape exceeded the bounds.
	Kinds Kind
	Any   bool
	// Format is the format of all strings: "date-time", "date", "time", "uri", "email", "uuid"; "" if they have none
	// in common.
	Format string
	// Elem is the shape of all elements of all lists, nil if every list was empty.
	Elem *Shape
	// Fields are the members of all objects, sorted by name; nil if the objects are maps: their keys are data and are
	// not recorded. Values is then the shape of the map values.
	Fields []Field
	Values *Shape
}

// Field is one member of an object.
type Field struct {
	Name string
	// Optional means that some of the objects did not have it.
	Optional bool
	Shape    Shape
}
