package runtime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

// hostile makes any spec and any arguments: names that mean something to a language, definitions that refer to
// themselves in every way, values that are nested deep.
type hostile struct{ *rand.Rand }

func (h hostile) name() string {
	names := []string{"__proto__", "constructor", "toString", "then", "o", "u", "members", ".", "?", "!", "a", "b", "has own", "\u2028", "x\"'`${y}\\", "\x00\x1b[31m\u202e", strings.Repeat("n", 300)}
	return names[h.IntN(len(names))]
}

func (h hostile) typ(depth, defs int) any {
	kind := h.IntN(10)
	if depth > 3 {
		kind = h.IntN(4)
	}
	switch kind {
	case 0, 1:
		return []any{"s", "i", "n", "b", "z", "*"}[h.IntN(6)]
	case 2:
		return map[string]any{"e": h.list(func() any { return []any{h.name(), 1, 1.5, true, false, "1"}[h.IntN(6)] })}
	case 3, 4:
		if defs > 0 {
			return h.IntN(defs)
		}
		return "s"
	case 5:
		return map[string]any{"l": h.typ(depth+1, defs)}
	case 6:
		return map[string]any{"m": h.typ(depth+1, defs)}
	case 7:
		tuple := map[string]any{"t": h.list(func() any { return h.typ(depth+1, defs) })}
		if h.IntN(2) == 0 {
			tuple["l"] = h.typ(depth+1, defs)
		}
		return tuple
	case 8:
		return map[string]any{"u": h.list(func() any { return h.typ(depth+1, defs) })}
	}
	return h.object(depth, defs)
}

func (h hostile) object(depth, defs int) any {
	o, members := map[string]any{}, map[string]any{}
	for range h.IntN(4) {
		members[h.name()+[]string{"", "?", "!"}[h.IntN(3)]] = h.typ(depth+1, defs)
	}
	if o["o"] = members; h.IntN(2) == 0 {
		o["x"] = h.typ(depth+1, defs)
	}
	return o
}

func (h hostile) list(element func() any) []any {
	list := []any{element()}
	for range h.IntN(3) {
		list = append(list, element())
	}
	return list
}

func (h hostile) value(depth int) any {
	switch kind := h.IntN(9); {
	case kind == 0 && depth < 6:
		return h.list(func() any { return h.value(depth + 1) })
	case kind < 4 && depth < 6:
		o := map[string]any{}
		for range h.IntN(4) {
			o[h.name()] = h.value(depth + 1)
		}
		return o
	case kind == 4:
		var deep any = 1
		for range 200 {
			if h.IntN(2) == 0 {
				deep = []any{deep}
			} else {
				deep = map[string]any{h.name(): deep}
			}
		}
		return deep
	case kind == 5:
		return h.name()
	}
	return []any{nil, true, "", "[1]", `{"a":1}`, "true", 7, -1.5, 1e300}[h.IntN(9)]
}

// asks are calls as only an enemy makes them, or a schema of his.
func (h hostile) asks(t testing.TB, n int) []ask {
	t.Helper()
	var all []ask
	for range n {
		spec, defs := map[string]any{"sig": "a.b()"}, h.IntN(4)
		var list []any
		for range defs {
			list = append(list, h.typ(0, defs))
		}
		spec["args"], spec["defs"] = h.object(0, defs), list
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		args, ok := h.value(0).(map[string]any)
		for !ok {
			args, ok = h.value(0).(map[string]any)
		}
		all = append(all, ask{string(text), args})
	}
	return all
}

// FuzzCheck: whatever spec and arguments there are, the check in both languages ends, with a bounded text or none.
func FuzzCheck(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		asks := hostile{rand.New(rand.NewPCG(seed, 0))}.asks(t, 300) //nolint:gosec // not a secret
		for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
			for i, v := range judge(t, lang, asks) {
				if len(v.Wrong) > 2000 || strings.ContainsAny(v.Wrong, "\x00\x1b\u202e\u2028") {
					t.Errorf("%s says %q of %v by %s", lang, v.Wrong, asks[i].Args, asks[i].Spec)
				}
			}
		}
	})
}

// TestCheckOfSchemasInCircles: definitions that are made of themselves, as they come out of schemas, and names
// that every object has in JavaScript.
func TestCheckOfSchemasInCircles(t *testing.T) {
	schemas := []string{
		`{"type":"array","prefixItems":[{"$ref":"#/$defs/T"}]}`,
		`{"anyOf":[{"type":"string"},{"$ref":"#/$defs/T"}]}`,
		`{"anyOf":[{"type":"string"},{"type":"array","prefixItems":[{"$ref":"#/$defs/T"},{"$ref":"#/$defs/T"}]}]}`,
		`{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},"required":["a"]},{"anyOf":[{"$ref":"#/$defs/T"},{"type":"integer"}]}]}`,
		`{"type":"array","items":{"type":"object","additionalProperties":{"$ref":"#/$defs/T"}}}`,
		`{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"},"toString":{"$ref":"#/$defs/T"}},"required":["__proto__","constructor"],"additionalProperties":false}`,
	}
	for lang, want := range map[codegen.Language]string{
		codegen.Python:     "wrong arguments: t: expected [[[...]]], got True",
		codegen.TypeScript: "wrong arguments: t: expected [[[...]]], got true",
	} {
		var asks []ask
		for _, def := range schemas {
			input := fmt.Sprintf(`{"type":"object","properties":{"t":{"$ref":"#/$defs/T"},"u":{"$ref":"#/$defs/T"}},"required":["t"],"$defs":{"T":%s}}`, def)
			spec := codegen.Spec(tool.Tool{ID: tool.ID{Upstream: "a", Name: "b"}, Input: json.RawMessage(input)}, lang)
			for _, value := range []string{`true`, `null`, `1.5`, `[]`, `[[]]`, `[[[true]]]`, `{"a":true}`, `{"__proto__":1}`, `{"constructor":1}`, `{"toString":true}`} {
				asks = append(asks, ask{spec, map[string]any{"t": json.RawMessage(value)}})
			}
		}
		got := judge(t, lang, asks)
		if got[0].Wrong != want {
			t.Errorf("%s: %q, want %q", lang, got[0].Wrong, want)
		}
		for i, inherited := range []string{"missing __proto__", "t.toString: expected {"} { // the last two of the list
			if v := got[len(got)-2+i]; !strings.Contains(v.Wrong, inherited) {
				t.Errorf("%s: %q lacks %q", lang, v.Wrong, inherited)
			}
		}
	}
}
