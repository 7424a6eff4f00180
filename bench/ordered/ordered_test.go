package ordered_test

import (
	"encoding/json"
	"testing"

	"sallyport/bench/ordered"
)

func TestObject(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"z": 1, "$schema": "x", "a": {"$schema": 2}}`, `{"z":1,"a":{"$schema": 2},"n":3}`},
		{`{"n": 1, "a": 2}`, `{"n":3,"a":2}`},
		{`{}`, `{"n":3}`},
	} {
		o, ok := ordered.Read(json.RawMessage(test.in))
		if got := string(o.Without("$schema").Set("n", json.RawMessage("3")).Encode()); !ok || got != test.want {
			t.Errorf("%s gave %s, want %s", test.in, got, test.want)
		}
	}
	for _, in := range []string{"", "[]", "3", "{", `{"a":1} 2`, `{"a"}`} {
		if o, ok := ordered.Read(json.RawMessage(in)); ok {
			t.Errorf("%q is read as %v", in, o)
		}
	}
}
