package codegen_test

import (
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

// TestOutline: an outline has the names that a program writes, in each language, and texts of one line.
func TestOutline(t *testing.T) {
	order := tool.Tool{
		ID: tool.ID{Upstream: "crm", Name: "find_order"}, Description: "Finds an order.\nIt takes\u202e long.",
		Input: []byte(`{"type":"object","required":["order-id"],"properties":{"order-id":{"type":"string","description":"its\nid"},"from":{"type":"string","enum":["a","b"]}}}`),
	}
	py, ts := codegen.OutlineOf(order, codegen.Python), codegen.OutlineOf(order, codegen.TypeScript)
	if py.Name != "find_order" || py.About != "Finds an order" || !strings.HasPrefix(py.Signature, "crm.find_order(order_id: str") || !strings.HasPrefix(ts.Signature, `crm.find_order({"order-id": string`) {
		t.Errorf("%+v, %+v", py, ts)
	}
	for _, test := range []struct{ got, want codegen.Parameter }{
		{py.Parameters[0], codegen.Parameter{Name: "order_id", Type: "str", About: "its id", Required: true}},
		{py.Parameters[1], codegen.Parameter{Name: "from_", Type: `"a"|"b"`}},
		{ts.Parameters[0], codegen.Parameter{Name: "order-id", Type: "string", About: "its id", Required: true}},
	} {
		if test.got != test.want {
			t.Errorf("%+v, want %+v", test.got, test.want)
		}
	}
	many := tool.Tool{ID: tool.ID{Upstream: "a", Name: "b"}, Description: strings.Repeat("x", 1<<16), Input: []byte(`{"properties":{"` + strings.Repeat("n", 1<<16) + `":{}` + strings.Repeat(`,"a\nb":{},"\u202e":{}`, 2) + `}}`)}
	for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
		o := codegen.OutlineOf(many, lang)
		for _, p := range o.Parameters {
			if len(p.Name) > 500 || strings.ContainsAny(p.Name, "\n\u202e") {
				t.Errorf("%s: a name is %.200q", lang, p.Name)
			}
		}
		if len(o.Signature)+len(o.About) > 4000 {
			t.Errorf("%s: %d bytes", lang, len(o.Signature)+len(o.About))
		}
	}
}
