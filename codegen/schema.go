package codegen

import (
	"encoding/json"
	"slices"
)

const (
	// maxNodes bounds the work for one schema; the largest of a real server has 3,000.
	maxNodes = 20_000
	// maxDepth is the nesting of types beyond which a type is any.
	maxDepth = 40
	// maxFields is how many members of one object are converted.
	maxFields = 500
)

// converter converts the schemas of one tool to the language-neutral model. It never
// fails: unsupported schemas become any.
type converter struct {
	root       any
	refs       map[any]*reference // by targetKey, composed schema, or text of the reference
	takenNames map[string]bool    // names that are taken
	byKey      map[string]*def
	defs       []*def
	nodes      int
	// anchors is built when the first reference needs it.
	anchors map[string]any
}

// place is the converter's position in a schema.
type place struct {
	// hint is the base of the name for an object here.
	hint  string
	depth int
}

func (p place) in(hint string) place { return place{hint: hint, depth: p.depth + 1} }

// newConverter returns a converter that does not use the names in taken for its definitions.
func newConverter(taken ...string) *converter {
	c := &converter{takenNames: map[string]bool{}, byKey: map[string]*def{}}
	for _, name := range taken {
		c.takenNames[name] = true
	}
	return c
}

// enter makes root the document for references.
func (c *converter) enter(root any) {
	normalizeRefs(root)
	c.root, c.refs, c.anchors = root, map[any]*reference{}, nil
}

// convert returns the type that a schema describes.
func (c *converter) convert(schema any, at place) *typ {
	o, ok := schema.(*object)
	if c.nodes++; !ok || c.nodes > maxNodes || at.depth > maxDepth {
		return anyType
	}
	var t *typ
	switch alias := c.alias(o); {
	case alias == nil:
		t = c.shape(o, at)
	case alias.Has("$ref"):
		t = c.reference(alias.Text("$ref"), at)
	default:
		t = c.convert(alias, at.in(at.hint))
	}
	if o.Get("nullable") == true && t.kind != anyKind {
		t = union(t, nullType)
	}
	return t
}

// alias returns the schema that o merely refers to, documentation aside: o itself if
// it has a $ref, or the only arm of its allOf. It returns nil if there is none.
func (c *converter) alias(o *object) *object {
	if structural(o) || conditional(o) {
		return nil
	}
	var said []*object
	for _, arm := range o.List("allOf") {
		if a, ok := arm.(*object); ok && (structural(a) || conditional(a) || a.HasAny("$ref", "allOf")) {
			said = append(said, a)
		}
	}
	switch {
	case o.Has("$ref") && len(said) == 0:
		return o
	case !o.Has("$ref") && len(said) == 1:
		return said[0]
	}
	return nil
}

// shape converts a schema with constraints of its own. A composed schema may be
// recursive through its parts.
func (c *converter) shape(o *object, at place) *typ {
	if !o.HasAny("allOf", "$ref") {
		return c.flat(o, at)
	}
	return c.convertOnce(o, at.hint, func() *typ { return c.flat(c.flatten(o, 0), at) })
}

// flat converts a schema that has neither allOf nor $ref.
func (c *converter) flat(o *object, at place) *typ {
	if values, ok := constants(o); ok {
		return literals(allowedValues(values, o))
	}
	o = withConditions(o)
	for _, key := range []string{"oneOf", "anyOf"} {
		if arms := o.List(key); describesTypes(arms) {
			return c.alternatives(o, key, arms, at)
		}
	}
	return c.byType(o, at)
}

// alternatives converts oneOf and anyOf. Sibling keywords apply to every arm.
func (c *converter) alternatives(o *object, key string, arms []any, at place) *typ {
	base := o.Clone(key, "description", "title", "default", "examples", "$defs", "definitions")
	types := make([]*typ, 0, len(arms))
	for _, arm := range arms[:min(len(arms), maxFields)] {
		a, ok := arm.(*object)
		if ok && (structuralBeyondType(base) || base.Has("type") && !structural(a) && !a.HasAny("$ref", "allOf")) {
			arm = merge(c.flatten(a, 0), base)
		}
		types = append(types, c.convert(arm, at.in(at.hint+" "+variantName(a))))
	}
	return union(types...)
}

// variantName returns the discriminating constant of an arm of a union, if it is a string.
func variantName(o *object) string {
	props := o.Object("properties")
	for _, name := range props.Keys() {
		prop, _ := props.Get(name).(*object)
		if values, ok := constants(prop); ok && len(values) == 1 {
			word, _ := values[0].(string)
			return word
		}
	}
	return ""
}

