package codegen

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// instances makes random values that a schema is meant for: most of them are
// valid, and a checker tells which. It chooses members that the schema names
// somewhere, and others only where it says that there may be some.
type instances struct {
	c    *converter // finds what references point to
	rand *rand.Rand
	left int // of the nodes that one value may have
}

func newInstances(root any, seed uint64) *instances {
	c := newConverter()
	c.enter(root)
	return &instances{c: c, rand: rand.New(rand.NewPCG(seed, 1))}
}

func (in *instances) chance(of int) bool { return in.rand.IntN(of) == 0 }

// value returns a value for all of the schemas together.
func (in *instances) value(schemas []any, depth int) any {
	var parts []*object
	for _, s := range schemas {
		parts = append(parts, in.expand(s, 0)...)
	}
	in.left--
	if values, ok := in.constants(parts); ok {
		return values[in.rand.IntN(len(values))]
	}
	switch in.kind(parts) {
	case "object":
		return in.object(parts, depth)
	case "array":
		return in.array(parts, depth)
	case "integer":
		return json.Number(strconv.FormatInt(int64(math.Round(in.number(parts))), 10))
	case "number":
		return json.Number(strconv.FormatFloat(in.number(parts), 'f', -1, 64))
	case "boolean":
		return in.chance(2)
	case "null":
		return nil
	}
	return in.text(parts)
}

// expand opens references and combinations, choosing one arm of each alternative.
func (in *instances) expand(schema any, depth int) []*object {
	o, ok := schema.(*object)
	if !ok || depth > 20 {
		return nil
	}
	parts := []*object{o}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if target, ok := in.c.resolve(o.Text(key)); ok && o.Has(key) {
			parts = append(parts, in.expand(target, depth+1)...)
		}
	}
	for _, arm := range o.List("allOf") {
		parts = append(parts, in.expand(arm, depth+1)...)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if arms := o.List(key); len(arms) > 0 {
			parts = append(parts, in.expand(arms[in.rand.IntN(len(arms))], depth+1)...)
		}
	}
	switch {
	case !o.Has("if"):
	case in.chance(2):
		parts = append(append(parts, in.expand(o.Get("if"), depth+1)...), in.expand(o.Get("then"), depth+1)...)
	default:
		parts = append(parts, in.expand(o.Get("else"), depth+1)...)
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		for _, name := range o.Object(key).Keys() {
			if in.chance(2) {
				parts = append(parts, in.expand(o.Object(key).Get(name), depth+1)...)
			}
		}
	}
	return parts
}

func (in *instances) constants(parts []*object) ([]any, bool) {
	for _, o := range parts {
		if values, ok := constants(o); ok {
			return values, true
		}
	}
	return nil, false
}

func (in *instances) kind(parts []*object) string {
	all := []any{"object", "array", "integer", "number", "boolean", "null", "string"}
	fit := slices.Clone(all)
	for _, o := range parts {
		if types := typesOf(o); len(types) > 0 {
			fit = slices.DeleteFunc(fit, func(t any) bool {
				return !slices.Contains(types, t) && (t != "integer" || !slices.Contains(types, any("number")))
			})
		}
	}
	if len(fit) == 0 || len(fit) == len(all) {
		fit = all[2:]
	}
	kind, _ := fit[in.rand.IntN(len(fit))].(string)
	return kind
}

func (in *instances) object(parts []*object, depth int) any {
	v := &object{}
	props, required := map[string][]any{}, map[string]bool{}
	var names []string
	for _, o := range parts {
		for _, name := range o.Object("properties").Keys() {
			if props[name] == nil {
				names = append(names, name)
			}
			props[name] = append(props[name], o.Object("properties").Get(name))
		}
		for _, name := range o.Texts("required") {
			required[name] = true
			if props[name] == nil {
				names = append(names, name)
				props[name] = []any{true}
			}
		}
	}
	few := in.chance(2) || depth > 5 || in.left < 0
	for _, name := range names {
		if required[name] || !few && in.chance(2) {
			v.Set(name, in.value(props[name], depth+1))
		}
	}
	if !few {
		in.others(v, parts, depth)
	}
	return v
}

