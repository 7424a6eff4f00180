package codegen_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

// TestBombsAreBounded converts schemas that would be endless if each reference
// and each arm of a union were followed as often as it is met: one that gets
// through the bounds keeps this test from ending.
func TestBombsAreBounded(t *testing.T) {
	for name, schema := range bombs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tl := tool.Tool{ID: tool.ID{Upstream: "up", Name: "f"}, Description: strings.Repeat("word ", 20_000), Input: json.RawMessage(schema), Output: json.RawMessage(schema)}
			for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
				checkTexts(t, tl, lang)
			}
			for _, f := range codegen.Generate(upstreamWith(tl)) {
				if len(f.Data) > 2<<20 {
					t.Errorf("%s has %d bytes", f.Path, len(f.Data))
				}
			}
		})
	}
}

func repeat(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func bombs() map[string]string {
	s := fmt.Sprintf
	chain := func(n int, body string) string {
		return `{"$ref":"#/$defs/d0","$defs":{` + repeat(n, func(i int) string { return s(`"d%d":`, i) + strings.ReplaceAll(body, "NEXT", s("#/$defs/d%d", i+1)) }) + s(`,"d%d":{"type":"string"}}}`, n)
	}
	props := func(n int, p string) string {
		return `{"type":"object","properties":{` + repeat(n, func(i int) string { return s(`"%s%d":{"type":"string","description":"a word %d"}`, p, i, i) }) + `}}`
	}
	wide := `{"allOf":[` + repeat(3000, func(i int) string { return `{"$ref":"#/$defs/w"}` }) + `],"$defs":{"w":` + props(3000, "p") + `}}`
	return map[string]string{
		"allOf exponential":   chain(100, `{"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"},{"$ref":"NEXT"}]}`),
		"anyOf exponential":   chain(100, `{"anyOf":[{"$ref":"NEXT"},{"$ref":"NEXT"},{"type":"object","properties":{"a":{"$ref":"NEXT"}}}]}`),
		"props exponential":   chain(100, `{"type":"object","properties":{"a":{"$ref":"NEXT"},"b":{"$ref":"NEXT"},"c":{"allOf":[{"$ref":"NEXT"},{"required":["x"]}]}}}`),
		"sibling exponential": chain(200, `{"type":"object","properties":{"a":{"$ref":"NEXT","required":["q"]},"b":{"$ref":"NEXT","required":["r"]}}}`),
		"allOf wide":          wide,
		"3000 props":          props(3000, "p"),
		"refs to wide":        `{"type":"object","properties":{` + repeat(400, func(i int) string { return s(`"p%d":{"$ref":"#/$defs/w","properties":{"x%d":{}}}`, i, i) }) + `},"$defs":{"w":` + props(3000, "p") + `}}`,
		"deep":                `{"properties":{"a":` + strings.Repeat(`{"properties":{"a":`, 10000) + `{}` + strings.Repeat(`}}`, 10000) + `}}`,
		"deep 90":             strings.Repeat(`{"properties":{"a":`, 95) + `{}` + strings.Repeat(`}}`, 95),
		"enums": `{"type":"object","properties":{"a":{"anyOf":[` + repeat(150, func(i int) string {
			return `{"enum":[` + repeat(200, func(j int) string { return s(`"v%d_%d"`, i, j) }) + `]}`
		}) + `]}}}`,
		"top oneOf":     `{"type":"object","oneOf":[` + repeat(100, func(i int) string { return props(100, s("q%d_", i)) }) + `]}`,
		"oneOf x anyOf": `{"type":"object","properties":{"a":{"oneOf":[` + repeat(200, func(i int) string { return props(5, s("q%d_", i)) }) + `],"anyOf":[` + repeat(200, func(i int) string { return props(5, s("r%d_", i)) }) + `]}}}`,
		"conditions": `{"type":"object","allOf":[` + repeat(2000, func(i int) string {
			return s(`{"if":{"properties":{"k":{"const":"v%d"}}},"then":{"required":["a%d"],"properties":{"a%d":{"type":"string"},"s":{"type":"object","properties":{"z%d":{}}}}}}`, i, i, i, i)
		}) + `]}`,
		"same enum either": `{"type":"object","oneOf":[` + repeat(2000, func(i int) string {
			return s(`{"properties":{"k":{"const":"v%d"},"a":{"type":"object","properties":{"x%d":{}}}}}`, i, i)
		}) + `]}`,
		"ids":       `{"$id":"http://x/","$defs":{` + repeat(5000, func(i int) string { return s(`"d%d":{"$id":"http://x/%d","$ref":"%d"}`, i, i, i+1) }) + `},"properties":{"a":{"$ref":"0"}}}`,
		"long text": s(`{"type":"object","properties":{"a":{"type":"string","description":%q}}}`, strings.Repeat("long text ", 10000)),
		"long names": `{"type":"object","properties":{` + repeat(3000, func(i int) string {
			return s(`"%s%d":{"type":"object","properties":{"b%d":{}}}`, strings.Repeat("n", 200), i, i)
		}) + `}}`,
		"nested dup keys": `{"type":"object","properties":{` + repeat(6000, func(i int) string { return s(`"k%d":{"items":{"type":"object","properties":{"a":{}}}}`, i) }) + `}}`,
	}
}
