package jsontype

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDamaged means that a text is not an encoded shape, or not one that this package would make.
var ErrDamaged = errors.New("not a shape")

// wire is the JSON form of a shape. Its names are short because there are many.
type wire struct {
	Kinds  Kind        `json:"k,omitempty"`
	Any    bool        `json:"any,omitempty"`
	Format string      `json:"f,omitempty"`
	Elem   *wire       `json:"e,omitempty"`
	Values *wire       `json:"v,omitempty"`
	Fields []wireField `json:"p,omitempty"`
}

type wireField struct {
	Name     string `json:"n"`
	Optional bool   `json:"o,omitempty"`
	Shape    wire   `json:"s"`
}

// MarshalJSON writes the shape for UnmarshalJSON.
func (s Shape) MarshalJSON() ([]byte, error) { return json.Marshal(s.wire()) }

func (s Shape) wire() wire {
	w := wire{Kinds: s.Kinds, Any: s.Any, Format: s.Format}
	if s.Elem != nil {
		w.Elem = new(s.Elem.wire())
	}
	if s.Values != nil {
		w.Values = new(s.Values.wire())
	}
	for _, f := range s.Fields {
		w.Fields = append(w.Fields, wireField{f.Name, f.Optional, f.Shape.wire()})
	}
	return w
}

// UnmarshalJSON reads only what MarshalJSON wrote: the stored data may be damaged or hostile. The error is
// ErrDamaged.
func (s *Shape) UnmarshalJSON(data []byte) error {
	var w wire
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	read, ok := w.shape(0)
	if !ok || read.nodes() > maxNodes {
		return ErrDamaged
	}
	*s = read
	return nil
}

// shape decodes a shape. ok is false for one that neither Merge nor Of makes.
func (w *wire) shape(depth int) (s Shape, ok bool) {
	s = Shape{Kinds: w.Kinds, Any: w.Any, Format: w.Format}
	if depth > maxDepth || w.Any && !w.onlyAny() || normalizeKinds(w.Kinds) != w.Kinds || !w.fitsKinds() {
		return s, false
	}
	elem, okElem := w.Elem.inside(depth)
	values, okValues := w.Values.inside(depth)
	fields, okFields := w.members(depth)
	s.Elem, s.Values, s.Fields = elem, values, fields
	return s, okElem && okValues && okFields
}

// fitsKinds reports whether the details match the kinds.
func (w *wire) fitsKinds() bool {
	switch {
	case w.Format != "" && (w.Kinds&String == 0 || !isFormat(w.Format)), w.Elem != nil && w.Kinds&List == 0:
		return false
	case w.Values != nil && w.Fields != nil:
		return false
	}
	return w.Kinds&Object != 0 || w.Values == nil && w.Fields == nil
}

func (w *wire) onlyAny() bool {
	return w.Kinds == 0 && w.Format == "" && w.Elem == nil && w.Values == nil && w.Fields == nil
}

func (w *wire) inside(depth int) (*Shape, bool) {
	if w == nil {
		return nil, true
	}
	s, ok := w.shape(depth + 1)
	return &s, ok && s.isNonEmpty()
}

// isNonEmpty reports whether s is the shape of at least one value.
func (s *Shape) isNonEmpty() bool { return s.Any || s.Kinds != 0 }

func (w *wire) members(depth int) ([]Field, bool) {
	if len(w.Fields) > maxFields {
		return nil, false
	}
	var fields []Field
	for i, f := range w.Fields {
		s, ok := f.Shape.shape(depth + 1)
		if !ok || !s.isNonEmpty() || !isName(f.Name) || i > 0 && f.Name <= w.Fields[i-1].Name {
			return nil, false
		}
		fields = append(fields, Field{f.Name, f.Optional, s})
	}
	return fields, !loose(fields)
}
