package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/tool"
)

// shelf is an upstream of resources and prompts.
func shelf(s *site) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		s.hits.Add(1)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: "text of " + req.Params.URI}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "book://one", Name: "one", Description: "<b> & more"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "book://shelf/{n}", Name: "shelf"}, read)
	s.AddPrompt(&mcp.Prompt{Name: "review", Arguments: []*mcp.PromptArgument{{Name: "title", Required: true}, {Name: "tone"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			s.hits.Add(1)
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "review " + req.Params.Arguments["title"]}}}}, nil
		})
}

func TestMethodsThroughTheDoor(t *testing.T) {
	s := newSite(t, shelf, calc)
	g := open(t, settings(map[string]*site{"lib": s}), nil)
	for _, test := range []struct{ method, args, want string }{
		{tool.ListResources, ``, `{"resources":[{"description":"<b> & more","name":"one","uri":"book://one"}]}`},
		{tool.ListTemplates, `{}`, `{"resourceTemplates":[{"name":"shelf","uriTemplate":"book://shelf/{n}"}]}`},
		{tool.ListPrompts, `null`, `{"prompts":[{"arguments":[{"name":"title","required":true},{"name":"tone"}],"name":"review"}]}`},
	} {
		before := s.hits.Load()
		result, err := g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "lib", Name: test.method}, Args: json.RawMessage(test.args)})
		if err != nil || s.hits.Load() != before {
			t.Errorf("%s: %v", test.method, err)
			continue
		}
		if diff := cmp.Diff(value(t, test.want), value(t, string(result.Structured))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.method, diff)
		}
	}
	for _, test := range []struct{ method, args, want string }{
		{tool.ReadResource, `{"uri":"book://one"}`, `text of book://one`},
		{tool.ReadResource, `{"uri":"book://shelf/7"}`, `text of book://shelf/7`},
		{tool.GetPrompt, `{"name":"review","arguments":{"title":"x"}}`, `review x`},
	} {
		result, err := g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "lib", Name: test.method}, Args: json.RawMessage(test.args)})
		if err != nil || !json.Valid(result.Raw) || !strings.Contains(string(result.Raw), test.want) {
			t.Errorf("%s(%s): %s, %v", test.method, test.args, result.Raw, err)
		}
	}
}

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err, text)
	}
	return v
}

func TestMethodsCheckArguments(t *testing.T) {
	s := newSite(t, shelf, calc)
	g := open(t, settings(map[string]*site{"lib": s}), nil)
	for _, test := range []struct {
		method, args, want string
		kind               tool.Kind
	}{
		{tool.ReadResource, `{}`, `argument "uri" is missing`, tool.Invalid},
		{tool.ReadResource, `{"url":"book://one"}`, `argument "uri" is missing (you gave "url"; uris are listed by resources/list`, tool.Invalid},
		{tool.ReadResource, `{"uri":7}`, `argument "uri" must be a string`, tool.Invalid},
		{tool.ReadResource, `[]`, `arguments must be one JSON object`, tool.Invalid},
		{tool.Subscribe, `{}`, `argument "uri" is missing`, tool.Invalid},
		{tool.GetPrompt, `{}`, `argument "name" is missing (prompts: review)`, tool.Invalid},
		{tool.GetPrompt, `{"name":"reviw"}`, `there is no prompt lib reviw (did you mean review?)`, tool.NotFound},
		{tool.GetPrompt, `{"name":"zzz"}`, `there is no prompt lib zzz (prompts: review)`, tool.NotFound},
		{tool.GetPrompt, `{"name":"review"}`, `argument "title" of prompt review is missing (arguments: title, tone?)`, tool.Invalid},
		{tool.GetPrompt, `{"name":"review","arguments":{"titel":"x"}}`, `unknown argument "titel" of prompt review (did you mean title?`, tool.Invalid},
		{tool.GetPrompt, `{"name":"review","arguments":{"title":7}}`, `must be one JSON object of strings`, tool.Invalid},
		{tool.SetLogLevel, `{"level":"loud"}`, `unknown level "loud" (levels: debug, info`, tool.Invalid},
		{"no/such", `{}`, `there is no method no/such`, tool.NotFound},
	} {
		_, err := g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "lib", Name: test.method}, Args: json.RawMessage(test.args)})
		wantError(t, err, test.kind, test.want)
	}
	if n := s.hits.Load(); n != 0 {
		t.Errorf("%d reached the upstream", n)
	}
	_, err := g.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "lbi", Name: tool.ListPrompts}})
	wantError(t, err, tool.NotFound, "did you mean lib?")
}
