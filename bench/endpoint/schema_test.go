package endpoint_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"sallyport/bench/endpoint"
)

func TestSchema(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"type":"object","properties":{"b":{},"a":{"enum":[1]}},"required":["b"]}`, `{"type":"object","properties":{"b":{},"a":{"enum":[1]}},"required":["b"]}`},
		{`{"$schema":"x","properties":{},"type":"object"}`, `{"properties":{},"type":"object"}`},
		{`{"type":"object"}`, `{"type":"object","properties":{}}`},
		{`{"type":["object","null"],"properties":null}`, `{"type":"object","properties":{}}`},
		{`null`, `{"type":"object","properties":{}}`},
		{``, `{"type":"object","properties":{}}`},
		{`true`, `{"type":"object","properties":{}}`},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{},"b":{}}},true],"properties":{"c":{}}}`, `{"properties":{"c":{},"a":{"type":"string"},"b":{}},"type":"object"}`},
		{`{"oneOf":3,"not":{},"enum":[{}]}`, `{"type":"object","properties":{}}`},
	} {
		if got := endpoint.Schema(json.RawMessage(test.in)); string(got) != test.want {
			t.Errorf("%s\ngives %s\nnot   %s", test.in, got, test.want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"anyOf":[{"properties":{"a":{}}}],"type":[]}`))
	f.Add([]byte(`{"a":1`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := endpoint.Schema(in)
		var schema struct {
			Type       string
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(out, &schema); err != nil || schema.Type != "object" || schema.Properties == nil {
			t.Fatalf("%q gives %q: %v", in, out, err)
		}
		if again := endpoint.Schema(out); !bytes.Equal(again, out) {
			t.Fatalf("%q gives %q, and that %q", in, out, again)
		}
	})
}
