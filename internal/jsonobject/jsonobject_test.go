package jsonobject_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/jsonobject"
)

func any200(depth int, _ bool) error {
	if depth > 200 {
		return errDeep
	}
	return nil
}

var errDeep = errors.New("too deep")

func TestDecode(t *testing.T) {
	v, err := jsonobject.Decode([]byte(`{"b":1,"a":{"z":[true,"x",null]},"b":9007199254740993}`), any200)
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*jsonobject.Object)
	if !slices.Equal(o.Keys(), []string{"b", "a"}) || o.Get("b") != json.Number("9007199254740993") || !slices.Equal(o.Object("a").Texts("z"), []string{"x"}) {
		t.Errorf("%v: %v", o.Keys(), o.Values())
	}
	if text, err := json.Marshal(o); err != nil || string(text) != `{"b":9007199254740993,"a":{"z":[true,"x",null]}}` {
		t.Errorf("%s, %v", text, err)
	}
	without := o.Clone("b")
	if !slices.Equal(without.Keys(), []string{"a"}) || !o.Has("b") {
		t.Errorf("a copy has %v, the object %v", without.Keys(), o.Keys())
	}
	var none *jsonobject.Object
	if none.Has("a") || none.Get("a") != nil || none.Object("a").Text("b") != "" || none.Keys() != nil {
		t.Error("nil is not an empty object")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``: "cut off", `{"a":`: "cut off", `[1`: "cut off", `{} {}`: "more follows", `{"a" 1}`: "byte 5", strings.Repeat("[", 300): "too deep",
	} {
		if v, err := jsonobject.Decode([]byte(text), any200); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, %v; want %q", text, v, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"c":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := jsonobject.Decode([]byte(text), any200)
		if (err == nil) != json.Valid([]byte(text)) && !errors.Is(err, errDeep) {
			t.Fatalf("%v, but valid is %t", err, json.Valid([]byte(text)))
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := jsonobject.Decode(again, any200); err != nil {
			t.Errorf("%v of %s: %v", second, again, err)
		}
	})
}
