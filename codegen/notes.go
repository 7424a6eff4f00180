package codegen

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

const (
	// maxLiterals and maxLiteralBytes bound an enum that becomes a literal type.
	maxLiterals     = 200
	maxLiteralBytes = 4000
	// maxLiteral is the longest string that becomes a literal type, in bytes.
	maxLiteral = 200
	// maxNote bounds each value in a note, in runes.
	maxNote = 80
	// maxText bounds a description, in runes.
	maxText = 4000
)

// constants returns the values of const or enum.
func constants(o *object) ([]any, bool) {
	if o.Has("const") {
		return []any{o.Get("const")}, true
	}
	values := o.List("enum")
	return values, len(values) > 0
}

// allowedValues returns the values of an enum that its type allows, or all if it allows none.
func allowedValues(values []any, o *object) []any {
	types := typesOf(o)
	if !o.Has("type") || slices.ContainsFunc(types, func(t any) bool { return isKind(t) == nil }) {
		return values
	}
	fit := slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		return !slices.ContainsFunc(types, func(t any) bool { return isKind(t)(v) })
	})
	if o.Get("nullable") == true || len(fit) == 0 {
		return values
	}
	return fit
}

// isKind returns the predicate for a JSON Schema type, nil if the type is unknown.
func isKind(name any) func(any) bool {
	switch name {
	case "string":
		return isA[string]
	case "boolean":
		return isA[bool]
	case "integer", "number":
		return isA[json.Number]
	case "array":
		return isA[[]any]
	case "object":
		return isA[*object]
	case "null":
		return func(v any) bool { return v == nil }
	}
	return nil
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// literals returns the type of a list of values, or the union of their kinds if they
// are too many, too long, or not scalars.
func literals(values []any) *typ {
	size, types := 0, make([]*typ, 0, len(values))
	for _, v := range values {
		l, ok := literalOf(v)
		size += len(l.text)
		switch {
		case v == nil:
			types = append(types, nullType)
		case !ok || len(l.text) > maxLiteral:
			return union(kindsOf(values)...)
		default:
			types = append(types, &typ{kind: literalKind, values: []literal{l}})
		}
	}
	if len(values) > maxLiterals || size > maxLiteralBytes {
		return union(kindsOf(values)...)
	}
	return union(types...)
}

func kindsOf(values []any) []*typ {
	types := make([]*typ, len(values))
	for i, v := range values {
		types[i] = typeOf(v)
	}
	return types
}

func literalOf(v any) (literal, bool) {
	switch v := v.(type) {
	case string:
		return literal{stringKind, v}, true
	case bool:
		return literal{boolKind, strconv.FormatBool(v)}, true
	case json.Number:
		return numberLiteral(v)
	}
	return literal{}, false
}

// numberLiteral returns the number in a form valid in both languages, and false for a number beyond a double.
func numberLiteral(n json.Number) (literal, bool) {
	f, err := n.Float64()
	switch {
	case err != nil || math.IsInf(f, 0):
		return literal{numberKind, ""}, false
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return literal{intKind, strconv.FormatInt(int64(f), 10)}, true
	}
	return literal{numberKind, strconv.FormatFloat(f, 'g', -1, 64)}, true
}

// typeOf returns the type of a JSON value.
func typeOf(v any) *typ {
	switch v := v.(type) {
	case nil:
		return nullType
	case string:
		return stringType
	case bool:
		return boolType
	case json.Number:
		if l, _ := numberLiteral(v); l.kind == intKind {
			return intType
		}
		return numberType
	case []any:
		return listOf(anyType)
	}
	return mapOf(anyType)
}

// scalarDefault returns the default of a schema if it is a short scalar, else nil.
func scalarDefault(o *object) *literal {
	l, ok := literalOf(o.Get("default"))
	if !ok || utf8.RuneCountInString(l.text) > 40 {
		return nil
	}
	return &l
}

// markdownLink matches a link to a page, of which a model needs only the text.
var markdownLink = regexp.MustCompile(`\[([^\[\]]+)\]\(https?://[^()\s]*\)`)

// prose sanitizes an untrusted description and bounds it to max runes.
func prose(text string, max int) string {
	return markdownLink.ReplaceAllString(sanitize.Text(text, max), "$1")
}

// repeats reports whether text only repeats a name: "The number." of issue_number.
func repeats(text, name string) bool {
	if len(text) > 80 {
		return false
	}
	known := map[string]bool{"the": true, "a": true, "an": true, "of": true, "for": true, "s": true}
	for _, word := range wordPattern.FindAllString(name, -1) {
		known[strings.ToLower(word)] = true
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII && r != '’' || r >= '0' && r <= '9' }) {
		return false
	}
	return !slices.ContainsFunc(wordPattern.FindAllString(strings.ToLower(text), -1), func(word string) bool { return !known[word] })
}

