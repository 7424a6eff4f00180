package accesscmd

import (
	"fmt"
	"testing"

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
		for _, example := range cfg.Policy.Tests {
			d, err := p.Run(t.Context(), example, labelsFor(cfg, example.Call))
			if why := example.Failure(d); why != "" || err != nil {
				t.Errorf("line %d, %s: %s %v", example.Line, example.Call, why, err)
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
