package codegen

import "slices"

const (
	// maxNodes bounds the work for one schema; the largest of a real server has 3,000.
	maxNodes = 20_000
	// maxDepth is how deep types may be nested before the rest is any.
	maxDepth = 40
	// maxFields is how many members of one object get a type of their own.
	maxFields = 500
)

// converter turns the schemas of one tool into the neutral model. It never
// fails: what it does not understand becomes any.
type converter struct {
	root  any
	refs  map[string]*reference
	named map[string]bool // names that are taken
	byKey map[string]*def
	defs  []*def
	nodes int
	// anchors is made for the first reference that needs it.
	anchors map[string]any
}

// place is where in a schema the converter is.
type place struct {
	// hint is what an object here would be called.
	hint  string
	depth int
}

func (p place) in(hint string) place { return place{hint: hint, depth: p.depth + 1} }

// newConverter starts with the names that its definitions must not take.
func newConverter(taken ...string) *converter {
	c := &converter{named: map[string]bool{}, byKey: map[string]*def{}}
	for _, name := range taken {
		c.named[name] = true
	}
	return c
}

// enter makes root the document that references point into.
func (c *converter) enter(root any) {
	c.root, c.refs, c.anchors = root, map[string]*reference{}, nil
}

// convert returns the type that a schema describes.
func (c *converter) convert(schema any, at place) *typ {
	o, ok := schema.(*object)
	if c.nodes++; !ok || c.nodes > maxNodes || at.depth > maxDepth {
		return anyType
	}
	if !structural(o) {
		if o.has("$ref") {
			return c.reference(o.text("$ref"), at)
		}
		if arms := o.list("allOf"); len(arms) == 1 {
			return c.convert(arms[0], at.in(at.hint))
		}
	}
	o = c.flatten(o, 0)
	t := c.shape(o, at)
	if o.get("nullable") == true && t.kind != anyKind {
		t = union(t, nullType)
	}
	return t
}

func (c *converter) shape(o *object, at place) *typ {
	if values, ok := constants(o); ok {
		return literals(values)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if arms := o.list(key); shaped(arms) {
			return c.alternatives(o, key, arms, at)
		}
	}
	return c.byType(o, at)
}

// alternatives converts oneOf and anyOf; what stands beside them holds for every arm.
func (c *converter) alternatives(o *object, key string, arms []any, at place) *typ {
	base := o.clone(key, "description", "title", "default", "examples", "$defs", "definitions")
	types := make([]*typ, 0, len(arms))
	for _, arm := range arms[:min(len(arms), maxFields)] {
		a, ok := arm.(*object)
		if ok && structuralBeyondType(base) {
			arm = merge(c.flatten(a, 0), base)
		}
		types = append(types, c.convert(arm, at.in(at.hint+" "+variant(a))))
	}
	return union(types...)
}

// variant returns the value that tells an arm of a union from the others, if it is a word.
func variant(o *object) string {
	props := o.object("properties")
	for _, name := range props.members() {
		prop, _ := props.get(name).(*object)
		if values, ok := constants(prop); ok && len(values) == 1 {
			word, _ := values[0].(string)
			return word
		}
	}
	return ""
}

// shaped reports whether arms say anything about types, and not only which members are required.
func shaped(arms []any) bool {
	return slices.ContainsFunc(arms, func(arm any) bool {
		o, ok := arm.(*object)
		return ok && o.hasAny("$ref", "type", "properties", "items", "prefixItems", "enum", "const", "allOf", "anyOf", "oneOf", "additionalProperties")
	})
}

func (c *converter) byType(o *object, at place) *typ {
	var types []*typ
	for _, t := range typesOf(o) {
		if sub, ok := t.(*object); ok { // draft 3 has schemas here
			types = append(types, c.convert(sub, at.in(at.hint)))
			continue
		}
		types = append(types, c.oneType(t, o, at))
	}
	return union(types...)
}

