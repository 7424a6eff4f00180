package codegen_test

import (
	"encoding/json"
	"os"
	"testing"

	"sallyport/codegen"
	"sallyport/internal/shape"
	"sallyport/internal/tool"
)

// observed is a tool that declares no result, of which one with this value was seen.
func observed(t *testing.T, value string, count int) tool.Tool {
	t.Helper()
	s, err := shape.Of([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Tool{ID: tool.ID{Upstream: "up", Name: "t"}, Wire: "t", Input: json.RawMessage(`{"type":"object","properties":{}}`), Observed: &tool.Observed{Shape: s, Count: count}}
}

// TestShapesAsText holds signatures to the texts that the guest's shape_of is held to as well.
func TestShapesAsText(t *testing.T) {
	data, err := os.ReadFile("../internal/shape/testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Value              json.RawMessage
		Python, TypeScript string
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 40 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		tl := observed(t, string(c.Value), 1)
		if got, want := codegen.Signature(tl, codegen.Python), "up.t() -> "+c.Python+"  # observed 1x"; got != want {
			t.Errorf("%s\n got %s\nwant %s", c.Value, got, want)
		}
		got := codegen.Signature(tl, codegen.TypeScript)
		if want := "up.t(): Promise<" + c.TypeScript + ">  // observed 1x"; got != want {
			t.Errorf("%s\n got %s\nwant %s", c.Value, got, want)
		}
	}
}
