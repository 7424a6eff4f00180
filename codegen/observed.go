package codegen

import (
	"maps"
	"slices"
	"strconv"

	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// DeclaresResult reports whether the tool's output schema is more specific than any
// value or any object.
func DeclaresResult(t tool.Tool) bool {
	return len(t.Output) > 0 && !isUntyped(newConverter(t.ID.Name).output(t))
}

// Form returns how the results of a tool are read, by its definition.
func Form(t tool.Tool) tool.Form {
	_, wrapped := t.ResultSchema()
	form := tool.Form{Wrapped: wrapped}
	if len(t.Output) > 0 {
		kinds := newConverter(t.ID.Name).output(t).scalars()
		form.Texts = kinds[stringKind] && !kinds[boolKind]
		form.Numbers = (kinds[intKind] || kinds[numberKind]) && !kinds[stringKind]
	}
	return form
}

// scalars returns the kinds of a type and of its arms.
func (t *typ) scalars() map[kind]bool {
	kinds := map[kind]bool{t.kind: true}
	for _, v := range t.values {
		kinds[v.kind] = true
	}
	if t.kind == unionKind {
		for _, arm := range t.arms {
			maps.Copy(kinds, arm.scalars())
		}
	}
	return kinds
}

func isUntyped(t *typ) bool {
	return t.kind == anyKind || t.kind == mapKind && t.elem.kind == anyKind
}

// applyObserved sets the result of the function to the observed type if no useful one is declared.
func (c *converter) applyObserved(fn *function, t tool.Tool) {
	if t.Observed == nil || t.Observed.Count <= 0 || !isUntyped(fn.result) {
		return
	}
	result := c.observedType(t.Observed.Shape, place{hint: "Result"})
	if result.kind == anyKind {
		return
	}
	fn.result, fn.observed = result, t.Observed.Count
}

// stubNotes returns the notes for a wrapper's file, including one about an observed result. Signatures show
// observedMark instead.
func (fn function) stubNotes() []string {
	if fn.observed == 0 {
		return fn.notes
	}
	return append(slices.Clone(fn.notes), "Result observed "+strconv.Itoa(fn.observed)+ObservedNote)
}

// ObservedNote is in the file of a wrapper with an observed result type.
const ObservedNote = "x, not declared."

// observedMark returns the comment after a signature with an observed result.
func observedMark(fn function, lang Language) string {
	switch {
	case fn.observed == 0:
		return ""
	case lang == TypeScript:
		return "  // observed " + strconv.Itoa(fn.observed) + "x"
	}
	return "  # observed " + strconv.Itoa(fn.observed) + "x"
}

// observedType returns the type of a shape. Objects in it get definitions, as those of a schema do.
func (c *converter) observedType(s jsontype.Shape, at place) *typ {
	if s.Any {
		return anyType
	}
	var types []*typ
	for _, scalar := range []struct {
		kind jsontype.Kind
		typ  *typ
	}{{jsontype.Bool, boolType}, {jsontype.Int, intType}, {jsontype.Number, numberType}, {jsontype.String, stringType}} {
		if s.Kinds&scalar.kind != 0 {
			types = append(types, scalar.typ)
		}
	}
	if s.Kinds&jsontype.List != 0 {
		types = append(types, listOf(c.observedElem(s.Elem, at)))
	}
	if s.Kinds&jsontype.Object != 0 {
		types = append(types, c.observedObject(s, at))
	}
	if s.Kinds&jsontype.Blob != 0 {
		types = append(types, blobType)
	}
	if s.Kinds&jsontype.Null != 0 {
		types = append(types, nullType)
	}
	return union(types...)
}

func (c *converter) observedElem(s *jsontype.Shape, at place) *typ {
	if s == nil {
		return anyType
	}
	return c.observedType(*s, at.in(singular(at.hint)))
}

func (c *converter) observedObject(s jsontype.Shape, at place) *typ {
	if len(s.Fields) == 0 {
		return mapOf(c.observedElem(s.Values, at))
	}
	t := &typ{kind: objectKind}
	for _, f := range s.Fields {
		t.fields = append(t.fields, field{
			name: f.Name, typ: c.observedType(f.Shape, at.in(f.Name)), required: !f.Optional, doc: doc{notes: formatNotes(f.Shape)},
		})
	}
	return refTo(c.define(t, at.hint, nil))
}

// formatNotes returns the common format of all observed strings of a member.
func formatNotes(s jsontype.Shape) []string {
	var notes []string
	if s.Format != "" {
		notes = append(notes, s.Format)
	}
	if s.Elem != nil && s.Elem.Format != "" {
		notes = append(notes, "each "+s.Elem.Format)
	}
	return notes
}

// blobImport returns the import of the type Blob if the function uses it.
func blobImport(fn function) code {
	if !fn.result.hasBlob() && !slices.ContainsFunc(fn.defs, func(d *def) bool { return d.typ.hasBlob() }) {
		return ""
	}
	return ", type Blob"
}

// hasBlob reports whether t contains bytes, outside of definitions.
func (t *typ) hasBlob() bool {
	return t.kind == blobKind || t.elem != nil && t.elem.hasBlob() ||
		slices.ContainsFunc(t.arms, (*typ).hasBlob) || slices.ContainsFunc(t.fields, func(f field) bool { return f.typ.hasBlob() })
}
