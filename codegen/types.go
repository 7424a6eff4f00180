package codegen

import (
	"slices"
	"strconv"
	"strings"
)

// kind determines which fields of a typ are used.
type kind uint8

const (
	anyKind     kind = iota // any value
	nullKind                // null
	boolKind                // true, false
	intKind                 // a whole number
	numberKind              // a number
	stringKind              // text
	literalKind             // one of values
	listKind                // any number of elem
	tupleKind               // arms in this order, then any number of elem (none if nil)
	mapKind                 // string keys, elem values
	objectKind              // fields; only the type of a def
	unionKind               // one of arms; never nested, never with any, null last
	refKind                 // def
	blobKind                // bytes, a Blob in programs
)

// typ is a type of the language-neutral model.
type typ struct {
	kind   kind
	values []literal
	elem   *typ
	arms   []*typ
	fields []field
	// open reports that an object may have more members than its fields, or that a
	// tuple may have another length.
	open bool
	// closed reports that the schema forbids members other than the fields.
	closed bool
	// fromCaller reports that an any is the type of an argument, which is unknown in TypeScript.
	fromCaller bool
	def        *def
}

// literal is a string, number or boolean as a type.
type literal struct {
	kind kind // stringKind, intKind, numberKind or boolKind
	// text is the string itself, the digits, "true" or "false".
	text string
}

// field is a member of an object, or a parameter.
type field struct {
	name     string
	typ      *typ
	required bool
	doc      doc
	// defaultValue is the default if it is a short scalar, else nil.
	defaultValue *literal
}

// doc is untrusted documentation.
type doc struct {
	text string
	// notes holds constraints that the type does not express: "1-100", "default 10".
	notes []string
}

// def is a named type: every object with fields, and every recursive type.
type def struct {
	name string
	typ  *typ
	doc  doc
}

// function is one tool in the language-neutral model.
type function struct {
	// params holds the required parameters, then the others, each in the schema's order.
	params []field
	// extra is the type of additional arguments, nil if none are allowed.
	extra *typ
	// notes are constraints on the arguments as a whole.
	notes  []string
	result *typ
	// defs holds what params and result refer to, each before its first use if possible.
	defs []*def
	// observed is the number of results from which the result's type was inferred, 0 if it is declared.
	observed int
}

var (
	anyType        = &typ{kind: anyKind}
	fromCallerType = &typ{kind: anyKind, fromCaller: true}
	nullType       = &typ{kind: nullKind}
	boolType       = &typ{kind: boolKind}
	intType        = &typ{kind: intKind}
	numberType     = &typ{kind: numberKind}
	countType      = &typ{kind: numberKind} // shown as a whole number: any number is valid, but no other is meant
	stringType     = &typ{kind: stringKind}
	blobType       = &typ{kind: blobKind}
)

// parameterType returns the type of a parameter: any, by itself or in a list, becomes
// unknown in TypeScript. In a map it stays any, since TypeScript does not allow to
// pass an interface, such as the result of another tool, as a map of unknown.
func parameterType(t *typ) *typ {
	switch t.kind {
	case anyKind:
		return fromCallerType
	case listKind:
		return listOf(parameterType(t.elem))
	}
	return t
}

func listOf(elem *typ) *typ { return &typ{kind: listKind, elem: elem} }
func mapOf(elem *typ) *typ  { return &typ{kind: mapKind, elem: elem} }
func refTo(d *def) *typ     { return &typ{kind: refKind, def: d} }

// union returns the union of types. It flattens nested unions, drops duplicates,
// merges all literals into one arm and puts null last. Without types, or with any
// among them, it returns any.
func union(types ...*typ) *typ {
	u := &unionBuilder{seen: map[string]bool{}, values: map[literal]bool{}}
	for _, t := range types {
		u.add(t)
	}
	return u.build()
}

type unionBuilder struct {
	arms     []*typ
	literals *typ
	size     int // of the literals, in bytes
	// any, null and number report that the union contains such a type.
	any, null, number bool
	seen              map[string]bool
	values            map[literal]bool
}

func (u *unionBuilder) add(t *typ) {
	switch t.kind {
	case anyKind:
		u.any = true
	case nullKind:
		u.null = true
	case unionKind:
		for _, arm := range t.arms {
			u.add(arm)
		}
	case literalKind:
		u.addLiterals(t.values)
	default:
		u.number = u.number || t.kind == numberKind
		u.addArm(t)
	}
}

func (u *unionBuilder) addLiterals(values []literal) {
	if u.literals == nil {
		u.literals = &typ{kind: literalKind}
		u.arms = append(u.arms, u.literals)
	}
	for _, v := range values {
		if !u.values[v] {
			u.values[v] = true
			u.literals.values = append(u.literals.values, v)
			u.size += len(v.text)
		}
	}
}

// widen replaces too many literals by their kinds.
func (u *unionBuilder) widen() {
	if u.literals == nil || len(u.literals.values) <= maxLiterals && u.size <= maxLiteralBytes {
		return
	}
	u.arms = slices.DeleteFunc(u.arms, func(t *typ) bool { return t == u.literals })
	for _, v := range u.literals.values {
		u.add(&typ{kind: v.kind})
	}
}

func (u *unionBuilder) addArm(t *typ) {
	if k := t.key(); !u.seen[k] {
		u.seen[k] = true
		u.arms = append(u.arms, t)
	}
}

func (u *unionBuilder) build() *typ {
	u.widen()
	if u.any || len(u.arms) == 0 && !u.null {
		return anyType
	}
	if u.number { // a number may be whole
		u.arms = slices.DeleteFunc(u.arms, func(t *typ) bool { return t.kind == intKind })
	}
	if u.null {
		u.arms = append(u.arms, nullType)
	}
	if len(u.arms) == 1 {
		return u.arms[0]
	}
	return &typ{kind: unionKind, arms: u.arms}
}

// key returns a text that is equal for equal types, including documentation.
func (t *typ) key() string {
	var b strings.Builder
	t.writeKey(&b)
	return b.String()
}

func (t *typ) writeKey(b *strings.Builder) {
	b.WriteByte('a' + byte(t.kind))
	for _, v := range t.values {
		b.WriteByte('0' + byte(v.kind))
		b.WriteString(strconv.Quote(v.text))
	}
	if t.def != nil {
		b.WriteString(t.def.name)
	}
	for _, arm := range t.arms {
		arm.writeKey(b)
	}
	for _, f := range t.fields {
		f.writeKey(b)
	}
	if t.open {
		b.WriteByte('+')
	}
	if t.closed {
		b.WriteByte('-')
	}
	if t.elem != nil {
		b.WriteByte('[')
		t.elem.writeKey(b)
	}
	b.WriteByte(';')
}

func (f field) writeKey(b *strings.Builder) {
	b.WriteString(strconv.Quote(f.name))
	b.WriteString(strconv.FormatBool(f.required))
	b.WriteString(strconv.Quote(f.doc.text))
	for _, n := range f.doc.notes {
		b.WriteString(strconv.Quote(n))
	}
	f.typ.writeKey(b)
}
