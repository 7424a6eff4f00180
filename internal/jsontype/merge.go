package jsontype

import (
	"slices"
	"strings"
)

// Bounds of a shape.
const (
	// maxDepth is the nesting of lists, maps and objects that is described; below it the shape is any.
	maxDepth = 12
	// maxNodes bounds the number of shapes in one, itself included.
	maxNodes = 1000
	// maxFields is how many members an object may have; one with more counts as a map.
	maxFields = 128
	// maxLoose is maxFields for members of which none is in every object.
	maxLoose = 16
)

func anyShape() Shape { return Shape{Any: true} }

// Merge returns the shape of the values of both. It is commutative, associative and idempotent; beyond the bounds the
// deepest levels become any.
func Merge(a, b Shape) Shape { return limitSize(merge(a, b)) }

func merge(a, b Shape) Shape {
	switch {
	case a.Any || b.Any:
		return anyShape()
	case a.Kinds == 0:
		return b
	case b.Kinds == 0:
		return a
	}
	s := Shape{Kinds: normalizeKinds(a.Kinds | b.Kinds), Format: commonFormat(a, b), Elem: mergeElem(a.Elem, b.Elem)}
	s.mergeObjects(a, b)
	return s
}

// normalizeKinds drops Int where there is Number.
func normalizeKinds(k Kind) Kind {
	if k&Number != 0 {
		k &^= Int
	}
	return k
}

func commonFormat(a, b Shape) string {
	switch {
	case a.Kinds&String == 0:
		return b.Format
	case b.Kinds&String == 0 || a.Format == b.Format:
		return a.Format
	}
	return ""
}

func mergeElem(a, b *Shape) *Shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	elem := merge(*a, *b)
	return &elem
}

// mergeObjects sets the members of s to those of a and b, or makes it a map.
func (s *Shape) mergeObjects(a, b Shape) {
	switch {
	case a.Kinds&Object == 0:
		s.Fields, s.Values = b.Fields, b.Values
	case b.Kinds&Object == 0:
		s.Fields, s.Values = a.Fields, a.Values
	case a.Values != nil || b.Values != nil:
		s.Values = mergeElem(a.values(), b.values())
	default:
		s.Fields = mergeFields(a.Fields, b.Fields)
		if len(s.Fields) > maxFields || loose(s.Fields) {
			s.Values = s.values()
			s.Fields = nil
		}
	}
}

// values returns the shape of all member values, nil if the objects were empty.
func (s *Shape) values() *Shape {
	if s.Values != nil || len(s.Fields) == 0 {
		return s.Values
	}
	var all Shape
	for _, f := range s.Fields {
		all = merge(all, f.Shape)
	}
	return &all
}

// loose reports whether the objects have many members but none in common: then the names are rather map keys.
func loose(fields []Field) bool {
	return len(fields) > maxLoose && !slices.ContainsFunc(fields, func(f Field) bool { return !f.Optional })
}

// mergeFields joins two lists that are sorted by name.
func mergeFields(a, b []Field) []Field {
	all := make([]Field, 0, max(len(a), len(b)))
	for len(a) > 0 || len(b) > 0 {
		switch order := compare(a, b); {
		case order < 0:
			all, a = append(all, optional(a[0])), a[1:]
		case order > 0:
			all, b = append(all, optional(b[0])), b[1:]
		default:
			both := Field{Name: a[0].Name, Optional: a[0].Optional || b[0].Optional, Shape: merge(a[0].Shape, b[0].Shape)}
			all, a, b = append(all, both), a[1:], b[1:]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// compare orders the first fields of two lists that are not both empty.
func compare(a, b []Field) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Name, b[0].Name)
}

func optional(f Field) Field {
	f.Optional = true
	return f
}

// limitSize cuts the deepest levels off a shape with too many nodes.
func limitSize(s Shape) Shape {
	for depth := maxDepth; s.nodes() > maxNodes && depth > 0; depth-- {
		s = s.cut(depth)
	}
	return s
}

func (s *Shape) nodes() int {
	n := 1
	for inner := range s.inner {
		n += inner.nodes()
	}
	return n
}

// inner yields the direct parts of s.
func (s *Shape) inner(yield func(*Shape) bool) {
	for _, inner := range []*Shape{s.Elem, s.Values} {
		if inner != nil && !yield(inner) {
			return
		}
	}
	for i := range s.Fields {
		if !yield(&s.Fields[i].Shape) {
			return
		}
	}
}

// cut replaces everything depth levels down by any.
func (s Shape) cut(depth int) Shape {
	if depth == 0 && (s.Elem != nil || s.Values != nil || s.Fields != nil) {
		return anyShape()
	}
	inside := func(inner *Shape) *Shape {
		if inner == nil {
			return nil
		}
		cut := inner.cut(depth - 1)
		return &cut
	}
	s.Elem, s.Values = inside(s.Elem), inside(s.Values)
	s.Fields = slices.Clone(s.Fields)
	for i := range s.Fields {
		s.Fields[i].Shape = s.Fields[i].Shape.cut(depth - 1)
	}
	return s
}

// ListOf returns the shape of lists with such elements.
func ListOf(elements Shape) Shape {
	s := Shape{Kinds: List}
	if elements.Any || elements.Kinds != 0 {
		s.Elem = &elements
	}
	return limitSize(s.cut(maxDepth))
}
