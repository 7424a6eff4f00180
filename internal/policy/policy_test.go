package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// call is a call of a tool that says nothing of itself, unless change does.
func call(id, args string, change ...func(*policy.Call)) *policy.Call {
	parsed, err := tool.ParseID(id)
	if err != nil {
		panic(err)
	}
	c := &policy.Call{Tool: parsed, Args: func() (any, error) { return expr.Decode([]byte(args)) }, Principal: "ann", Session: "s1", Execution: "e1", Time: time.Now()}
	for _, f := range change {
		f(c)
	}
	return c
}

func readOnly(c *policy.Call)    { c.Annotations.ReadOnly = new(true) }
func destructive(c *policy.Call) { c.Annotations.Destructive = new(true) }
func labels(l ...string) func(*policy.Call) {
	return func(c *policy.Call) { c.Labels = l }
}

func read(l ...string) func(*policy.Call) {
	return func(c *policy.Call) { c.Read = l }
}

func compile(t testing.TB, set policy.Settings) *policy.Policy {
	t.Helper()
	p, err := policy.New(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rules are the ones of TestDecide.
func rules() policy.Settings {
	return policy.Settings{On: true, Default: policy.Ask, Rules: []policy.Rule{
		{Name: "no-admin", Tools: []string{"*.admin_*", "github.delete_*"}, Then: policy.Deny, Message: "open a ticket"},
		{Name: "big", When: `args.amount > 1000`, Tools: []string{"bank.*"}, Then: policy.Deny},
		{Name: "small", When: `args.amount < 10 && principal == "ann"`, Tools: []string{"bank.pay"}, Then: policy.Allow},
		{Name: "remote", When: `remote && annotations.destructive`, Then: policy.Ask},
		{Name: "twice", When: `calls["mail.send"] >= 2 || "prod" in labels`, Tools: []string{"mail.send"}, Then: policy.Deny},
		{Name: "mail", Tools: []string{"mail.*"}, Then: policy.Allow},
		{Name: "channel", When: `args.channel == "sec" && read.size() > 0`, Tools: []string{"my-chat.post"}, Then: policy.Allow},
		{Name: "guests", Tools: []string{"ops.*"}, When: `"guests" in groups`, Then: policy.Deny},
		{Name: "ops", Tools: []string{"ops.*"}, When: `"ops" in groups`, Then: policy.Allow},
		{Name: "files", Tools: []string{"docs.resources.read"}, When: `args.uri.startsWith("file:///etc")`, Then: policy.Deny},
	}}
}

func TestDecide(t *testing.T) {
	p := compile(t, rules())
	for name, tc := range map[string]struct {
		call   *policy.Call
		want   policy.Action
		rule   string
		reason string
	}{
		"a glob":                  {call("github.delete_repo", "{}", readOnly), policy.Deny, "no-admin", ""},
		"a glob of all upstreams": {call("x.admin_reset", "{}"), policy.Deny, "no-admin", ""},
		"a tool that reads":       {call("x.get", "{}", readOnly), policy.Allow, "read-only", ""},
		"one that says nothing":   {call("x.get", "{}"), policy.Ask, "default", "does not say"},
		"one that destroys":       {call("x.get", "{}", destructive), policy.Ask, "default", "destroys"},
		"a resource":              {call("x.resources/read", `{"uri":"a:b"}`), policy.Allow, "read-only", ""},
		"a group":                 {call("ops.x", "{}", func(c *policy.Call) { c.Groups = func(string) ([]string, bool) { return []string{"ops"}, true } }), policy.Allow, "ops", ""},
		"another group": {call("ops.x", "{}", func(c *policy.Call) {
			c.Groups = func(string) ([]string, bool) { return []string{"ops", "guests"}, true }
		}), policy.Deny, "guests", ""},
		"unknown groups":                 {call("ops.x", "{}", func(c *policy.Call) { c.Groups = func(string) ([]string, bool) { return nil, false } }), policy.Deny, "guests", ""},
		"a resource by rule":             {call("docs.resources/read", `{"uri":"file:///etc/passwd"}`), policy.Deny, "files", ""},
		"a condition":                    {call("bank.pay", `{"amount":2000}`), policy.Deny, "big", ""},
		"a number written otherwise":     {call("bank.pay", `{"amount":2e3}`), policy.Deny, "big", ""},
		"the next rule":                  {call("bank.pay", `{"amount":5.5}`), policy.Allow, "small", ""},
		"no rule":                        {call("bank.pay", `{"amount":50}`), policy.Ask, "default", ""},
		"another principal":              {call("bank.pay", `{"amount":5}`, func(c *policy.Call) { c.Principal = "bob" }), policy.Ask, "default", ""},
		"a missing key denies":           {call("bank.pay", `{}`), policy.Deny, "big", "there is no key amount"},
		"a wrong type denies":            {call("bank.pay", `{"amount":"5"}`), policy.Deny, "big", "could not be evaluated"},
		"an argument twice denies":       {call("bank.pay", `{"amount":5,"amount":5000}`), policy.Deny, "big", "could not be evaluated"},
		"an annotation that is not sent": {call("x.get", "{}", func(c *policy.Call) { c.Remote = true }), policy.Ask, "remote", "no key destructive"},
		"never called":                   {call("mail.send", "{}"), policy.Allow, "mail", ""},
		"called twice":                   {call("mail.send", "{}", func(c *policy.Call) { c.Calls = func() map[string]int64 { return map[string]int64{"mail.send": 2} } }), policy.Deny, "twice", ""},
		"a label of the operator's":      {call("mail.send", "{}", labels("prod")), policy.Deny, "twice", ""},
		"flow":                           {call("mail.send", "{}", labels("external"), read("private", "untrusted")), policy.Ask, "flow", "untrusted and private"},
		"flow of what only reads":        {call("web.get", "{}", readOnly, labels("external"), read("private", "untrusted")), policy.Ask, "flow", ""},
		"half of it":                     {call("mail.send", "{}", labels("external"), read("private")), policy.Allow, "mail", ""},
		"not external":                   {call("mail.send", "{}", labels("private"), read("private", "untrusted")), policy.Allow, "mail", ""},
		"flow does not soften":           {call("github.delete_repo", "{}", labels("external"), read("private", "untrusted")), policy.Deny, "no-admin", ""},
		"flow beside another question":   {call("x.post", "{}", labels("external"), read("private", "untrusted")), policy.Ask, "flow", "besides, the upstream does not say"},
		"a rule that knows of flow":      {call("my_chat.post", `{"channel":"sec"}`, labels("external"), read("private", "untrusted")), policy.Allow, "channel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.Decide(t.Context(), tc.call)
			if got.Action != tc.want || got.Rule != tc.rule || !strings.Contains(got.Reason, tc.reason) || got.Reason == "" {
				t.Errorf("%+v, want %s by %s", got, tc.want, tc.rule)
			}
		})
	}
}

// Arguments are in no text of a decision, and are looked at only where a rule does.
func TestReasonsShowNoArguments(t *testing.T) {
	p := compile(t, policy.Settings{On: true, Rules: []policy.Rule{{When: `int(args.n) > 3 && args[args.n] == 1`, Then: policy.Deny, Tools: []string{"a.*"}}}})
	d := p.Decide(t.Context(), call("a.b", `{"n":"s3cr3t"}`))
	if d.Action != policy.Deny || strings.Contains(d.Reason+d.Message, "s3cr3t") || !strings.Contains(d.Reason, "rule 1") {
		t.Errorf("%+v", d)
	}
	p.Decide(t.Context(), call("b.b", "", func(c *policy.Call) {
		c.Args = func() (any, error) { t.Error("looked at"); return nil, errors.New("no") }
	}))
}

func TestFlowSettings(t *testing.T) {
	held := call("mail.send", "{}", labels("external"), read("private", "untrusted"))
	for flow, want := range map[policy.Flow]policy.Action{"": policy.Ask, policy.FlowAsk: policy.Ask, policy.FlowDeny: policy.Deny, policy.FlowOff: policy.Allow} {
		if got := compile(t, policy.Settings{Flow: flow}).Decide(t.Context(), held); got.Action != want { // also without rules
			t.Errorf("%q: %+v", flow, got)
		}
	}
	if got := compile(t, policy.Settings{}).Decide(t.Context(), call("a.b", "{}", destructive)); got.Action != policy.Allow || got.Rule != "" {
		t.Errorf("without a policy: %+v", got)
	}
}

// limited is a policy with one limit, before a rule that allows all but what is called no.
func limited(t *testing.T, l policy.Limits) *policy.Policy {
	t.Helper()
	return compile(t, policy.Settings{On: true, Rules: []policy.Rule{
		{Name: "few", Then: policy.Limit, Limit: &l, Message: "be patient"}, {Name: "no", Tools: []string{"a.no"}, Then: policy.Deny}, {Name: "yes", Then: policy.Allow},
	}})
}

// passed counts how many of n calls go through.
func passed(t *testing.T, p *policy.Policy, n int, c *policy.Call) (ok int) {
	t.Helper()
	for range n {
		c.Time = time.Now()
		switch d := p.Decide(t.Context(), c); {
		case d.Action == policy.Allow:
			ok++
		case !d.Limited || d.Rule != "few" || d.Message != "be patient":
			t.Errorf("%+v", d)
		}
	}
	return ok
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, policy.Limits{Calls: 3, Per: "minute"})
		p.Decide(t.Context(), call("a.no", "{}")) // what is denied does not count
		if n := passed(t, p, 5, call("a.b", "{}")); n != 3 {
			t.Errorf("%d of the first minute", n)
		}
		other := func(c *policy.Call) { c.Principal = "bob" }
		if n := passed(t, p, 5, call("a.b", "{}", other)); n != 3 {
			t.Errorf("%d of somebody else's", n)
		}
		time.Sleep(59 * time.Second)
		if n := passed(t, p, 5, call("a.b", "{}")); n != 0 {
			t.Errorf("%d too early", n)
		}
		time.Sleep(31 * time.Second) // half of the minute before has slid out
		if n := passed(t, p, 5, call("a.b", "{}")); n != 2 {
			t.Errorf("%d in the middle", n)
		}
		time.Sleep(10 * time.Minute)
		if n := passed(t, p, 5, call("a.b", "{}")); n != 3 {
			t.Errorf("%d much later", n)
		}
	})
}

