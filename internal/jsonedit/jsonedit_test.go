package jsonedit_test

import (
	"encoding/json"
	"maps"
	"testing"

	"sallyport/internal/jsonedit"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, want string }{
		{`{"name":"a","x":1e400}`, `{"name":"b","x":1e400}`},
		{` { "x" : "<\u0026>" , "name" : {"name":1} } `, ` { "x" : "<\u0026>" , "name" : "b" }`},
		{`{"name":1,"name":2}`, `{"name":"b","name":"b"}`},
		{`{}`, `{"name":"b"}`},
		{`{"x":{"name":"a"}}`, `{"x":{"name":"a"},"name":"b"}`},
		{`{"na\u006de":"a"}`, `{"na\u006de":"b"}`},
	} {
		if got, err := jsonedit.Edit(json.RawMessage(test.raw), map[string]json.RawMessage{"name": json.RawMessage(`"b"`)}); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v", test.raw, got, err)
		}
	}
	for _, bad := range []string{``, `[]`, `1`, `{`, `{"a"`, `{"a":}`, `null`} {
		if got, err := jsonedit.Edit(json.RawMessage(bad), map[string]json.RawMessage{"name": json.RawMessage(`"b"`)}); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// FuzzEdit: what is not replaced stays, whatever the upstream wrote.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"name":"a","x":[1.0,{"name":2}]}`))
	f.Add([]byte(`{"name":1,"name":2} `))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := jsonedit.Edit(raw, map[string]json.RawMessage{"name": json.RawMessage(`"b"`)})
		if err != nil || !json.Valid(raw) {
			return
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(got, &after) != nil {
			t.Fatalf("%s became %s", raw, got)
		}
		before["name"] = json.RawMessage(`"b"`)
		if !maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s became %s", raw, got)
		}
	})
}
