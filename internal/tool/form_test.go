package tool_test

import (
	"encoding/json"
	"testing"

	"sallyport/internal/tool"
)

func TestResultSchema(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		output, want string
		wrapped      bool
	}{
		{`{"type":"object","properties":{"result":{"type":"integer"}},"required":["result"]}`, `{"type":"integer"}`, true},
		{`{"type":"object","properties":{"result":{}},"x-fastmcp-wrap-result":true}`, `{}`, true},
		{`{"properties":{"result":{"$ref":"#/$defs/A"}},"required":["result"],"$defs":{"A":{"type":"string"}}}`, `{"$defs":{"A":{"type":"string"}},"$ref":"#/$defs/A"}`, true},
		{`{"properties":{"result":{}},"required":["result"],"definitions":{"A":{}}}`, `{"definitions":{"A":{}}}`, true},
		{`{"properties":{"result":true},"required":["result"],"$defs":{}}`, `true`, true},
		{`{"properties":{"result":{}}}`, "", false},
		{`{"properties":{"result":{},"more":{}},"required":["result"]}`, "", false},
		{`{"properties":{"results":{}},"required":["results"]}`, "", false},
		{`{"properties":{"a":{"title":"result"}},"required":["a"]}`, "", false},
		{`["result"]`, "", false},
		{``, "", false},
	} {
		if !test.wrapped {
			test.want = test.output
		}
		got, wrapped := tool.Tool{Output: json.RawMessage(test.output)}.ResultSchema()
		if string(got) != test.want || wrapped != test.wrapped {
			t.Errorf("%s: got %s, %t", test.output, got, wrapped)
		}
	}
}

func TestValueByForm(t *testing.T) {
	t.Parallel()
	texts := func(list ...string) (r tool.Result) {
		for _, text := range list {
			r.Content = append(r.Content, tool.Content{Type: "text", Text: text})
		}
		return r
	}
	for _, test := range []struct {
		form   tool.Form
		result tool.Result
		want   string
	}{
		{tool.Form{}, texts(" false\n"), `false`},
		{tool.Form{Texts: true}, texts("false"), `"false"`},
		{tool.Form{Texts: true}, texts("null"), `null`},
		{tool.Form{}, texts("5"), `"5"`},
		{tool.Form{Numbers: true}, texts("5"), `5`},
		{tool.Form{Numbers: true}, texts("007"), `"007"`},
		{tool.Form{Wrapped: true}, tool.Result{Structured: []byte(`{"result":[1]}`)}, `[1]`},
		{tool.Form{Wrapped: true}, tool.Result{Structured: []byte(`{"result":null}`)}, `null`},
		{tool.Form{Wrapped: true}, tool.Result{Structured: []byte(`{"result":1,"more":2}`)}, `{"result":1,"more":2}`},
		{tool.Form{Wrapped: true}, tool.Result{Structured: []byte(`[1]`)}, `[1]`},
		{tool.Form{}, tool.Result{Structured: []byte(`{"result":1}`)}, `{"result":1}`},
	} {
		test.result.Form = test.form
		if got, _ := json.Marshal(test.result.Value().Plain()); string(got) != test.want {
			t.Errorf("%+v: got %s, want %s", test.form, got, test.want)
		}
	}
}