// describesTypes reports whether arms constrain types, and not only which members are required.
func describesTypes(arms []any) bool {
	return slices.ContainsFunc(arms, func(arm any) bool {
		o, ok := arm.(*object)
		return ok && o.HasAny("$ref", "type", "properties", "items", "prefixItems", "enum", "const", "allOf", "anyOf", "oneOf", "additionalProperties")
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

// typesOf returns the type keyword as a list. If it is missing, it infers the types from the other keywords.
func typesOf(o *object) []any {
	switch t := o.Get("type").(type) {
	case string:
		return []any{t}
	case []any:
		return t
	}
	var implied []any
	if o.HasAny("properties", "additionalProperties", "patternProperties", "required", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties") {
		implied = append(implied, "object")
	}
	if o.HasAny("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains") {
		implied = append(implied, "array")
	}
	if o.HasAny("pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType") {
		implied = append(implied, "string")
	}
	if o.HasAny("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf") {
		implied = append(implied, "number")
	}
	return implied
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
	items, rest := o.List("prefixItems"), o.Get("items")
	if len(items) == 0 { // before 2020-12
		if list := o.List("items"); len(list) > 0 {
			items, rest = list, o.Get("additionalItems")
		}
	}
	if len(items) == 0 || len(items) > 32 {
		return listOf(c.convert(rest, at.in(singular(at.hint))))
	}
	t := &typ{kind: tupleKind, open: !fixedLength(o, len(items), rest)}
	for _, item := range items {
		t.arms = append(t.arms, c.convert(item, at.in(singular(at.hint))))
	}
	if _, ok := rest.(*object); ok {
		t.elem = c.convert(rest, at.in(singular(at.hint)))
	}
	return t
}

// fixedLength reports whether a schema requires the n elements that it lists, and no others but rest.
func fixedLength(o *object, n int, rest any) bool {
	least, most := count(o.Get("minItems")), count(o.Get("maxItems"))
	_, more := rest.(*object)
	return least >= n && (rest == false || more || most == n)
}

// count returns a whole number, -1 for anything else.
func count(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxSchemaBytes {
		return -1
	}
	return int(f)
}

// object returns a reference to a definition, or a map if no member is named.
func (c *converter) object(o *object, at place) *typ {
	t := &typ{kind: objectKind, fields: c.fields(o, at), open: isOpen(o)}
	t.open = t.open || len(t.fields) < len(namedMembers(o))
	t.closed = c.isClosed(o, len(t.fields))
	if len(t.fields) == 0 {
		return mapOf(c.others(o, at))
	}
	return refTo(c.define(t, at.hint, o))
}

// others returns the type of the unnamed members.
func (c *converter) others(o *object, at place) *typ {
	var types []*typ
	patterns := o.Object("patternProperties")
	for _, p := range patterns.Keys() {
		types = append(types, c.convert(patterns.Get(p), at.in(singular(at.hint))))
	}
	switch more := furtherMembers(o).(type) {
	case *object:
		types = append(types, c.convert(more, at.in(singular(at.hint))))
	case bool:
		if more {
			return anyType
		}
	}
	return union(types...)
}

// furtherMembers returns the schema of unnamed members: additionalProperties, else unevaluatedProperties.
func furtherMembers(o *object) any {
	if o.Has("additionalProperties") {
		return o.Get("additionalProperties")
	}
	return o.Get("unevaluatedProperties")
}

// isClosed reports whether a schema forbids members other than the fields known ones.
// It returns false if not all members are known.
func (c *converter) isClosed(o *object, fields int) bool {
	return o.Get("additionalProperties") == false && !o.HasAny("patternProperties", "$ref", "allOf") &&
		fields >= len(namedMembers(o)) && c.nodes <= maxNodes
}

func isOpen(o *object) bool {
	switch more := furtherMembers(o).(type) {
	case bool:
		return more || o.Has("patternProperties")
	case *object:
		return true
	}
	return o.Has("patternProperties")
}

// fields returns the named members of an object, up to maxFields, without those with too long a name.
func (c *converter) fields(o *object, at place) []field {
	props, required := o.Object("properties"), stringSet(o.Texts("required"))
	var fields []field
	for _, name := range namedMembers(o) {
		if len(fields) == maxFields || len(name) > maxName {
			continue
		}
		f := c.field(name, props.Get(name), at)
		f.required = f.required || required[name]
		fields = append(fields, f)
	}
	return fields
}

// namedMembers returns the names of the members that a schema lists or requires and does not forbid.
func namedMembers(o *object) []string {
	props := o.Object("properties")
	names := append(slices.Clone(props.Keys()), missing(o)...)
	return slices.DeleteFunc(names, func(name string) bool { return props.Has(name) && forbidden(props.Get(name)) })
}

// forbidden reports whether no value fits a schema.
func forbidden(schema any) bool {
	o, _ := schema.(*object)
	not, ok := o.Get("not").(*object)
	return schema == false || o.Get("not") == true || ok && len(not.Keys()) == 0
}

// missing returns the required members that have no schema.
func missing(o *object) []string {
	props, seen := o.Object("properties"), map[string]bool{}
	return slices.DeleteFunc(o.Texts("required"), func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again || props.Has(name)
	})
}

func (c *converter) field(name string, schema any, at place) field {
	o, _ := schema.(*object)
	said := o // the schema that has its default
	if !o.Has("default") {
		said = c.follow(o)
	}
	return field{
		name: name, typ: c.convert(schema, at.in(name)),
		required: o.Get("required") == true, // draft 3
		doc:      c.document(o), defaultValue: scalarDefault(said),
	}
}

// define returns an equal existing definition of an object type, or a new one with a name.
func (c *converter) define(t *typ, hint string, o *object) *def {
	d := &def{typ: t, doc: doc{text: o.Text("description")}}
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