func TestLimitKeys(t *testing.T) {
	in := func(principal, session, execution string) *policy.Call {
		return call("a.b", "{}", func(c *policy.Call) { c.Principal, c.Session, c.Execution = principal, session, execution })
	}
	for _, tc := range []struct {
		per, by string
		want    []int // of a second execution, a second session, a second principal
	}{
		{"execution", "", []int{2, 2, 2}}, {"session", "", []int{0, 2, 2}}, {"hour", "", []int{0, 0, 2}},
		{"hour", "session", []int{0, 2, 2}}, {"day", "execution", []int{2, 2, 2}}, {"day", "everyone", []int{0, 0, 0}},
	} {
		p := limited(t, policy.Limits{Calls: 2, Per: tc.per, By: tc.by})
		if n := passed(t, p, 3, in("ann", "1", "e1")); n != 2 {
			t.Errorf("%+v: %d", tc, n)
		}
		for i, c := range []*policy.Call{in("ann", "1", "e2"), in("ann", "2", "e3"), in("bob", "1", "e4")} {
			if n := passed(t, p, 3, c); n != tc.want[i] {
				t.Errorf("%+v: %d of %d", tc, n, i)
			}
		}
	}
	if n := passed(t, limited(t, policy.Limits{Calls: 2, Per: "execution"}), 5, in("ann", "1", "")); n != 5 {
		t.Errorf("%d calls outside of programs", n)
	}
}

