package lint_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// writes is a policy that asks about what writes.
type writes struct{}

// ExplainPolicy implements [lint.Policy].
func (writes) ExplainPolicy(_ context.Context, call tool.Call) (policy.Decision, error) {
	if call.Tool.Name == "write_file" {
		return policy.Decision{Action: policy.Ask, Rule: "writes"}, nil
	}
	return policy.Decision{Action: policy.Allow}, nil
}

// TestDocs checks that the definitions in docs/how-to/workflows.md have no faults, and that lint and a dry run print what the page shows.
func TestDocs(t *testing.T) {
	shown := map[string]string{}
	for _, e := range testutil.Examples(t, "docs/how-to/workflows.md") {
		switch {
		case e.Language == "text", e.Language == "yaml" && e.Section == "Quick start":
			shown[e.Section] = e.Text
		case e.Language == "yaml" && e.Section == "Steps":
			d, err := spec.Parse("steps.yaml", []byte(e.Text), func(string) ([]byte, error) { return []byte("result = 1"), nil })
			if err != nil {
				t.Fatal(err)
			}
			if found := lint.Check(d, lint.Options{}); len(found) > 0 {
				t.Errorf("faults of the steps: %v", found)
			}
		}
	}
	one := func(name, output string) tool.Tool {
		schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path"]}`)
		return tool.Tool{ID: tool.ID{Upstream: "filesystem", Name: name}, Wire: name, Input: schema, Output: json.RawMessage(output)}
	}
	o := lint.Options{Tools: []tool.Tool{
		one("list_directory", `{"type":"object","properties":{"content":{"type":"string"}},"required":["content"],"additionalProperties":false}`),
		one("write_file", ""),
	}}
	check := func(source string) (*spec.Definition, string) {
		d, err := spec.Parse("hello.yaml", []byte(source), nil)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range lint.Check(d, o) {
			said += f.String() + "\n"
		}
		return d, said
	}
	d, said := check(shown["Quick start"])
	if said != "" {
		t.Errorf("a fault of the quick start:\n%s", said)
	}
	if _, said := check(strings.Replace(shown["Quick start"], "output.content", "output.contnet", 1)); said != shown["Linting"] {
		t.Errorf("lint prints\n%s", said)
	}
	p, err := lint.Plan(t.Context(), d, map[string]any{"folder": "docs"}, lint.PlanOptions{Policy: writes{}})
	if err != nil || p.Text() != shown["Dry run"] {
		t.Errorf("%v: a dry run prints\n%s", err, p.Text())
	}
}
