package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/tool"
)

func (house) Await(context.Context, string) {}

// Tools has five tools of two upstreams; the text of one is hostile.
func (house) Tools() []tool.Tool {
	list := []tool.Tool{{ID: tool.ID{Upstream: "crm", Name: "evil"}, Wire: "evil\x1b[2J", Description: "\n\x1b[31mread\u202e me\nand more"}}
	for i := range 4 {
		list = append(list, tool.Tool{ID: tool.ID{Upstream: "docs", Name: fmt.Sprint("t", i)}, Wire: fmt.Sprint("t", i), Annotations: tool.Annotations{ReadOnly: new(true)}})
	}
	return list
}

func (house) Search(_ context.Context, s toolsearch.Request) (toolsearch.Found, error) {
	if s.Upstream == "none" {
		return toolsearch.Found{}, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream none"}
	}
	return toolsearch.Found{Total: s.Limit, Detail: s.Detail, Language: s.Language, Upstream: s.Upstream, Unmatched: []string{s.Query}, More: s.Budget}, nil
}

func (house) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	switch call.Tool.Name {
	case "t0":
		return tool.Result{Content: []tool.Content{{Type: "text", Text: string(call.Args)}}, Structured: json.RawMessage(`{"n":1}`)}, nil
	case "t1":
		return tool.Result{Content: []tool.Content{{Type: "text", Text: "no"}}, IsError: true}, nil
	case "t2":
		return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "it waits", Err: &approvals.PendingError{Approval: "a-0"}}
	case "failed", "upstream", "canceled", "timeout":
		return tool.Result{}, &tool.Error{Kind: tool.Kind(call.Tool.Name), Message: "the upstream has ended"}
	}
	return tool.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there is no tool " + call.Tool.String()}
}

func (h house) Approval(ctx context.Context, id string) (approvals.Approval, error) {
	all, err := h.Approvals(ctx)
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return approvals.Approval{}, err
}

// TestTools: pages of the tools have each of them once, searches ask what was asked for, and calls are answered by how they went.
func TestTools(t *testing.T) {
	t.Parallel()
	seen, cursor := "", ""
	for range 3 {
		_, _, got := ask(t, "ada", http.MethodGet, "/tools?limit=2&cursor="+cursor, "")
		for _, one := range got["tools"].([]any) {
			seen += one.(map[string]any)["id"].(string) + " "
		}
		cursor, _ = got["next"].(string)
		if got["total"] != 5.0 {
			t.Errorf("total: %v", got)
		}
	}
	if seen != "crm.evil docs.t0 docs.t1 docs.t2 docs.t3 " || cursor != "" {
		t.Errorf("pages: %s, then %s", seen, cursor)
	}
	for _, test := range []struct {
		who, method, path, body string
		status                  int
		says                    string
	}{
		{"ada", "GET", "/tools?upstream=crm", "", 200, `"description":"read me","id":"crm.evil","name":"evil"}],"total":1}`},
		{"ada", "GET", "/tools?upstream=docs&limit=1", "", 200, `"annotations":{"readOnlyHint":true}`},
		{"ada", "GET", "/tools/search?q=mail&detail=full&upstream=crm&limit=3&budget=50&language=typescript", "", 200,
			`"found":{"detail":"full","language":"typescript","more_upstreams":50,"tools":[],"total":3,"unmatched":["mail"],"upstream":"crm"}`},
		{"ada", "GET", "/tools/search?upstream=none", "", 404, "there is no upstream none"},
		{"ada", "GET", "/tools/search?detail=all", "", 400, "detail must be one of names, summary, signature, full"},
		{"ada", "GET", "/tools/search?query=x", "", 400, "the query has no query"},
		{"ada", "POST", "/tools/call/docs/t0", `{"arguments":{"a":[1]}}`, 200, `"content":[{"text":"{\"a\":[1]}","type":"text"}],"isError":false,"status":"done","structuredContent":{"n":1}`},
		{"ada", "POST", "/tools/call/docs/t0", `{}`, 200, `"text":"{}"`},
		{"ada", "POST", "/tools/call/docs/t1", `{"arguments":{}}`, 200, `"isError":true`},
		{"ada", "POST", "/tools/call/docs/t2", `{}`, 202, `"status":"held"`},
		{"ada", "POST", "/tools/call/docs/t2", `{}`, 202, `"id":"a-0"`},
		{"ada", "POST", "/tools/call/docs/upstream", `{}`, 502, "the upstream has ended"},
		{"ada", "POST", "/tools/call/docs/t9", `{}`, 404, "there is no tool docs.t9"},
		{"ada", "POST", "/tools/call/docs/resources%2Fread", `{}`, 404, "there is no tool docs.resources/read"},
		{"ada", "POST", "/tools/call/docs/t0", `{"args":{}}`, 400, "the body has no args"},
		{"only execute", "POST", "/tools/call/docs/t0", `{}`, 403, "this needs scope call"},
	} {
		status, _, got := ask(t, test.who, test.method, test.path, test.body)
		all, err := json.Marshal(got)
		if err != nil || status != test.status || !strings.Contains(string(all), test.says) {
			t.Errorf("%s %s: %d %.600s", test.method, test.path, status, all)
		}
	}
}
