package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Python returns a value as a Python literal in ASCII.
func Python(v any) string { return literal(v, python{}) }

// TypeScript returns a value as a TypeScript literal in ASCII, with integers beyond
// 2^53 as bigints and "__proto__" as a computed name.
func TypeScript(v any) string { return literal(v, typescript{}) }

// language writes the literals that differ between languages.
type language interface {
	null() string
	boolean(v bool) string
	number(n json.Number) string
	rune(r rune) string
	name(quoted string) string
}

func literal(v any, l language) string {
	switch v := v.(type) {
	case nil:
		return l.null()
	case bool:
		return l.boolean(v)
	case json.Number:
		return l.number(v)
	case string:
		return quoteString(v, l)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = literal(item, l)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, name := range Keys(v) {
			parts = append(parts, l.name(quoteString(name, l))+": "+literal(v[name], l))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("%T is not decoded JSON", v))
}

func quoteString(s string, l language) string {
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && r <= '~' && r != '"' && r != '\\' {
			b.WriteRune(r)
			continue
		}
		b.WriteString(l.rune(r))
	}
	return `"` + b.String() + `"`
}

type python struct{}

func (python) null() string                { return "None" }
func (python) boolean(v bool) string       { return map[bool]string{true: "True", false: "False"}[v] }
func (python) number(n json.Number) string { return n.String() }
func (python) rune(r rune) string          { return fmt.Sprintf(`\U%08x`, r) }
func (python) name(quoted string) string   { return quoted }

type typescript struct{}

func (typescript) null() string          { return "null" }
func (typescript) boolean(v bool) string { return strconv.FormatBool(v) }
func (typescript) rune(r rune) string    { return fmt.Sprintf(`\u{%x}`, r) }

func (typescript) number(n json.Number) string {
	if f, _ := n.Float64(); math.Abs(f) >= 1<<53 && !strings.ContainsAny(n.String(), ".eE") {
		return n.String() + "n"
	}
	return n.String()
}

func (typescript) name(quoted string) string {
	if quoted == `"__proto__"` {
		return "[" + quoted + "]"
	}
	return quoted
}

// Equal reports whether two values are the same JSON. It compares numbers by their
// exact value, not by their notation.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && numberValue(a).Cmp(numberValue(b)) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	return a == b
}

// numberValue returns the value of a JSON number, 0 if it is invalid.
func numberValue(n json.Number) *big.Rat {
	if r, ok := new(big.Rat).SetString(n.String()); ok {
		return r
	}
	return new(big.Rat)
}
