package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/policy"
)

// TestTrace: each rule says what it has to do with a call, and the decision is the one that Decide makes.
func TestTrace(t *testing.T) {
	set := policy.Settings{On: true, Default: policy.Ask, Rules: []policy.Rule{
		{Name: "mail", Tools: []string{"mail.*"}, Then: policy.Deny},
		{Name: "rate", Tools: []string{"bank.*"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 1, Per: "day"}},
		{Name: "big", When: "args.amount > 1000", Tools: []string{"bank.*"}, Then: policy.Deny},
		{Name: "small", When: "args.amount < 10", Tools: []string{"bank.*"}, Then: policy.Allow},
		{Name: "rest", Then: policy.Ask},
	}}
	p := compile(t, set)
	for range 2 { // it does not count
		for _, test := range []struct {
			args, rule string
			action     policy.Action
			steps      []policy.Match
			problem    int // of which rule
		}{
			{`{"amount": 5}`, "small", policy.Allow, []policy.Match{policy.OtherTools, policy.Counted, policy.Unmet, policy.Decides, policy.NotReached}, -1},
			{`{"amount": 50}`, "rest", policy.Ask, []policy.Match{policy.OtherTools, policy.Counted, policy.Unmet, policy.Unmet, policy.Decides}, -1},
			{`{}`, "big", policy.Deny, []policy.Match{policy.OtherTools, policy.Counted, policy.Decides, policy.NotReached, policy.NotReached}, 2},
		} {
			d, steps := p.Trace(t.Context(), call("bank.pay", test.args))
			if d.Action != test.action || d.Rule != test.rule {
				t.Errorf("%s: %+v", test.args, d)
			}
			var got []policy.Match
			for i, s := range steps {
				got = append(got, s.Match)
				if (s.Problem != "") != (i == test.problem) {
					t.Errorf("%s: rule %d has the problem %q", test.args, i, s.Problem)
				}
			}
			if !reflect.DeepEqual(got, test.steps) {
				t.Errorf("%s: %q", test.args, got)
			}
		}
	}
	set.On = false
	if d, steps := compile(t, set).Trace(t.Context(), call("mail.send", "{}")); d.Action != policy.Allow || steps[0].Match != policy.NotReached {
		t.Errorf("a policy that is off: %+v %v", d, steps)
	}
	if d, _ := p.Trace(t.Context(), call("other.x", "{}", readOnly)); !strings.Contains(d.Reason, "rest") {
		t.Errorf("%+v", d)
	}
}
