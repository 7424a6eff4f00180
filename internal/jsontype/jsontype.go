// Package jsontype says what the values of many results have in common: kinds,
// members, element types, formats of strings. It is how the gateway learns the
// type of a result that its upstream has not declared. A shape never holds a
// value, a size or a count, and it is bounded whatever it was made of: results
// are untrusted.
package jsontype

// Kind is a set of JSON's kinds of value, and bytes.
type Kind uint8

// The kinds. A number that was whole is Int; one that was not makes it Number.
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

// Shape is what a set of values has in common. The zero Shape is that of no
// value at all: merged with another it is that other. A Shape is a value; what
// it points to is never changed once it is made.
type Shape struct {
	// Kinds are all that were seen. Any says that there was too much to tell.
	Kinds Kind
	Any   bool
	// Format is what all strings had: "date-time", "date", "time", "uri", "email",
	// "uuid"; "" where they had none in common.
	Format string
	// Elem is the shape of all elements of all lists, nil if every list was empty.
	Elem *Shape
	// Fields are the members of all objects, sorted by name; nil where the objects
	// are maps: their keys are values too and are not kept. Values is then the
	// shape of what they hold.
	Fields []Field
	Values *Shape
}

// Field is one member of an object.
type Field struct {
	Name string
	// Optional says that some of the objects did not have it.
	Optional bool
	Shape    Shape
}
