package policy_test

import (
	"strings"
	"testing"

	"sallyport/internal/policy"
)

// TestShadowed: a rule is told of that no call can come to, and no other. What one is told of is never what decides.
func TestShadowed(t *testing.T) {
	rule := func(name, when string, then policy.Action, tools ...string) policy.Rule {
		r := policy.Rule{Name: name, When: when, Then: then, Tools: tools}
		if then == policy.Limit {
			r.Limit = &policy.Limits{Calls: 1, Per: "day"}
		}
		return r
	}
	for name, tc := range map[string]struct {
		rules []policy.Rule
		want  string // "rule by rule" each
	}{
		"all above":             {[]policy.Rule{rule("all", "", policy.Allow), rule("no", "", policy.Deny, "a.b")}, "no by all"},
		"a star above":          {[]policy.Rule{rule("all", "", policy.Allow, "*"), rule("no", "args.x == 1", policy.Deny, "a.*"), rule("few", "", policy.Limit)}, "no by all, few by all"},
		"an upstream above":     {[]policy.Rule{rule("up", "", policy.Allow, "my-chat.*"), rule("no", "", policy.Deny, "my_chat.delete_*"), rule("other", "", policy.Deny, "b.x")}, "no by up"},
		"a suffix above":        {[]policy.Rule{rule("up", "", policy.Ask, "*.delete_*"), rule("no", "", policy.Deny, "a.delete_x", "b.delete_*")}, "no by up"},
		"true above":            {[]policy.Rule{rule("all", "1 < 2", policy.Allow), rule("no", "", policy.Deny)}, "no by all"},
		"a condition above":     {[]policy.Rule{rule("some", "args.x == 1", policy.Allow), rule("no", "", policy.Deny)}, ""},
		"a limit above":         {[]policy.Rule{rule("few", "", policy.Limit), rule("no", "", policy.Deny)}, ""},
		"some of its tools":     {[]policy.Rule{rule("up", "", policy.Allow, "a.*"), rule("no", "", policy.Deny, "a.x", "b.x")}, ""},
		"two above together":    {[]policy.Rule{rule("a", "", policy.Allow, "a.*"), rule("b", "", policy.Allow, "b.*"), rule("no", "", policy.Deny, "a.x", "b.x")}, "no by a"},
		"a glob across, partly": {[]policy.Rule{rule("a", "", policy.Allow, "*.get"), rule("no", "", policy.Deny, "a.*")}, ""},
		"the same condition":    {[]policy.Rule{rule("a", "args.x == 1", policy.Ask, "a.*"), rule("no", "args.x == 1", policy.Deny, "a.b")}, "no by a"},
		"but for its errors":    {[]policy.Rule{rule("a", "args.x == 1", policy.Allow, "a.*"), rule("no", "args.x == 1", policy.Deny, "a.b")}, ""},
		"true in any case":      {[]policy.Rule{rule("a", "args.x == 1 || 1 < 2", policy.Allow), rule("no", "", policy.Deny)}, ""}, // not looked into
		"never true":            {[]policy.Rule{rule("no", "false", policy.Deny)}, "no by no"},
	} {
		p := compile(t, policy.Settings{On: true, Rules: tc.rules})
		var got []string
		for _, s := range p.Shadows(t.Context()) {
			got = append(got, tc.rules[s.Rule].Name+" by "+tc.rules[s.By].Name)
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: %q, want %q", name, text, tc.want)
		}
	}
}