func TestLimitCost(t *testing.T) {
	p := limited(t, policy.Limits{Calls: 100, Per: "hour", Cost: "args.n"})
	for _, tc := range []struct {
		n    string
		want int
	}{{"101", 0}, {"60", 1}, {"41", 0}, {"-1000", 0}, {`"x"`, 0}, {"9223372036854775807", 0}, {"40", 1}, {"0", 1}, {"1", 0}} {
		if n := passed(t, p, 1, call("a.b", `{"n":`+tc.n+`}`)); n != tc.want {
			t.Errorf("%s: %d", tc.n, n)
		}
	}
}

// What was counted counts on when other settings come into force, if the rule is the same.
func TestLimitsStay(t *testing.T) {
	counts := policy.NewCounts(nil)
	set := policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "few", Then: policy.Limit, Limit: &policy.Limits{Calls: 1, Per: "day"}, Message: "be patient"}}}
	for i, want := range []int{1, 0} {
		p, err := policy.New(set, counts)
		if err != nil {
			t.Fatal(err)
		}
		if n := passed(t, p, 2, call("a.b", "{}")); n != want {
			t.Errorf("%d: %d", i, n)
		}
		set.Rules = append(set.Rules, policy.Rule{Name: "more", Tools: []string{"x.*"}, Then: policy.Deny})
	}
}

