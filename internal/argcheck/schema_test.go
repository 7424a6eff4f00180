package argcheck

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/internal/tool"
)

// FuzzArguments checks arguments of a program against a schema of an upstream;
// both may be anything at all.
func FuzzArguments(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, `{"a":1}`},
		{`{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":1}`},
		{`{"properties":{"a":{"minimum":1e9999999}}}`, `{"a":1e9999999}`},
		{`{"properties":{"a":{"uniqueItems":true,"items":{"enum":[1,"x",null]}}}}`, `{"a":[1,1.0,1e400,null]}`},
		{`{"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}]}},"$ref":"#/$defs/x"}`, `{}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"date","pattern":"(?!"}}}`, `{"a":"x"}`},
		{`{"properties":{"a":{"contentEncoding":"base64","contentMediaType":"application/json","contentSchema":{"minimum":1}}}}`, `{"a":"MQ=="}`},
		{`[]`, `null`}, {`{"properties":7,"additionalProperties":false}`, `{"":0}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		begin := time.Now()
		err := Compile(schema).Check(args)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if err == nil {
			return
		}
		if tool.AsError(err).Kind != tool.Invalid || len(err.Error()) > 8000 || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("error %.300q", err)
		}
	})
}

// BenchmarkArguments is what every call pays.
func BenchmarkArguments(b *testing.B) {
	schema := Compile(json.RawMessage(`{"type":"object","required":["title"],"properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}`))
	for b.Loop() {
		if err := schema.Check(json.RawMessage(`{"title":"a note","tags":["one","two","three"]}`)); err != nil {
			b.Fatal(err)
		}
	}
}
