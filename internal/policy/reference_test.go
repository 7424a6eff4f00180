package policy_test

import (
	"testing"

	"sallyport/internal/policy"
	"sallyport/internal/testutil/refpage"
)

// TestReference holds docs/reference/policy-variables.md to the variables of expressions.
func TestReference(t *testing.T) {
	p := refpage.New("policy-variables.md", "Policy variables", "internal/policy", "TestReference")
	p.Text("The variables of `when` and `limit.cost` in `policy.rules`. Both are expressions in " +
		"[CEL](https://cel.dev). `has(annotations.destructive)` tests whether a key exists. " +
		"[The policy](../how-to/policy.md) explains rules, limits and errors.")
	var rows [][]string
	for _, v := range policy.Variables() {
		if v.Doc == "" {
			t.Errorf("the variable %s has no description", v.Name)
		}
		rows = append(rows, []string{refpage.Quote(v.Name), string(v.Type), refpage.Escape(v.Doc)})
	}
	p.Table([]string{"Variable", "Type", "Value"}, rows)
	p.Check(t)
}
