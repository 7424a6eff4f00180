// Package schematest generates random input schemas and matching values, for tests of
// generated code. Equal seeds give equal results. Values are decoded JSON with numbers
// as json.Number; [Python] and [TypeScript] write them as literals.
package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Gen generates schemas and values. It is not safe for concurrent use.
type Gen struct {
	r *rand.Rand
	// root is the schema in which references are resolved.
	root any
}

// New returns a generator. Equal seeds give equal results.
func New(seed uint64) *Gen { return &Gen{r: rand.New(rand.NewPCG(seed, seed))} }

// names holds member names that are special in languages, in JSON or in generated code.
var names = []string{
	"a", "b", "c", "limit", "owner", "labels", "class", "from", "import", "None", "self", "args", "spec", "extra", "_call", "_OMIT",
	"a-b", "a b", "a.b", "a_b", "aB", "x[]", "start<", "start>", "2fa", "q?", "q!", "?", "!", "", "'", `"`, `\`, "\n", "\x00", "名前", "😀",
	"__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "then", "length", "0", "10", "$id", "members", "o", "x", ".",
}

var texts = []string{
	"", "a", "open", "it's", `"q"`, `\`, `\n`, "line\nline", "\x00", "\t\r\x1b[31m", "\u2028\u2029", "\u202e\U000e0041", "😀𝒳", "日本語", "${x}", "`", "</script>",
	"null", "true", "1", "1e5", "-0", "007", "__proto__", "\u0085\ufeff", "2024-01-02T03:04:05Z", "*/", `"""`, "'''", "%s {} #{x}",
}

var (
	wholes    = []json.Number{"0", "1", "-1", "42", "2147483648", "9007199254740991", "9007199254740993", "-9007199254740995", "123456789012345678901234567890", "5.0", "1e3"}
	fractions = []json.Number{"0.1", "-2.5", "1e300", "-1.7976931348623157e308", "5e-324", "3.141592653589793", "1e-7"}
)

func pick[T any](g *Gen, list []T) T { return list[g.r.IntN(len(list))] }

// Tool returns the input schema of a tool: an object with up to seven parameters
// and definitions that refer to each other.
func (g *Gen) Tool() map[string]any {
	s := g.object(0)
	s["$defs"] = map[string]any{
		"Node": map[string]any{"type": "object", "required": []any{"value"}, "properties": map[string]any{
			"value": g.schema(2), "children": map[string]any{"type": "array", "items": ref("Node")}, "other": ref("Pair")}},
		"Pair": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{"left": ref("Node"), "right": g.schema(2)}},
		"Json": map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": ref("Json")},
			map[string]any{"type": "object", "additionalProperties": ref("Json")}}},
	}
	return s
}

