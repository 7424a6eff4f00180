package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolcall"
	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// orderTool has an argument of each kind.
var orderTool = tool.Tool{ID: tool.ID{Upstream: "crm", Name: "order"}, Wire: "order", Input: json.RawMessage(`{"type":"object","required":["customer"],"properties":{
	"customer":{"type":"string","title":` + quote(evil) + `,"description":` + quote(evil) + `},"count":{"type":"integer","minimum":1,"default":1},"express":{"type":"boolean"},
	"kind":{"enum":["book","pen"]},"note":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"more":{"type":"object"}}}`)}

func (h house) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	*h.told = append(*h.told, tool.Client(ctx)+" calls "+c.Tool.String()+" "+string(c.Args))
	switch args := string(c.Args); {
	case strings.Contains(args, "boss") && toolcall.ScopeOf(ctx).NoWait:
		return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "it waits", Err: &approvals.PendingError{Approval: "a-1"}}
	case strings.Contains(args, "nobody"):
		return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: evil, Hint: evil}
	}
	return tool.Result{IsError: true, Content: []tool.Content{{Type: "text", Text: evil + strings.Repeat("x", 1<<20)}, {Type: "image", MIME: evil, URI: evil, Data: []byte("abc")}}, Structured: json.RawMessage(`{"a":` + quote(evil) + `}`)}, nil
}

// TestTry: a tool is called with what the form says, and the form is shown again with it.
func TestTry(t *testing.T) {
	const order = "/ui/catalogue/crm/order"
	full := url.Values{"in.customer": {"ada\r\nlovelace"}, "in.count": {"2"}, "in.express": {"true"}, "in.kind": {"pen"}, "in.note": {"soon"}, "in.more": {`{"a": [1]}`}}
	for _, test := range []struct {
		who, path string
		form      url.Values
		headers   []string
		status    int
		told      string
		has       []string // on the page
	}{
		{"ada", order, full, nil, 200, `dashboard calls crm.order {"count":2,"customer":"ada\nlovelace","express":true,"kind":"pen","more":{"a":[1]},"note":"soon"}`,
			[]string{"the tool reports a failure", "Structured result", "3 B", ">ada\r\nlovelace</textarea>", `value="2"`, `value="pen" selected`, "As JSON"}},
		{"ada", order, url.Values{"in.customer": {" "}, "in.count": {"many"}}, nil, 400, "", []string{"customer: it is missing; count: &#34;many&#34; is not a whole number", `value="many"`}},
		{"ada", order, url.Values{"in.customer": {"boss"}}, nil, 200, `dashboard calls crm.order {"customer":"boss"}`, []string{"needs approval first", `href="/ui/approvals"`, ">boss</textarea>"}},
		{"ada", order, url.Values{"in.customer": {"nobody"}}, nil, 403, `dashboard calls crm.order {"customer":"nobody"}`, []string{`role="alert"`, ">nobody</textarea>"}},
		{"ada", order, url.Values{"as": {"json"}, "json": {`{"customer": "ada"`}}, nil, 400, "", []string{"must be one JSON object: unexpected end", `{&#34;customer&#34;: &#34;ada&#34;</textarea>`, "As fields"}},
		{"ada", order, url.Values{"as": {"json"}, "json": {`null`}}, nil, 400, "", []string{"must be one JSON object"}},
		{"ada", order, url.Values{"as": {"json"}, "json": {"{\"customer\": \"ada\"}\r\n"}}, nil, 200, `dashboard calls crm.order {"customer":"ada"}`, nil},
		{"ada", "/ui/catalogue/evil/x", url.Values{"json": {"{}"}}, nil, 200, `dashboard calls evil.x {}`, nil},
		{"ada", "/ui/catalogue/crm/none", url.Values{"json": {"{}"}}, nil, 404, "", nil},
		{"reader", order, full, nil, 403, "", nil},
		{"ada", order, full, []string{"Sec-Fetch-Site: cross-site"}, 403, "", nil},
		{"ada", order, full, []string{"Origin: https://evil.example"}, 403, "", nil},
		{"ada", order, url.Values{"in.customer": {strings.Repeat("x", 2<<20)}}, nil, 429, "", nil},
	} {
		told := []string{}
		got := ask(t, house{told: &told}, test.who, test.path, test.form, test.headers...)
		page := got.Body.String()
		if got.Code != test.status || strings.Join(told, "|") != test.told {
			t.Errorf("%s %s %.200v %v: %d, told %q; want %d, %q", test.who, test.path, test.form, test.headers, got.Code, told, test.status, test.told)
		}
		for _, text := range test.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s %.200v: no %q in %.9000s", test.path, test.form, text, page)
			}
		}
		if len(page) > 1<<20 {
			t.Errorf("the page has %d bytes", len(page))
		}
		checkHarmless(t, page)
	}
}

// TestTryForms: only those who may call a tool see the form, and what cannot be asked for in fields is one object.
func TestTryForms(t *testing.T) {
	if page := ask(t, house{}, "reader", "/ui/catalogue/crm/order", nil).Body.String(); strings.Contains(page, "Try it") {
		t.Error("a reader sees the form")
	}
	viewer := access.Caller{Principal: "oauth:ann"}.WithRole(access.Viewer).NewContext(t.Context())
	w := httptest.NewRecorder()
	newDashboard(t, house{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(viewer, "GET", "/ui/catalogue/crm/order", nil))
	if page := w.Body.String(); w.Code != 200 || strings.Contains(page, "Try it") {
		t.Error("a viewer sees the form:", w.Code)
	}
	if page := ask(t, house{}, "ada", "/ui/catalogue/crm/order?as=json", nil).Body.String(); !strings.Contains(page, `name="json"`) || strings.Contains(page, `name="in.`) {
		t.Error("the form in JSON:", page)
	}
	for schema, simple := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                      true,
		`{"type":"object","properties":{}}`:                                                           false,
		`{"type":"object","properties":{"a":{}},"oneOf":[{"required":["a"]}]}`:                        false,
		`{"type":"object","properties":{"a":{}},"required":["b"]}`:                                    false,
		`{"$ref":"#/$defs/a","$defs":{"a":{}}}`:                                                       false,
		`{"type":"object","properties":{"a\u202e":{"type":"string"}}}`:                                false,
		`{"type":"object","properties":{"a":{"enum":["b\u200b"]}}}`:                                   false,
		`{"type":"object","properties":{"a":{"type":"string","default":"b\u200b"}}}`:                  false,
		`{"type":"object","properties":{"a":{"default":"` + strings.Repeat("x", 9000) + `"}}}`:        true,
		`{"type":"object","properties":{` + strings.Repeat(`"a":{},`, 9) + `"b":{"enum":[{"c":1}]}}}`: true,
		`{"type":"object","properties":{` + strings.Join(manyProperties(60), ",") + `}}`:              false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`:   true,
		`{"type":"object","properties":[1]}`:                                                          false,
		`17`:                                                                                          false,
		``:                                                                                            false,
	} {
		page := ask(t, house{tool: &tool.Tool{ID: tool.ID{Upstream: "crm", Name: "one"}, Input: json.RawMessage(schema)}}, "ada", "/ui/catalogue/crm/one", nil).Body.String()
		if strings.Contains(page, `name="in.`) != simple || strings.Contains(page, `name="json"`) == simple || len(page) > 64<<10 {
			t.Errorf("%.200s: %.9000s", schema, page)
		}
		checkHarmless(t, page)
	}
}

func manyProperties(n int) (list []string) {
	for i := range n {
		list = append(list, quote(strings.Repeat("p", i+1))+`:{"type":"string"}`)
	}
	return slices.Clip(list)
}