// typesOf returns the type keyword as a list; where it is missing, what the other keywords are about.
func typesOf(o *object) []any {
	switch t := o.get("type").(type) {
	case string:
		return []any{t}
	case []any:
		return t
	}
	switch {
	case o.hasAny("properties", "additionalProperties", "patternProperties", "required", "propertyNames", "minProperties"):
		return []any{"object"}
	case o.hasAny("items", "prefixItems", "minItems", "maxItems", "uniqueItems"):
		return []any{"array"}
	case o.hasAny("pattern", "minLength", "maxLength", "contentEncoding"):
		return []any{"string"}
	case o.hasAny("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return []any{"number"}
	}
	return nil
}

func (c *converter) oneType(name any, o *object, at place) *typ {
	switch name {
	case "string":
		return stringType
	case "integer":
		return intType
	case "number":
		return numberType
	case "boolean":
		return boolType
	case "null":
		return nullType
	case "array":
		return c.array(o, at)
	case "object":
		return c.object(o, at)
	}
	return anyType
}

func (c *converter) array(o *object, at place) *typ {
	items, rest := o.list("prefixItems"), o.get("items")
	if len(items) == 0 { // before 2020-12
		if list := o.list("items"); len(list) > 0 {
			items, rest = list, o.get("additionalItems")
		}
	}
	if len(items) == 0 || len(items) > 32 {
		return listOf(c.convert(rest, at.in(singular(at.hint))))
	}
	t := &typ{kind: tupleKind}
	for _, item := range items {
		t.arms = append(t.arms, c.convert(item, at.in(singular(at.hint))))
	}
	if _, ok := rest.(*object); ok {
		t.elem = c.convert(rest, at.in(singular(at.hint)))
	}
	return t
}

// object returns a reference to a definition, or a map where no member has a name.
func (c *converter) object(o *object, at place) *typ {
	t := &typ{kind: objectKind, fields: c.fields(o, at), open: isOpen(o)}
	t.closed = c.isClosed(o, len(t.fields))
	if len(t.fields) == 0 {
		return mapOf(c.others(o, at))
	}
	return refTo(c.define(t, at.hint, o))
}

// others is the type of the members that have no name in the schema.
func (c *converter) others(o *object, at place) *typ {
	var types []*typ
	patterns := o.object("patternProperties")
	for _, p := range patterns.members() {
		types = append(types, c.convert(patterns.get(p), at.in(singular(at.hint))))
	}
	switch more := o.get("additionalProperties").(type) {
	case *object:
		types = append(types, c.convert(more, at.in(singular(at.hint))))
	case bool:
		if more {
			return anyType
		}
	}
	return union(types...)
}

func isOpen(o *object) bool {
	if more, ok := o.get("additionalProperties").(bool); ok {
		return more
	}
	return o.hasAny("additionalProperties", "patternProperties")
}

// isClosed reports whether a schema, of which fields members are known, forbids
// all others. One that is not known whole forbids nothing.
func (c *converter) isClosed(o *object, fields int) bool {
	return o.get("additionalProperties") == false && !o.hasAny("patternProperties", "$ref", "allOf") &&
		fields >= len(o.object("properties").members()) && c.nodes <= maxNodes
}

func (c *converter) fields(o *object, at place) []field {
	props, required := o.object("properties"), stringSet(o.strings("required"))
	var fields []field
	for _, name := range append(slices.Clone(props.members()), missing(o)...) {
		if len(fields) == maxFields || len(name) > maxName || props.get(name) == false {
			continue
		}
		f := c.field(name, props.get(name), at)
		f.required = f.required || required[name]
		fields = append(fields, f)
	}
	return fields
}

// missing returns the members that are required and described nowhere.
func missing(o *object) []string {
	props := o.object("properties")
	return slices.DeleteFunc(o.strings("required"), props.has)
}

func (c *converter) field(name string, schema any, at place) field {
	o, _ := schema.(*object)
	return field{
		name: name, typ: c.convert(schema, at.in(name)),
		required: o.get("required") == true, // draft 3
		doc:      c.document(o), preset: preset(c.follow(o)),
	}
}

// define gives an object type a name, or finds the definition that says the same.
func (c *converter) define(t *typ, hint string, o *object) *def {
	d := &def{typ: t, doc: doc{text: o.text("description")}}
	key := t.key() + d.doc.text
	if known := c.byKey[key]; known != nil {
		return known
	}
	d.name = c.name(hint)
	c.byKey[key] = d
	c.defs = append(c.defs, d)
	return d
}

func stringSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}