func ref(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

func (g *Gen) object(depth int) map[string]any {
	props, required := map[string]any{}, []any{}
	for range 1 + g.r.IntN(7-2*min(depth, 2)) {
		name := pick(g, names)
		if _, known := props[name]; known {
			continue
		}
		props[name] = g.schema(depth + 1)
		if g.r.IntN(3) == 0 {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "required": required}
	switch g.r.IntN(4) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		if depth > 0 {
			s["additionalProperties"] = g.schema(depth + 1)
		}
	}
	return s
}

// schema returns a random schema of any kind.
func (g *Gen) schema(depth int) any {
	kinds := 10
	if depth < 4 {
		kinds = 18
	}
	switch n := g.r.IntN(kinds); n {
	case 0, 1, 2, 3, 4:
		return map[string]any{"type": []string{"string", "integer", "number", "boolean", "null"}[n]}
	case 5:
		return map[string]any{}
	case 6:
		return map[string]any{"enum": []any{"open", "closed", pick(g, texts), json.Number("3"), pick(g, fractions), true, nil}[:3+g.r.IntN(5)]}
	case 7:
		return map[string]any{"const": pick(g, []any{"on", json.Number("7"), false, pick(g, texts)})}
	case 8:
		return ref(pick(g, []string{"Node", "Pair", "Json"}))
	case 9:
		return map[string]any{"type": []any{pick(g, []string{"string", "integer", "boolean"}), "null"}}
	case 10, 11:
		return map[string]any{"type": "array", "items": g.schema(depth + 1)}
	case 12:
		return map[string]any{"type": "array", "prefixItems": []any{g.schema(depth + 1), g.schema(depth + 1)}, "minItems": json.Number("2"), "items": g.schema(depth + 2)}
	case 13:
		return map[string]any{"type": "object", "additionalProperties": g.schema(depth + 1)}
	case 14:
		return map[string]any{pick(g, []string{"anyOf", "oneOf"}): []any{g.schema(depth + 1), g.schema(depth + 1), g.schema(depth + 1)}}
	case 15:
		return g.taggedUnion(depth)
	case 16:
		return map[string]any{"allOf": []any{g.object(depth + 1), map[string]any{"type": "object", "properties": map[string]any{"more": g.schema(depth + 2)}}}}
	}
	return g.object(depth)
}

// taggedUnion returns a union of objects with a discriminating member.
func (g *Gen) taggedUnion(depth int) any {
	var arms []any
	for _, tag := range []string{"mail", "phone", "it's"} {
		arm := g.object(depth + 1)
		arm["properties"].(map[string]any)["kind"] = map[string]any{"const": tag}
		arm["required"] = append(arm["required"].([]any), "kind")
		arms = append(arms, arm)
	}
	return map[string]any{"oneOf": arms}
}

// Value returns a value that probably fits the schema. Callers that need certainty
// must validate it and retry.
func (g *Gen) Value(schema any) any {
	g.root = schema
	return g.value(schema, 0)
}

func (g *Gen) value(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 12 {
		return g.anything(depth)
	}
	s = g.flat(s, 0)
	if v, ok := s["const"]; ok {
		return v
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return pick(g, list)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if arms, _ := s[key].([]any); len(arms) > 0 {
			arm, _ := pick(g, arms).(map[string]any)
			return g.value(merge(without(s, key), arm), depth+1)
		}
	}
	return g.valueOfType(s, depth)
}

// flat resolves references and allOf.
func (g *Gen) flat(s map[string]any, depth int) map[string]any {
	if depth > 8 {
		return s
	}
	if at, ok := s["$ref"].(string); ok {
		return g.flat(merge(without(s, "$ref"), g.resolve(at)), depth+1)
	}
	if arms, _ := s["allOf"].([]any); len(arms) > 0 {
		s = without(s, "allOf")
		for _, arm := range arms {
			a, _ := arm.(map[string]any)
			s = merge(s, g.flat(a, depth+1))
		}
	}
	return s
}

func (g *Gen) resolve(at string) map[string]any {
	v := g.root
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(at, "#"), "/"), "/") {
		if part != "" {
			m, _ := v.(map[string]any)
			v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
	}
	m, _ := v.(map[string]any)
	return m
}

func without(s map[string]any, key string) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range b {
		switch have := out[k].(type) {
		case nil:
			out[k] = v
		case map[string]any:
			if more, ok := v.(map[string]any); ok && k == "properties" {
				out[k] = merge(have, more)
			}
		case []any:
			if more, ok := v.([]any); ok && k == "required" {
				out[k] = slices.Concat(have, more)
			}
		}
	}
	return out
}

func (g *Gen) valueOfType(s map[string]any, depth int) any {
	kind, _ := s["type"].(string)
	if list, _ := s["type"].([]any); len(list) > 0 {
		kind, _ = pick(g, list).(string)
	}
	if kind == "" {
		kind = impliedType(s)
	}
	switch kind {
	case "string":
		return g.text(s)
	case "integer":
		return g.number(s, wholes)
	case "number":
		return g.number(s, slices.Concat(wholes, fractions))
	case "boolean":
		return g.r.IntN(2) == 0
	case "null":
		return nil
	case "array":
		return g.list(s, depth)
	case "object":
		return g.members(s, depth)
	}
	return g.anything(depth)
}

func impliedType(s map[string]any) string {
	for key, kind := range map[string]string{"properties": "object", "additionalProperties": "object", "items": "array", "prefixItems": "array"} {
		if _, ok := s[key]; ok {
			return kind
		}
	}
	return ""
}

func limit(s map[string]any, key string) (n int, ok bool) {
	number, _ := s[key].(json.Number)
	f, err := number.Float64()
	return int(f), err == nil
}

func (g *Gen) text(s map[string]any) string {
	switch s["format"] {
	case "date-time":
		return "2024-01-02T03:04:05Z"
	case "date":
		return "2024-01-02"
	case "uri", "url":
		return "https://example.com/a?b=c"
	case "email":
		return "a@example.com"
	case "uuid":
		return "123e4567-e89b-42d3-a456-426614174000"
	}
	v := pick(g, texts)
	if n, ok := limit(s, "minLength"); ok && n < 1000 && len([]rune(v)) < n {
		v += strings.Repeat("x", n)
	}
	if n, ok := limit(s, "maxLength"); ok && len([]rune(v)) > n {
		v = string([]rune(v)[:max(n, 0)])
	}
	return v
}