// saysDefault reports whether text already states the default: "(default: 20)".
func saysDefault(text, value string) bool {
	value = strings.ToLower(strings.Trim(value, `"`))
	_, after, found := strings.Cut(strings.ToLower(text), "default")
	return found && value != "" && slices.Contains(strings.FieldsFunc(after, notInValue), value)
}

func notInValue(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("`'\"()[]:=,;", r) || r == '.'
}

// document returns the documentation of a schema: its own, else that of the schema that it refers to.
func (c *converter) document(o *object) doc {
	target := c.follow(o)
	if arms := target.List("allOf"); len(arms) == 1 && !structural(target) {
		if arm, ok := arms[0].(*object); ok {
			target = merge(target.Clone("allOf"), c.follow(arm).Clone())
		}
	}
	all := target
	if o != target {
		all = merge(o.Clone("$ref", "allOf"), target.Clone())
	}
	text := all.Text("description")
	if text == "" {
		text = all.Text("title")
	}
	return doc{text: prose(text, maxText), notes: c.notes(all)}
}

// notes returns the constraints that the type does not express.
func (c *converter) notes(o *object) []string {
	notes := valueNotes(o)
	if items := c.follow(o.Object("items")); items != nil {
		for _, n := range valueNotes(items) {
			notes = append(notes, "each "+n)
		}
	}
	notes = append(notes, enumMeanings(o)...)
	if o.Has("default") {
		notes = append(notes, "default "+show(o.Get("default")))
	} else if examples := o.List("examples"); len(examples) > 0 {
		notes = append(notes, "e.g. "+show(examples[0]))
	}
	return notes
}

// strictFormats holds formats that make a pattern redundant.
var strictFormats = stringSet([]string{"date-time", "date", "time", "email", "uuid", "ipv4", "ipv6", "base64"})

// enumMeanings returns the descriptions of the values of an enum, from a common extension
// keyword next to the enum, or from const and title in each arm.
func enumMeanings(o *object) []string {
	values := o.List("enum")
	for _, key := range []string{"enumDescriptions", "x-enum-descriptions", "x-enumDescriptions", "x-enum-varnames", "x-enumNames", "enumNames"} {
		if names := o.Texts(key); len(names) == len(values) && len(names) > 0 {
			return meaningNote(values, names)
		}
	}
	values = nil
	var names []string
	for _, arm := range slices.Concat(o.List("oneOf"), o.List("anyOf")) {
		a, _ := arm.(*object)
		name := a.Text("description")
		if name == "" {
			name = a.Text("title")
		}
		if !a.Has("const") || name == "" {
			return nil
		}
		values, names = append(values, a.Get("const")), append(names, name)
	}
	return meaningNote(values, names)
}

