package accesscmd

import (
	"fmt"
	"testing"

	"sallyport/gateway/rehearsal"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
)

// TestPolicyDoc runs the examples of docs/how-to/policy.md with the tests in them. The page has the output for the first.
func TestPolicyDoc(t *testing.T) {
	ran, printed, first := 0, "", 0
	for _, e := range testutil.Examples(t, "docs/how-to/policy.md") {
		if e.Language == "text" {
			printed = e.Text
		}
		if e.Language != "yaml" {
			continue
		}
		cfg, err := config.Parse("policy.md", []byte(e.Text), nil)
		if err != nil {
			t.Errorf("an example is refused: %v", err)
			continue
		}
		p, err := policy.New(cfg.Policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, unreachable := range cfg.Policy.Unreachable(t.Context(), p) {
			t.Error(unreachable)
		}
		results, err := rehearsal.Tests(t.Context(), cfg)
		if err != nil {
			t.Error(err)
		}
		for _, example := range results {
			if example.Problem != "" {
				t.Errorf("line %d, %s: %s", example.Line, example.Call, example.Problem)
			}
		}
		ran += len(cfg.Policy.Tests)
		if first == 0 {
			first = ran
		}
	}
	if ran < 10 || printed != fmt.Sprintf("%d tests passed\n", first) {
		t.Errorf("%d examples were run, and the page says %s", ran, printed)
	}
}
