package codegen

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxPointer is the maximum length of a resolved reference, in bytes.
const maxPointer = 4000

// reference is the conversion, running or finished, of a schema that may be recursive.
type reference struct {
	hint string
	// defsBefore is the number of definitions when the conversion began.
	defsBefore int
	result     *typ // nil while the conversion runs
	// def is set when the schema turns out to be recursive.
	def *def
}

// reference converts the target of a $ref, once. It resolves only pointers and anchors
// in the same document and never fetches anything.
func (c *converter) reference(ref string, at place) *typ {
	target, ok := c.resolve(ref)
	if !ok {
		return anyType
	}
	hint, key := refHint(ref, at.hint), any(ref)
	if o, ok := target.(*object); ok {
		key = targetKey{o}
	}
	return c.convertOnce(key, hint, func() *typ { return c.convert(target, at.in(hint)) })
}

// targetKey identifies the target of references, independent of their text.
type targetKey struct{ schema *object }

// convertOnce converts the target of key, a reference or a schema. A recursive use returns a
// reference to its definition.
func (c *converter) convertOnce(key any, hint string, convert func() *typ) *typ {
	if r := c.refs[key]; r != nil {
		return c.reuse(r)
	}
	r := &reference{hint: hint, defsBefore: len(c.defs)}
	c.refs[key] = r
	r.result = c.closeCycle(r, convert())
	return r.result
}

// reuse returns the type of a reference that was used before.
func (c *converter) reuse(r *reference) *typ {
	if r.result != nil {
		return r.result
	}
	if r.def == nil {
		r.def = &def{name: c.name(r.hint)}
	}
	return refTo(r.def)
}

// closeCycle completes the definition of a recursive schema with its type t. The definition
// replaces one that was just made for the same object; otherwise it is an alias.
func (c *converter) closeCycle(r *reference, t *typ) *typ {
	if r.def == nil {
		return t
	}
	i := slices.Index(c.defs, t.def)
	if t.kind == refKind && i >= r.defsBefore && t.def.typ.kind == objectKind {
		r.def.typ, r.def.doc = t.def.typ, t.def.doc
		c.defs[i] = r.def
		for key, d := range c.byKey {
			if d == t.def {
				c.byKey[key] = r.def
			}
		}
		return refTo(r.def)
	}
	r.def.typ = t
	c.defs = append(c.defs, r.def)
	return refTo(r.def)
}

// breakCycles replaces aliases that refer to themselves without an object or a list in
// between, as in {"anyOf": [{"$ref": "#"}]}, by any.
func (c *converter) breakCycles() {
	for _, d := range c.defs {
		if d.typ.kind != objectKind && d.typ.reaches(d, len(c.defs)) {
			d.typ = anyType
		}
	}
}

// reaches reports whether the type refers to d through unions and aliases alone.
func (t *typ) reaches(d *def, steps int) bool {
	switch {
	case steps < 0:
		return true
	case t.kind == unionKind:
		return slices.ContainsFunc(t.arms, func(arm *typ) bool { return arm.reaches(d, steps) })
	case t.kind == refKind:
		return t.def == d || t.def.typ.kind != objectKind && t.def.typ.reaches(d, steps-1)
	}
	return false
}

// target returns the object that a schema's $ref refers to, nil if there is none.
func (c *converter) target(o *object) *object {
	v, _ := c.resolve(o.Text("$ref"))
	target, _ := v.(*object)
	return target
}

// follow returns the end of a chain of schemas that are only references, nil if the chain is too long.
func (c *converter) follow(o *object) *object {
	for range maxFlatten {
		if !o.Has("$ref") || structural(o) {
			return o
		}
		o = c.target(o)
	}
	return nil
}

// resolve returns the target of a local reference: "#", "#/a/b" or "#anchor".
func (c *converter) resolve(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || len(ref) > maxPointer {
		return nil, false
	}
	if pointer == "" {
		return c.root, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return c.anchor(pointer)
	}
	v := c.root
	for part := range strings.SplitSeq(pointer[1:], "/") {
		if v, ok = step(v, part); !ok {
			return nil, false
		}
	}
	return v, true
}

func step(v any, part string) (any, bool) {
	part = pointerKey(part)
	switch v := v.(type) {
	case *object:
		return v.Get(part), v.Has(part)
	case []any:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

func pointerKey(part string) string {
	if s, err := url.PathUnescape(part); err == nil {
		part = s
	}
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}

func (c *converter) anchor(name string) (any, bool) {
	if c.anchors == nil {
		c.anchors = map[string]any{}
		collectAnchors(c.root, c.anchors)
	}
	v, ok := c.anchors[name]
	return v, ok
}

func collectAnchors(v any, into map[string]any) {
	switch v := v.(type) {
	case *object:
		for _, name := range anchorsOf(v) {
			if _, known := into[name]; !known {
				into[name] = v
			}
		}
		for _, k := range v.Keys() {
			collectAnchors(v.Get(k), into)
		}
	case []any:
		for _, item := range v {
			collectAnchors(item, into)
		}
	}
}

// refHint returns the last part of a pointer as the hint for a name, or hint if that part is not a name.
func refHint(ref, hint string) string {
	parts := strings.Split(ref, "/")
	last := pointerKey(parts[len(parts)-1])
	if name, ok := strings.CutPrefix(ref, "#"); ok && len(parts) < 2 && name != "" {
		return name
	}
	switch {
	case len(parts) < 2, last == "items", last == "additionalProperties":
		return hint
	}
	if _, err := strconv.Atoi(last); err == nil {
		return hint
	}
	return last
}
