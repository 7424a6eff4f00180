package jsontype

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

const (
	// maxBytes is the longest value that is examined.
	maxBytes = 16 << 20
	// maxVisited is how many nested values of one value are examined.
	maxVisited = 50_000
	// sampled is how many elements of a list, or values of a map, are all examined; of the rest, one in every `every`.
	sampled, every = 128, 64
	// manyAlike is how many members of one kind make an object a map, manySame how many member objects with the same
	// members.
	manyAlike, manySame = 24, 3
)

// Errors of [Of].
var (
	ErrTooLong = errors.New("value is too long for a shape")
	ErrNotJSON = errors.New("value is not JSON")
)

// Of returns the shape of one JSON value. The guest's shape_of implements the same rules; testdata/shapes.json tests
// both:
//
//   - a number without ".", "e" and "E" is an int; int and float together are float;
//   - an object with a key that is not a name (see isName), with more than 128 members,
//     with more than 24 of one kind, or with three or more that are objects with the
//     same two or more names, is a map; so is an object merged with a map;
//   - a member that is not in every object of a list is optional; more than 16 members
//     of which none is in every object make a map;
//   - lists, maps and objects are described 12 levels deep, below that is any.
//
// It examines a small value completely, and a sample of the elements of long lists; time and memory are at most
// linear in the value's length. The error is ErrTooLong (16 MiB) or ErrNotJSON.
func Of(data []byte) (Shape, error) {
	if len(data) > maxBytes {
		return Shape{}, ErrTooLong
	}
	if !json.Valid(data) {
		return Shape{}, ErrNotJSON
	}
	r := reader{data: data, budget: maxVisited}
	return limitSize(r.value(0)), nil
}

// reader reads JSON that is known to be valid.
type reader struct {
	data   []byte
	pos    int
	budget int // how many values may still be examined
}

// next returns the next byte that is not white space, 0 at the end.
func (r *reader) next() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

func (r *reader) value(depth int) Shape {
	r.budget--
	switch c := r.next(); c {
	case '{', '[':
		if depth == maxDepth || r.budget < 0 {
			r.skip()
			return anyShape()
		}
		r.pos++
		if c == '{' {
			return r.object(depth)
		}
		return r.list(depth)
	case '"':
		return r.string()
	case 't', 'f', 'n':
		kind := Bool
		if c == 'n' {
			kind = Null
		}
		r.word()
		return Shape{Kinds: kind}
	}
	if bytes.ContainsAny(r.word(), ".eE") {
		return Shape{Kinds: Number}
	}
	return Shape{Kinds: Int}
}

// word reads a number, or true, false, null.
func (r *reader) word() []byte {
	start := r.pos
	for ; r.pos < len(r.data); r.pos++ {
		switch r.data[r.pos] {
		case ' ', '\t', '\r', '\n', ',', ']', '}':
			return r.data[start:r.pos]
		}
	}
	return r.data[start:]
}

// readString reads a string and returns it with its quotes.
func (r *reader) readString() []byte {
	start := r.pos
	for r.pos++; r.pos < len(r.data); r.pos++ {
		at := bytes.IndexAny(r.data[r.pos:], `"\`)
		if at < 0 {
			r.pos = len(r.data)
			break
		}
		if r.pos += at; r.data[r.pos] == '"' {
			r.pos++
			break
		}
		r.pos++ // the escaped character
	}
	return r.data[start:min(r.pos, len(r.data))]
}

func (r *reader) string() Shape {
	text := r.readString()
	s := Shape{Kinds: String}
	if len(text) <= maxFormatted {
		s.Format = formatOf(unquote(text))
	}
	return s
}

// unquote decodes a string.
func unquote(quoted []byte) string {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

// skip skips a value.
func (r *reader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case 0:
			return
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			depth--
			r.pos++
		case '"':
			r.readString()
		default:
			r.word()
		}
		if depth <= 0 {
			return
		}
	}
}

func (r *reader) list(depth int) Shape {
	s := Shape{Kinds: List}
	for i := 0; r.more(']'); i++ {
		if r.skipUnsampled(i) {
			continue
		}
		elem := r.value(depth + 1)
		s.Elem = mergeElem(s.Elem, &elem)
	}
	return s
}

// more reports whether there is another element, and reads the end if not.
func (r *reader) more(end byte) bool {
	switch r.next() {
	case end:
		r.pos++
		return false
	case 0:
		return false
	}
	return true
}

// skipUnsampled skips the element with this number if it is not in the sample.
func (r *reader) skipUnsampled(i int) bool {
	if i < sampled || i%every == 0 && r.budget > 0 {
		return false
	}
	r.skip()
	return true
}

func (r *reader) object(depth int) Shape {
	var o members
	for i := 0; r.more('}'); i++ {
		key := r.readString()
		if o.isMap && r.skipUnsampled(i) {
			continue
		}
		r.next()
		o.add(key, r.value(depth+1))
	}
	return o.shape()
}

// members collects the members of one object.
type members struct {
	fields []Field
	isMap  bool
	values Shape
}

func (o *members) add(key []byte, value Shape) {
	if o.isMap {
		o.values = merge(o.values, value)
		return
	}
	name := ""
	if len(key) <= 6*maxName+2 { // all of it escaped
		name = unquote(key)
	}
	o.fields = append(o.fields, Field{Name: strings.Clone(name), Shape: value})
	if !isName(name) || len(o.fields) > maxFields {
		o.becomeMap()
	}
}

func (o *members) becomeMap() {
	o.isMap = true
	for _, f := range o.fields {
		o.values = merge(o.values, f.Shape)
	}
	o.fields = nil
}

func (o *members) shape() Shape {
	slices.SortStableFunc(o.fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	o.fields = mergeDuplicates(o.fields)
	if alike(o.fields) || sameObjects(o.fields) {
		o.becomeMap()
	}
	if o.isMap {
		return Shape{Kinds: Object, Values: &o.values}
	}
	return Shape{Kinds: Object, Fields: o.fields}
}

// mergeDuplicates merges members with the same name.
func mergeDuplicates(fields []Field) []Field {
	var all []Field
	for _, f := range fields {
		if last := len(all) - 1; last >= 0 && all[last].Name == f.Name {
			all[last].Shape = merge(all[last].Shape, f.Shape)
			continue
		}
		all = append(all, f)
	}
	return all
}

// alike reports whether there are many members, all of one kind.
func alike(fields []Field) bool {
	if len(fields) <= manyAlike {
		return false
	}
	var all Kind
	for _, f := range fields {
		kinds := f.Shape.Kinds &^ Null
		if f.Shape.Any || kinds != 0 && all != 0 && kinds != all {
			return false
		}
		all |= kinds
	}
	return true
}

// sameObjects reports whether all members are objects that have the same members.
func sameObjects(fields []Field) bool {
	if len(fields) < manySame {
		return false
	}
	first := fields[0].Shape
	return len(first.Fields) > 1 && !slices.ContainsFunc(fields, func(f Field) bool {
		return f.Shape.Kinds != Object || !slices.EqualFunc(f.Shape.Fields, first.Fields, func(a, b Field) bool { return a.Name == b.Name })
	})
}
