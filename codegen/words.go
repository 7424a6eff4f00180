package codegen

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sallyport/internal/plain"
)

const (
	// maxLiterals and maxLiteralBytes are how much of an enum is said as a type.
	maxLiterals     = 200
	maxLiteralBytes = 4000
	// maxLiteral is the longest string that is said as a type.
	maxLiteral = 200
	// maxNote bounds each value that is shown in a note, in runes.
	maxNote = 80
	// maxText bounds what is kept of a description, in runes.
	maxText = 4000
)

// constants returns the values of const or enum.
func constants(o *object) ([]any, bool) {
	if o.has("const") {
		return []any{o.get("const")}, true
	}
	values := o.list("enum")
	return values, len(values) > 0
}

// literals is the type of a list of values; of their kinds only, where they are
// many, long, or no scalars.
func literals(values []any) *typ {
	exact, size := len(values) <= maxLiterals, 0
	types := make([]*typ, 0, len(values))
	for _, v := range values {
		l, ok := literalOf(v)
		size += len(l.text)
		exact = exact && (ok || v == nil) && len(l.text) <= maxLiteral
		types = append(types, &typ{kind: literalKind, values: []literal{l}})
		if v == nil {
			types[len(types)-1] = nullType
		}
	}
	if exact && size <= maxLiteralBytes {
		return union(types...)
	}
	for i, v := range values {
		types[i] = typeOf(v)
	}
	return union(types...)
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

// numberLiteral writes the number as both languages read it; what a double cannot hold is no literal.
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

// typeOf is the type of what a JSON value is an example of.
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

// preset returns a default that is a short scalar.
func preset(o *object) *literal {
	l, ok := literalOf(o.get("default"))
	if !ok || utf8.RuneCountInString(l.text) > 40 {
		return nil
	}
	return &l
}

// document gathers the words about a value: its own, else those of what it refers to.
func (c *converter) document(o *object) doc {
	target := c.follow(o)
	if arms := target.list("allOf"); len(arms) == 1 && !structural(target) {
		if arm, ok := arms[0].(*object); ok {
			target = merge(target.clone("allOf"), c.follow(arm).clone())
		}
	}
	all := target
	if o != target {
		all = merge(o.clone("$ref", "allOf"), target.clone())
	}
	text := all.text("description")
	if text == "" {
		text = all.text("title")
	}
	return doc{text: plain.Text(text, maxText), notes: c.notes(all)}
}

// notes says in words what the type cannot.
func (c *converter) notes(o *object) []string {
	notes := scalarNotes(o)
	if items := c.follow(o.object("items")); items != nil {
		for _, n := range scalarNotes(items) {
			notes = append(notes, "each "+n)
		}
	}
	if o.has("default") {
		notes = append(notes, "default "+show(o.get("default")))
	} else if examples := o.list("examples"); len(examples) > 0 {
		notes = append(notes, "e.g. "+show(examples[0]))
	}
	return notes
}

func scalarNotes(o *object) []string {
	var notes []string
	add := func(note string) {
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if o.get("deprecated") == true {
		add("deprecated")
	}
	add(valuesNote(o))
	add(showText(o.text("format")))
	add(showText(o.text("contentEncoding")))
	add(between(lower(o), upper(o), ""))
	add(between(o.get("minLength"), o.get("maxLength"), " characters"))
	add(between(o.get("minItems"), o.get("maxItems"), " items"))
	add(between(o.get("minProperties"), o.get("maxProperties"), " members"))
	if m, ok := o.get("multipleOf").(json.Number); ok {
		add("multiple of " + show(m))
	}
	if o.get("uniqueItems") == true {
		add("no doubles")
	}
	if p := o.text("pattern"); p != "" {
		add("pattern " + showText(p))
	}
	return notes
}

// valuesNote lists the values of an enum that is no literal type.
func valuesNote(o *object) string {
	values, ok := constants(o)
	if !ok {
		return ""
	}
	if t := literals(values); t.kind == literalKind || t.kind == nullKind ||
		t.kind == unionKind && slices.ContainsFunc(t.arms, func(arm *typ) bool { return arm.kind == literalKind }) {
		return ""
	}
	shown := make([]string, 0, 10)
	for _, v := range values[:min(len(values), 10)] {
		shown = append(shown, show(v))
	}
	if len(values) > len(shown) {
		shown = append(shown, strconv.Itoa(len(values)-len(shown))+" more")
	}
	return "one of " + strings.Join(shown, ", ")
}

// lower and upper are bounds with their sign where they are exclusive; draft 4
// has a boolean beside the bound, later drafts a bound of its own.
func lower(o *object) any { return bound(o, "minimum", "exclusiveMinimum", "> ") }
func upper(o *object) any { return bound(o, "maximum", "exclusiveMaximum", "< ") }

func bound(o *object, inclusive, exclusive, sign string) any {
	switch x := o.get(exclusive).(type) {
	case json.Number:
		return sign + x.String()
	case bool:
		if n, ok := o.get(inclusive).(json.Number); ok && x {
			return sign + n.String()
		}
	}
	return o.get(inclusive)
}

func between(low, high any, unit string) string {
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

// boundText writes a bound; the bounds that only say "a 53 bit integer" are left out.
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

// show writes a JSON value for reading.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return showText(strconv.Quote(v))
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return showText(v.String())
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[...]"
	case *object:
		if len(v.keys) == 0 {
			return "{}"
		}
	}
	return "{...}"
}

func showText(s string) string { return plain.Line(s, maxNote) }
