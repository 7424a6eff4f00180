package codegen_test

import (
	"testing"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

func TestExampleArguments(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                              `{}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`:                                             ``,
		`{"type":"object","required":["a"],"properties":{"a":{"examples":["x","y"]}}}`:                                        `{"a":"x"}`,
		`{"type":"object","required":["a","b"],"properties":{"a":{"default":9007199254740993},"b":{"enum":["p","q"]}}}`:       `{"a":9007199254740993,"b":"p"}`,
		`{"type":"object","required":["a"],"examples":[{"a":{"b":[{"c":null}]},"d":1}],"properties":{"a":{"type":"object"}}}`: `{"a":{"b":[{"c":null}]}}`,
		`{"type":"object","required":["a","b"],"properties":{"a":{"const":true},"b":{"type":"integer"}}}`:                     ``,
		`[]`: ``, `{`: ``,
	} {
		got, ok := codegen.ExampleArguments(tool.Tool{Input: []byte(schema)})
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s, %v", schema, got, ok)
		}
	}
}
