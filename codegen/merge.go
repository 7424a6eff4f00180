package codegen

import "slices"

// maxFlatten is the maximum nesting of allOf.
const maxFlatten = 8

// structural reports whether a schema constrains the shape of a value, apart from a
// reference, allOf and documentation.
func structural(o *object) bool {
	return o.Has("type") || structuralBeyondType(o)
}

func structuralBeyondType(o *object) bool {
	return o.HasAny("properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
		"unevaluatedProperties", "enum", "const", "anyOf", "oneOf")
}

// flatten returns an equivalent schema without allOf and without a reference next to
// other keywords.
func (c *converter) flatten(o *object, depth int) *object {
	if !o.HasAny("allOf", "$ref") || depth > maxFlatten {
		return o
	}
	flat := collectConditions(o.Clone("allOf", "$ref"))
	if o.Has("$ref") {
		flat = c.join(flat, c.target(o), depth)
	}
	for _, arm := range o.List("allOf") {
		if a, ok := arm.(*object); ok {
			flat = c.join(flat, a, depth)
		}
	}
	return flat
}

// join flattens o and merges it into flat. The size of flat counts towards maxNodes.
func (c *converter) join(flat, o *object, depth int) *object {
	if c.nodes += 1 + len(flat.Object("properties").Keys())/8; c.nodes > maxNodes {
		return allowAdditional(flat)
	}
	return merge(flat, collectConditions(c.flatten(o, depth+1)))
}

// allowAdditional returns a schema that allows further members, for an object with members that are not known.
func allowAdditional(o *object) *object {
	if o.Has("additionalProperties") {
		return o
	}
	o = o.Clone()
	o.Set("additionalProperties", true)
	return o
}

// merge returns a schema for values that fit both a and b, as precisely as a type
// can express. It prefers the documentation of a.
func merge(a, b *object) *object {
	m := a.Clone()
	for _, key := range b.Keys() {
		if !m.Has(key) {
			m.Set(key, b.Get(key))
			continue
		}
		if key == "anyOf" || key == "oneOf" {
			m = mergeAlternatives(m, b.List(key))
			continue
		}
		m.Set(key, mergeKeyword(key, m.Get(key), b.Get(key)))
	}
	return m
}

// mergeAlternatives adds a second list of alternatives under the unused one of anyOf
// and oneOf, which types do not distinguish. It drops a third list.
func mergeAlternatives(o *object, arms []any) *object {
	for _, key := range []string{"anyOf", "oneOf"} {
		if !o.Has(key) {
			o.Set(key, arms)
			return o
		}
	}
	return allowAdditional(o)
}

func mergeKeyword(key string, a, b any) any {
	switch key {
	case "properties", "patternProperties":
		return mergeProperties(a, b)
	case "required", conditionsKey:
		return mergeLists(a, b)
	case "items":
		return mergeItems(a, b)
	case "type":
		return mergeTypes(a, b)
	case "enum":
		return mergeEnums(a, b)
	case "additionalProperties":
		if b == false {
			return b
		}
	case "default", "description", "title":
		if a == nil || a == "" {
			return b
		}
	}
	return a
}

func mergeProperties(a, b any) any {
	pa, _ := a.(*object)
	pb, _ := b.(*object)
	m := pa.Clone()
	for _, name := range pb.Keys() {
		v := pb.Get(name)
		if old, both := m.Get(name).(*object); both {
			if add, ok := v.(*object); ok && old != add {
				v = mergeProperty(old, add)
			}
		}
		m.Set(name, v)
	}
	return m
}

func mergeItems(a, b any) any {
	oa, ok := a.(*object)
	ob, both := b.(*object)
	if ok && both && oa != ob {
		return mergeProperty(oa, ob)
	}
	return a
}

// mergeProperty returns an allOf of both, which is merged when it is converted.
func mergeProperty(a, b *object) *object {
	both := &object{}
	both.Set("allOf", []any{a, b})
	for _, key := range []string{"description", "default"} {
		if v := merge(a, b).Get(key); v != nil {
			both.Set(key, v)
		}
	}
	return both
}

func mergeLists(a, b any) any {
	la, _ := a.([]any)
	lb, _ := b.([]any)
	return slices.Concat(la, lb)
}

// mergeTypes returns the intersection of two type lists, or a if it is empty.
func mergeTypes(a, b any) any {
	la, lb := asList(a), asList(b)
	var both []any
	for _, t := range la {
		switch {
		case containsValue(lb, t):
			both = append(both, t)
		case t == "number" && containsValue(lb, "integer"), t == "integer" && containsValue(lb, "number"):
			both = append(both, "integer")
		}
	}
	if len(both) == 0 {
		return a
	}
	return both
}

func mergeEnums(a, b any) any {
	la, lb := asList(a), asList(b)
	var both []any
	for _, v := range la {
		if containsValue(lb, v) {
			both = append(both, v)
		}
	}
	if len(both) == 0 {
		return a
	}
	return both
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// containsValue reports whether list contains v. It returns false if v is a list.
func containsValue(list []any, v any) bool {
	if _, ok := v.([]any); ok {
		return false
	}
	return slices.ContainsFunc(list, func(have any) bool {
		_, isList := have.([]any)
		return !isList && have == v
	})
}
