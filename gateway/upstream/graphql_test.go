package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil/graphqlserver"
	"sallyport/internal/tool"
)

// The queries and mutations of a GraphQL API are tools of a session like any other's; secrets of the settings are hidden in what it answers.
func TestGraphQL(t *testing.T) {
	t.Parallel()
	settings := upstream.Settings{
		ID: "shop", GraphQL: "http://shop.example/graphql", URL: graphqlserver.Start(t) + "/graphql",
		Headers: map[string]string{"X-Key": graphqlserver.Key}, Include: []string{"query:issue", "mutation:save"},
	}
	s := open(t, settings, nil)
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if len(tools) != 3 || tools[1].ID.Name != "issue" || !*tools[1].Annotations.ReadOnly || *tools[2].Annotations.ReadOnly {
		t.Fatalf("tools %+v", tools)
	}
	call := func(name, args string) (tool.Result, error) {
		return s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "shop", Name: name}, Args: json.RawMessage(args)})
	}
	if r, err := call("save", `{"text":"`+graphqlserver.Key+`"}`); err != nil || !strings.Contains(string(r.Structured), "saved [hidden]") {
		t.Errorf("a mutation: %s %v", r.Structured, err)
	}
	if _, err := call("issue", `{"id":"1","select":"{ nothing }"}`); kindOfError(err) != tool.Invalid {
		t.Errorf("a wrong field: %v", err)
	}
	settings.Headers = nil
	if err := open(t, settings, nil).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "HTTP 401") {
		t.Errorf("without a key: %v", err)
	}
}
