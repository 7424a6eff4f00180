package policy_test

import (
	"strings"
	"testing"

	"sallyport/internal/policy"
)

// TestSpellings: an upstream may read keys without regard to case, or to how a letter is encoded. What it might take for an argument that
// a rule names is not passed by that rule, wherever in the arguments it stands.
func TestSpellings(t *testing.T) {
	p := compile(t, policy.Settings{On: true, Default: policy.Deny, Rules: []policy.Rule{
		{Name: "evil", Tools: []string{"mail.*"}, When: `has(args.to) && args.to == "eve"`, Then: policy.Deny},
		{Name: "us", Tools: []string{"mail.*"}, When: `args.to == "ann"`, Then: policy.Allow},
		{Name: "index", Tools: []string{"list.*"}, When: `"kind" in args && args["kind"] == "x" || args.?task.orValue("") == "x"`, Then: policy.Deny},
		{Name: "nested", Tools: []string{"deep.*"}, When: `args.items.exists(i, has(i.path) && i.path == "/etc")`, Then: policy.Deny},
		{Name: "cost", Tools: []string{"bank.*"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 10, Per: "day", Cost: `has(args.amount) ? args.amount : 1`}},
		{Name: "others", Tools: []string{"list.*", "deep.*", "bank.*"}, Then: policy.Allow},
	}})
	for _, tc := range []struct {
		id, args string
		want     policy.Action
		rule     string
	}{
		{"mail.send", `{"to":"ann"}`, policy.Allow, "us"},
		{"mail.send", `{"to":"eve"}`, policy.Deny, "evil"},
		{"mail.send", `{"to":"ann","TO":"eve"}`, policy.Deny, "evil"},
		{"mail.send", `{"To":"eve"}`, policy.Deny, "evil"},
		{"mail.send", `{"\u0054o":"eve"}`, policy.Deny, "evil"},
		{"mail.send", `{"to":"ann","ｔｏ":"eve"}`, policy.Deny, "evil"}, // of full width
		{"mail.send", `{"to":"ann","t\u00ado":"eve"}`, policy.Deny, "evil"},
		{"mail.send", `{"to":"ann","cc":{"a":1,"A":2}}`, policy.Deny, "evil"}, // either may be read
		{"mail.send", `{"to":"ann","caf\u00e9":1,"cafe\u0301":2}`, policy.Deny, "evil"},
		{"mail.send", `{"to":"ann","stra\u00dfe":1,"STRASSE":2}`, policy.Deny, "evil"},
		{"mail.send", `{"to":"ann","Body":"TO: eve","toto":"TO"}`, policy.Allow, "us"}, // values are none of it
		{"list.get", `{"\u212aind":"x"}`, policy.Deny, "index"},                        // Kelvin
		{"list.get", `{"ta\u017fk":"x"}`, policy.Deny, "index"},                        // long s
		{"list.get", `{"kind":"y","Other":1}`, policy.Allow, "others"},
		{"deep.get", `{"items":[{"path":"/srv"},{"Path":"/etc"}]}`, policy.Deny, "nested"},
		{"deep.get", `{"items":[{"path":"/srv"}],"TO":1}`, policy.Allow, "others"}, // a name of rules for other tools
		{"bank.pay", `{"amount":1,"Amount":1000}`, policy.Deny, "cost"},
		{"bank.pay", `{"AMOUNT":1000}`, policy.Deny, "cost"},
		{"bank.pay", `{"amount":1}`, policy.Allow, "others"},
	} {
		d := p.Decide(t.Context(), call(tc.id, tc.args))
		if d.Action != tc.want || d.Rule != tc.rule {
			t.Errorf("%s %s: %+v, want %s by %s", tc.id, tc.args, d, tc.want, tc.rule)
		}
		if strings.Contains(d.Reason, "eve") || strings.Contains(d.Reason, "1000") {
			t.Errorf("%s tells an argument: %s", tc.args, d.Reason)
		}
	}
}