func (g *Gen) number(s map[string]any, from []json.Number) json.Number {
	low, bounded := limit(s, "minimum")
	high, above := limit(s, "maximum")
	if !bounded && !above {
		if low, bounded = limit(s, "exclusiveMinimum"); !bounded {
			return pick(g, from)
		}
		low++
	}
	if !above {
		high = low + 100
	}
	if !bounded {
		low = high - 100
	}
	return json.Number(fmt.Sprint(low + g.r.IntN(max(high-low, 0)%1000+1)))
}

func (g *Gen) list(s map[string]any, depth int) any {
	first, _ := s["prefixItems"].([]any)
	if list, ok := s["items"].([]any); ok {
		first = list
	}
	low, _ := limit(s, "minItems")
	n := max(min(low, 50), len(first), g.r.IntN(4))
	if depth > 6 {
		n = max(min(low, 50), len(first))
	}
	if high, ok := limit(s, "maxItems"); ok {
		n = min(n, high)
	}
	list := []any{}
	for i := range n {
		if i < len(first) {
			list = append(list, g.value(first[i], depth+1))
		} else {
			list = append(list, g.value(s["items"], depth+1))
		}
	}
	return list
}

func (g *Gen) members(s map[string]any, depth int) any {
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	out := map[string]any{}
	for _, name := range Keys(props) {
		if slices.Contains(required, any(name)) || g.r.IntN(2+max(depth-3, 0)) == 0 && depth < 10 {
			out[name] = g.value(props[name], depth+1)
		}
	}
	for _, name := range required {
		if name, ok := name.(string); ok && props[name] == nil {
			out[name] = g.anything(depth + 1)
		}
	}
	g.addUnnamed(out, s, depth)
	return out
}

// addUnnamed adds members that the schema does not name.
func (g *Gen) addUnnamed(out, s map[string]any, depth int) {
	more, typed := s["additionalProperties"].(map[string]any)
	if typed && depth < 8 || depth > 0 && depth < 8 && s["additionalProperties"] != false && g.r.IntN(4) == 0 {
		for range g.r.IntN(3) {
			name := "extra " + pick(g, texts)
			if typed {
				out[name] = g.value(more, depth+1)
			} else {
				out[name] = g.anything(depth + 1)
			}
		}
	}
}

func (g *Gen) anything(depth int) any {
	switch n := g.r.IntN(8 - 3*min(depth/4, 1)); n {
	case 0:
		return nil
	case 1:
		return g.r.IntN(2) == 0
	case 2:
		return pick(g, wholes)
	case 3:
		return pick(g, fractions)
	case 5:
		return []any{g.anything(depth + 1), g.anything(depth + 1)}
	case 6:
		return map[string]any{pick(g, names): g.anything(depth + 1), "k": g.anything(depth + 1)}
	}
	return pick(g, texts)
}

// Keys returns the names of an object, sorted.
func Keys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Corrupt returns a copy of a value with one random change: a value of another kind, or
// a missing, misspelt or additional member.
func (g *Gen) Corrupt(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return g.corruptObject(v)
	case []any:
		if list := slices.Clone(v); len(list) > 0 && g.r.IntN(4) > 0 {
			i := g.r.IntN(len(list))
			list[i] = g.Corrupt(list[i])
			return list
		}
	case string:
		if g.r.IntN(3) == 0 {
			return v + "d"
		}
	}
	return pick(g, []any{nil, true, json.Number("7"), json.Number("0.5"), "spoilt", []any{}, []any{v}, map[string]any{}, map[string]any{"a": v}})
}

func (g *Gen) corruptObject(v map[string]any) any {
	out, keys := maps.Clone(v), Keys(v)
	if len(keys) == 0 {
		out["unknown"] = v
		return out
	}
	name := pick(g, keys)
	switch g.r.IntN(6) {
	case 0:
		delete(out, name)
	case 1:
		out[name+"s"] = out[name]
		delete(out, name)
	case 2:
		out["unknown"] = out[name]
	default:
		out[name] = g.Corrupt(v[name])
	}
	return out
}
