package codegen

import "slices"

// maxFlatten is how deep allOf may be nested.
const maxFlatten = 8

// structural reports whether a schema says anything about the shape of a value
// beside a reference, allOf, and words.
func structural(o *object) bool {
	return o.has("type") || structuralBeyondType(o)
}

func structuralBeyondType(o *object) bool {
	return o.hasAny("properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
		"enum", "const", "anyOf", "oneOf")
}

// flatten returns a schema that says the same without allOf, nor a reference
// beside other keywords.
func (c *converter) flatten(o *object, depth int) *object {
	if !o.hasAny("allOf", "$ref") || depth > maxFlatten {
		return o
	}
	flat := o.clone("allOf", "$ref")
	if o.has("$ref") {
		flat = merge(flat, c.flatten(c.target(o), depth+1))
	}
	for _, arm := range o.list("allOf") {
		if c.nodes++; c.nodes > maxNodes {
			break
		}
		if a, ok := arm.(*object); ok {
			flat = merge(flat, c.flatten(a, depth+1))
		}
	}
	return flat
}

// merge returns a schema for what fits a and b, as near as a type can be: the
// words are a's where both have some.
func merge(a, b *object) *object {
	m := a.clone()
	for _, key := range b.members() {
		if !m.has(key) {
			m.set(key, b.get(key))
			continue
		}
		m.set(key, mergeKeyword(key, m.get(key), b.get(key)))
	}
	return m
}

func mergeKeyword(key string, a, b any) any {
	switch key {
	case "properties", "patternProperties":
		return mergeProperties(a, b)
	case "required":
		return mergeLists(a, b)
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
	m := pa.clone()
	for _, name := range pb.members() {
		v := pb.get(name)
		if old, both := m.get(name).(*object); both {
			if add, ok := v.(*object); ok && old != add {
				v = mergeProperty(old, add)
			}
		}
		m.set(name, v)
	}
	return m
}

// mergeProperty leaves the merging of the two to the time of their conversion.
func mergeProperty(a, b *object) *object {
	both := &object{}
	both.set("allOf", []any{a, b})
	for _, key := range []string{"description", "default"} {
		if v := merge(a, b).get(key); v != nil {
			both.set(key, v)
		}
	}
	return both
}

func mergeLists(a, b any) any {
	la, _ := a.([]any)
	lb, _ := b.([]any)
	return slices.Concat(la, lb)
}

// mergeTypes intersects; a contradiction, which no value fits, keeps the first.
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

// containsValue looks for a scalar; objects and lists are not looked for.
func containsValue(list []any, v any) bool {
	if _, ok := v.([]any); ok {
		return false
	}
	return slices.ContainsFunc(list, func(have any) bool {
		_, isList := have.([]any)
		return !isList && have == v
	})
}
