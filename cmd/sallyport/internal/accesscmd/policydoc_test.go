package accesscmd

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
)

// TestPolicyDoc runs the examples of docs/how-to/policy.md with the tests that stand in them.
func TestPolicyDoc(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(text, -1) {
		cfg, err := config.Parse("policy.md", block[1], nil)
		if err != nil {
			t.Errorf("an example is refused: %v", err)
			continue
		}
		p, err := policy.New(cfg.Policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range cfg.Policy.Tests {
			d, err := p.Run(t.Context(), example, labelsFor(cfg, example.Call))
			if why := example.Failure(d); why != "" || err != nil {
				t.Errorf("line %d, %s: %s %v", example.Line, example.Call, why, err)
			}
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("only %d examples were run", ran)
	}
}