// So many rules that compiling them would take long are refused at once.
func TestTooManyRules(t *testing.T) {
	problems := policy.Check(policy.Settings{On: true, Rules: make([]policy.Rule, 50_000)})
	if len(problems) != 1 || problems[0].Key != "rules" {
		t.Errorf("%d problems", len(problems))
	}
}

func TestExpected(t *testing.T) {
	p := compile(t, rules())
	for id, want := range map[string]policy.Action{
		"github.delete_repo": policy.Deny, "x.get": policy.Ask, "bank.pay": policy.Allow, "bank.other": policy.Ask, "mail.send": policy.Allow, "my_chat.post": policy.Allow,
	} {
		if got := p.ExpectedAction(t.Context(), call(id, "{}")); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := p.ExpectedAction(t.Context(), call("x.get", "{}", readOnly)); got != policy.Allow {
		t.Errorf("what reads: %s", got)
	}
}

func TestRun(t *testing.T) {
	p := compile(t, rules())
	for _, tc := range []struct {
		test policy.Test
		want string
	}{
		{policy.Test{Call: "bank.pay", Args: json.RawMessage(`{"amount":5}`), Principal: "ann", Expect: policy.Allow, Rule: "small"}, ""},
		{policy.Test{Call: "bank.pay", Args: json.RawMessage(`{"amount":5}`), Expect: policy.Allow}, "expected allow, but it is ask"},
		{policy.Test{Call: "my-chat.post", Args: json.RawMessage(`{"channel":"sec"}`), Read: []string{"private"}, Expect: policy.Allow, Rule: "mail"}, `expected rule "mail" to decide, but it is "channel"`},
		{policy.Test{Call: "mail.send", Calls: map[string]int64{"mail.send": 2}, Expect: policy.Deny, Rule: "twice"}, ""},
		{policy.Test{Call: "mail.send", Read: []string{"private", "untrusted"}, Expect: policy.Ask, Rule: "flow"}, ""}, // by the labels of the settings
		{policy.Test{Call: "mail.send", Labels: []string{}, Read: []string{"private", "untrusted"}, Expect: policy.Allow}, ""},
		{policy.Test{Call: "ops.restart", Groups: []string{"dev", "ops"}, Expect: policy.Allow, Rule: "ops"}, ""},
		{policy.Test{Call: "ops.restart", Expect: policy.Ask, Rule: "default"}, ""},
		{policy.Test{Call: "x.y", Annotations: map[string]bool{"readOnly": true}, Expect: policy.Allow, Rule: "read-only"}, ""},
	} {
		d, err := p.Run(t.Context(), tc.test, []string{"external"})
		if got := tc.test.Failure(d); err != nil || !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%+v: %q %v", tc.test, got, err)
		}
	}
}

// BenchmarkDecide is of twenty rules that all look at the call.
func BenchmarkDecide(b *testing.B) {
	set := policy.Settings{On: true}
	for i := range 20 {
		when := []string{`args.amount > 1000`, `principal == "bob"`, `"prod" in labels`, `args.path.startsWith("/etc")`}[i%4]
		set.Rules = append(set.Rules, policy.Rule{When: when, Then: policy.Deny})
	}
	p := compile(b, set)
	c := call("fs.read", `{"amount":3,"path":"/home/ann/x"}`, labels("private"))
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(b.Context(), c)
	}
}
