package pii

import "testing"

// TestRulesCompile: a rule is compiled when its keyword is first seen, so that none may be wrong.
func TestRulesCompile(t *testing.T) {
	t.Parallel()
	seen := map[*secretRule]bool{}
	for _, list := range loadRules().by {
		for _, k := range list {
			if !seen[k.rule] {
				seen[k.rule] = true
				k.rule.once.Do(k.rule.compile)
				if k.rule.Group > k.rule.pattern.NumSubexp() {
					t.Errorf("%s has no group %d", k.rule.ID, k.rule.Group)
				}
			}
		}
	}
	if len(seen) < 190 {
		t.Errorf("there are %d rules", len(seen))
	}
}