// others adds members that have no name in the schema, where it describes them.
func (in *instances) others(v *object, parts []*object, depth int) {
	for _, o := range parts {
		patterns := o.Object("patternProperties")
		for _, p := range patterns.Keys() {
			v.Set(in.matching(p), in.value([]any{patterns.Get(p)}, depth+1))
		}
		for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
			more := o.Get(key)
			if _, ok := more.(*object); !ok && more != true {
				continue
			}
			name := "more" + strconv.Itoa(in.rand.IntN(9))
			if values, ok := constants(o.Object("propertyNames")); ok {
				name, _ = values[in.rand.IntN(len(values))].(string)
			}
			if !v.Has(name) {
				v.Set(name, in.value([]any{more}, depth+1))
			}
		}
	}
}

func (in *instances) array(parts []*object, depth int) any {
	length, items, rest := in.rand.IntN(3), []any(nil), []any(nil)
	for _, o := range parts {
		if list := o.List("prefixItems"); len(list) > 0 {
			items = list
			rest = append(rest, o.Get("items"))
		} else if list := o.List("items"); len(list) > 0 {
			items = list
			rest = append(rest, o.Get("additionalItems"))
		} else if o.Has("items") {
			rest = append(rest, o.Get("items"))
		}
		if n, ok := o.Get("minItems").(json.Number); ok {
			low, _ := n.Int64()
			length = max(length, int(min(low, 50)))
		}
	}
	if len(items) > 0 && in.chance(2) {
		length = len(items)
	}
	if depth > 8 || in.left < 0 {
		length = 0
	}
	list := []any{}
	for i := range length {
		if i < len(items) {
			list = append(list, in.value([]any{items[i]}, depth+1))
		} else {
			list = append(list, in.value(rest, depth+1))
		}
	}
	return list
}

func (in *instances) number(parts []*object) float64 {
	low, high, step := -5.0, 1000.0, 0.0
	for _, o := range parts {
		for key, to := range map[string]*float64{"minimum": &low, "maximum": &high, "multipleOf": &step, "exclusiveMinimum": &low, "exclusiveMaximum": &high} {
			if n, ok := o.Get(key).(json.Number); ok {
				*to, _ = n.Float64()
			}
		}
	}
	v := low + in.rand.Float64()*max(0, high-low)
	if step > 0 {
		return math.Ceil(low/step) * step
	}
	return math.Round(v*4) / 4
}

func (in *instances) text(parts []*object) string {
	formats := map[string]string{
		"date": "2024-02-29", "time": "10:00:00Z", "date-time": "2024-02-29T10:00:00Z", "email": "a@example.com",
		"uri": "https://example.com/a", "url": "https://example.com/a", "uuid": "123e4567-e89b-42d3-a456-426614174000", "ipv4": "10.0.0.1",
	}
	text := []string{"", "a", "12", "hello world", "ü"}[in.rand.IntN(5)]
	for _, o := range parts {
		if s, ok := formats[o.Text("format")]; ok {
			text = s
		}
		if o.Has("pattern") {
			text = in.matching(o.Text("pattern"))
		}
		if n, ok := o.Get("minLength").(json.Number); ok {
			least, _ := n.Int64()
			text += strings.Repeat("x", int(max(0, min(least, 300)-int64(len(text)))))
		}
	}
	return text
}

// matching returns a text that a pattern matches, mostly.
func (in *instances) matching(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	var b strings.Builder
	in.match(&b, re.Simplify())
	return b.String()
}

func (in *instances) match(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if i := in.rand.IntN(len(re.Rune)/2) * 2; len(re.Rune) > 0 {
			b.WriteRune(re.Rune[i] + in.rand.Int32N(min(re.Rune[i+1]-re.Rune[i], 25)+1))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpAlternate:
		in.match(b, re.Sub[in.rand.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpQuest:
		if in.chance(2) {
			in.match(b, re.Sub[0])
		}
	default:
		for _, sub := range re.Sub {
			in.match(b, sub)
		}
	}
}