func meaningNote(values []any, names []string) []string {
	var parts []string
	for i, v := range values[:min(len(values), 10)] {
		if value := compact(v, maxNote); !repeats(names[i], value) {
			parts = append(parts, showText(value)+" = "+sanitize.Line(names[i], 40))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if len(values) > 10 {
		parts = append(parts, "...")
	}
	return []string{strings.Join(parts, ", ")}
}

// valueNotes returns the constraints of a schema on the value itself.
func valueNotes(o *object) []string {
	return append(scalarNotes(o), memberNotes(o)...)
}

func scalarNotes(o *object) []string {
	var notes []string
	add := func(note string) {
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if o.Get("deprecated") == true {
		add("deprecated")
	}
	if o.Get("readOnly") == true {
		add("read-only")
	}
	if o.Get("writeOnly") == true {
		add("write-only")
	}
	add(valuesNote(o))
	add(showText(o.Text("format")))
	add(showText(o.Text("contentEncoding")))
	add(rangeText(lower(o), upper(o), ""))
	add(rangeText(o.Get("minLength"), o.Get("maxLength"), " characters"))
	add(rangeText(o.Get("minItems"), o.Get("maxItems"), " items"))
	add(rangeText(o.Get("minProperties"), o.Get("maxProperties"), " members"))
	if m, ok := o.Get("multipleOf").(json.Number); ok {
		add("multiple of " + show(m))
	}
	if o.Get("uniqueItems") == true {
		add("unique items")
	}
	if p := o.Text("pattern"); p != "" && !strictFormats[o.Text("format")] {
		add("pattern " + showText(p))
	}
	return notes
}

// valuesNote lists the values of an enum that does not become a literal type.
func valuesNote(o *object) string {
	values, ok := constants(o)
	if !ok {
		return ""
	}
	if t := literals(values); t.kind == literalKind || t.kind == nullKind ||
		t.kind == unionKind && slices.ContainsFunc(t.arms, func(arm *typ) bool { return arm.kind == literalKind }) {
		return ""
	}
	return "one of " + showAll(values)
}

// lower and upper return bounds, with a sign if they are exclusive. In draft 4 that is
// a boolean next to the bound, in later drafts a keyword with the bound.
func lower(o *object) any { return boundValue(o, "minimum", "exclusiveMinimum", "> ") }
func upper(o *object) any { return boundValue(o, "maximum", "exclusiveMaximum", "< ") }

func boundValue(o *object, inclusive, exclusive, sign string) any {
	switch x := o.Get(exclusive).(type) {
	case json.Number:
		return sign + x.String()
	case bool:
		if n, ok := o.Get(inclusive).(json.Number); ok && x {
			return sign + n.String()
		}
	}
	return o.Get(inclusive)
}

func rangeText(low, high any, unit string) string {
	lo, hi := boundText(low, ">= "), boundText(high, "<= ")
	switch {
	case lo == "" && hi == "":
		return ""
	case low == high && unit != "":
		return strings.TrimPrefix(lo, ">= ") + unit
	case hi == "":
		return lo + unit
	case lo == "":
		return hi + unit
	case strings.HasPrefix(lo, ">= ") && strings.HasPrefix(hi, "<= "):
		return lo[3:] + ".." + hi[3:] + unit
	}
	return lo + " and " + hi + unit
}

// boundText returns a bound as text, "" for the bounds of 53-bit integers.
func boundText(v any, sign string) string {
	switch v := v.(type) {
	case string:
		return showText(v)
	case json.Number:
		if f, err := v.Float64(); err != nil || math.Abs(f) >= 1<<53-1 {
			return ""
		}
		return sign + showText(v.String())
	}
	return ""
}

// memberNotes returns the constraints of a schema on an object as a whole.
func memberNotes(o *object) []string {
	notes := append(keyNotes(o), conditionNotes(o)...)
	if by := o.Object("discriminator").Text("propertyName"); by != "" {
		notes = append(notes, "discriminated by "+showText(by)+mappingText(o.Object("discriminator").Object("mapping")))
	}
	return notes
}

func mappingText(mapping *object) string {
	if len(mapping.Keys()) == 0 {
		return ""
	}
	return ": " + nameList(mapping.Keys())
}

// keyNotes returns the constraints on the names of unnamed members.
func keyNotes(o *object) []string {
	var notes []string
	names := o.Object("propertyNames")
	if values, ok := constants(names); ok {
		notes = append(notes, "keys "+showAll(values))
	} else if p := names.Text("pattern"); p != "" {
		notes = append(notes, "keys match "+showText(p))
	} else if f := names.Text("format"); f != "" {
		notes = append(notes, "keys are "+showText(f))
	}
	patterns := o.Object("patternProperties").Keys()
	for _, p := range patterns[:min(len(patterns), 4)] {
		if p != "" && p != ".*" && p != "^.*$" {
			notes = append(notes, "keys match "+showText(p))
		}
	}
	return notes
}

// showAll lists the first ten values.
func showAll(values []any) string {
	shown := make([]string, 0, 11)
	for _, v := range values[:min(len(values), 10)] {
		shown = append(shown, show(v))
	}
	if more := len(values) - len(shown); more > 0 {
		shown = append(shown, strconv.Itoa(more)+" more")
	}
	return strings.Join(shown, ", ")
}

// show returns a JSON value for display, truncated.
func show(v any) string {
	return showText(compact(v, maxNote))
}

// compact returns a value as JSON. It stops soon after limit bytes.
func compact(v any, limit int) string {
	var b strings.Builder
	writeCompact(&b, v, limit)
	return b.String()
}

func writeCompact(b *strings.Builder, v any, limit int) {
	if b.Len() > limit {
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		b.WriteString(strconv.Quote(v[:min(len(v), 8*limit)]))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(v.String())
	case []any:
		b.WriteByte('[')
		for i, item := range v[:min(len(v), limit)] {
			if i > 0 {
				b.WriteString(", ")
			}
			writeCompact(b, item, limit)
		}
		b.WriteByte(']')
	case *object:
		b.WriteByte('{')
		for i, k := range v.Keys()[:min(len(v.Keys()), limit)] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Quote(k[:min(len(k), 8*limit)]) + ": ")
			writeCompact(b, v.Get(k), limit)
		}
		b.WriteByte('}')
	}
}

func showText(s string) string { return sanitize.Line(s, maxNote) }
