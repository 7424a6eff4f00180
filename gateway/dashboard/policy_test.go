package dashboard_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/dashboard"
	"sallyport/gateway/rehearsal"
	"sallyport/gateway/settingsedit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// rules are a policy with hostile texts.
func rules() policy.Settings {
	return policy.Settings{On: true, Default: policy.Deny, Flow: policy.FlowDeny, Isolate: evil, Tests: make([]policy.Test, 3), Rules: []policy.Rule{
		{Name: "reads", Tools: []string{"crm.get_*", "docs.*"}, Then: policy.Allow},
		{Name: evil, Tools: []string{evil}, When: evil, Then: policy.Deny, Message: evil},
		{When: "args.n > 3", Then: policy.Limit, Limit: &policy.Limits{Calls: 1000, Per: "day", By: "everyone", Cost: "args.n"}},
	}}
}

func (h house) TracePolicy(ctx context.Context, c tool.Call) (policy.Decision, []policy.Step, error) {
	if c.Tool.Upstream == "none" {
		return policy.Decision{}, nil, &tool.Error{Kind: tool.NotFound, Message: evil, Hint: evil}
	}
	if h.told != nil {
		*h.told = append(*h.told, "try "+c.Tool.String()+" "+string(c.Args)+" for "+tool.Principal(ctx))
	}
	return policy.Decision{Action: policy.Deny, Rule: evil, Reason: evil, Message: evil}, []policy.Step{{Match: policy.OtherTools}, {Match: policy.Decides, Problem: evil}, {Match: policy.NotReached}}, nil
}

// editor edits a file with hostile texts. The word "bad" is a mistake.
type editor struct{ told *[]string }

func (editor) Open(_ context.Context, keys ...string) (settingsedit.Part, error) {
	name := keys[len(keys)-1]
	return settingsedit.Part{Keys: keys, Text: name + ":\n  # " + strings.NewReplacer("\u202e", "", "\u200b", "", "\x1b", "").Replace(evil) + "\n", Version: "v1", File: "/etc/" + evil, Line: 7}, nil
}

func (editor) Check(_ context.Context, d settingsedit.Draft) (*settingsedit.Checked, error) {
	if d.Version != "v1" {
		return &settingsedit.Checked{Problems: []settingsedit.Problem{{Message: "The file has changed.", Stale: true}}}, nil
	}
	if strings.Contains(d.Text, "bad") {
		return &settingsedit.Checked{Problems: []settingsedit.Problem{{Line: 2, Column: 3, Message: evil, Snippet: "  2 | " + evil + "\n      ^"}, {Message: "elsewhere"}}}, nil
	}
	return &settingsedit.Checked{Config: &config.Config{Policy: policy.Settings{On: true, Rules: []policy.Rule{{Name: "all", Then: policy.Allow}, {Name: "never <b>", Then: policy.Deny}},
		Tests: []policy.Test{{Call: "crm.get", Expect: policy.Allow}, {Call: "crm.set", Expect: policy.Deny}}}}}, nil
}

func (e editor) Save(_ context.Context, d settingsedit.Draft) ([]settingsedit.Problem, string, error) {
	if strings.Contains(d.Text, "late") {
		return []settingsedit.Problem{{Message: "The file has changed in this moment."}}, "", nil
	}
	*e.told = append(*e.told, "save "+strings.Join(d.Keys, ".")+" "+d.Version+" "+d.Text)
	if strings.Contains(d.Text, "slow") {
		return nil, evil + "\nmore", nil
	}
	return nil, "", nil
}

func (e editor) SetDisabled(_ context.Context, name string, disabled bool) (string, error) {
	if e.told != nil {
		*e.told = append(*e.told, map[bool]string{true: "disable ", false: "enable "}[disabled]+name)
	}
	return "", nil
}

func rehearse(context.Context, *config.Config) (rehearsal.Outcome, error) {
	return rehearsal.Outcome{
		Calls: 1412, Allowed: 1407, Refused: 3, Asked: 2, Differ: 1, More: 7, Notes: []string{evil},
		Changes: []rehearsal.Change{
			{Tool: tool.ID{Upstream: evil, Name: evil}, Principal: evil, Was: policy.Allow, Now: policy.Deny, Rule: evil, Reason: evil, Calls: 1234, Last: time.Now(), Execution: "e-1"},
			{Tool: tool.ID{Upstream: "crm", Name: "set"}, Was: policy.Ask, Now: policy.Ask, Calls: 1}, {Tool: tool.ID{Upstream: "crm", Name: "get"}, Was: policy.Allow, Now: rehearsal.Unknown, Calls: 1},
		},
	}, nil
}

var policyPages = map[string][]string{
	"/ui/policy":              {"reads", "crm.get_*", "at most 1,000 per day, counted by everyone, a call counts args.n", "rule 3", "Try a call", `<option value="crm.order">`, `href="/ui/policy/edit"`, "No rule matches", "refused, unless the tool only reads"},
	"/ui/policy?tool=crm.set": {`value="crm.set"`},
	"/ui/policy/edit":         {"policy:\n  # ", `value="v1"`, "Check", "/etc/"},
}

// TestPolicyTry: a call is decided for a principal, and each rule says what it has to do with it.
func TestPolicyTry(t *testing.T) {
	for _, test := range []struct {
		who, tool, args, principal string
		headers                    []string
		status                     int
		told                       string
		has                        []string
	}{
		{"op", " crm.set ", "{\"n\": 1}\r\n", "oauth:ann", nil, 200, `try crm.set {"n":1} for oauth:ann`, []string{"crm.set: refused.", "<strong>decides</strong>", "not reached", "other tools", "could not be evaluated", "The model is told:", `value="oauth:ann"`, `{&#34;n&#34;: 1}`}},
		{"token", "my-crm.set", "{}", "", nil, 200, `try my_crm.set {} for `, nil},
		{"op", "crm", "{}", "", nil, 400, "", []string{"is not a tool id", `value="crm"`}},
		{"op", "crm.set", "{", "", nil, 400, "", []string{"must be one JSON object", "{</textarea>"}},
		{"op", `"><script>alert(1)</script>.x`, evil, `"><script>alert(2)</script>`, nil, 400, "", nil},
		{"op", "none.x", "{}", "", nil, 404, "", []string{`role="alert"`}},
		{"ada", "crm.set", "{}", "", nil, 403, "", nil},
		{"reader", "crm.set", "{}", "", nil, 403, "", nil},
		{"op", "crm.set", "{}", "", []string{"Sec-Fetch-Site: cross-site"}, 403, "", nil},
	} {
		var told []string
		got := ask(t, house{told: &told}, test.who, "/ui/policy", url.Values{"tool": {test.tool}, "args": {test.args}, "principal": {test.principal}}, test.headers...)
		page := got.Body.String()
		if got.Code != test.status || strings.Join(told, "|") != test.told {
			t.Errorf("%s %s: %d, told %q; want %d, %q", test.who, test.tool, got.Code, told, test.status, test.told)
		}
		for _, text := range test.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in %.9000s", test.tool, text, page)
			}
		}
		checkHarmless(t, page)
	}
}

// TestPolicyOff: settings without a policy, and gateways without a settings file.
func TestPolicyOff(t *testing.T) {
	d := dashboard.New(house{}, &dashboard.Options{Editor: editor{}})
	if page := send(t, d, "op", "/ui/policy", nil).Body.String(); !strings.Contains(page, "every call is made") || !strings.Contains(page, "Write the first rules") {
		t.Error(page)
	}
	if page := send(t, d, "token", "/ui/policy", nil).Body.String(); strings.Contains(page, "/ui/policy/edit") || !strings.Contains(page, "sallyport dashboard") {
		t.Error(page)
	}
	for path, status := range map[string]int{"/ui/policy": 200, "/ui/policy/edit": 404} {
		if got := send(t, dashboard.New(house{}, nil), "op", path, nil); got.Code != status || strings.Contains(got.Body.String(), `href="/ui/policy/edit"`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// hiddenField returns the value of a hidden field of a page.
func hiddenField(page, name string) string {
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		return "(none)"
	}
	return found[1]
}

// TestPolicyEdit: a text is checked, with what it would change, and saved only as it was checked.
func TestPolicyEdit(t *testing.T) {
	var told []string
	h := house{told: &told}
	edit := func(who, do, text, version, checked string, headers ...string) answer {
		got := ask(t, h, who, "/ui/policy/edit", url.Values{"do": {do}, "text": {text}, "version": {version}, "checked": {checked}}, headers...)
		checkHarmless(t, got.Body.String())
		return got
	}
	checked := edit("op", "check", "policy: {}\r\n", "v1", "")
	page := checked.Body.String()
	for _, want := range []string{
		"Of 1,412 calls of the last day, 3 would be refused, 2 would wait for approval. 1 is decided differently", "1 test fails, of 2", "never &lt;b&gt;", "can never decide", "the test of crm.set fails",
		"1,234", "as before", "cannot be told", "7 more lines", `href="/ui/executions/e-1"`, `value="save"`, "policy: {}</textarea>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("a check has no %q in %.9000s", want, page)
		}
	}
	digest := hiddenField(page, "checked")
	if checked.Code != 200 || len(told) > 0 || digest == "" || hiddenField(page, "version") != "v1" {
		t.Errorf("a check: %d, told %q", checked.Code, told)
	}

	for name, got := range map[string]answer{
		"one that was not checked": edit("op", "save", "policy: {}\r\n", "v1", ""), "another than was checked": edit("op", "save", "policy: {a: b}", "v1", digest),
	} {
		if got.Code != 200 || len(told) > 0 || !strings.Contains(got.Body.String(), "What it would change") {
			t.Errorf("%s: %d, told %q", name, got.Code, told)
		}
	}
	bad := edit("op", "check", "policy: bad", "v1", "")
	if page := bad.Body.String(); bad.Code != 400 || hiddenField(page, "checked") != "" || !strings.Contains(page, "Not saved: 2 problems") || !strings.Contains(page, "Line 2: ") || strings.Contains(page, `value="save"`) || !strings.Contains(page, "policy: bad</textarea>") {
		t.Errorf("%d %s", bad.Code, page)
	}
	if stale := edit("op", "check", "policy: {}", "v0", ""); stale.Code != 400 || !strings.Contains(stale.Body.String(), "The file has changed.") {
		t.Errorf("%d %s", stale.Code, stale.Body)
	}
	for _, who := range []string{"token", "ada", "reader", ""} {
		if got := edit(who, "save", "policy: {}\r\n", "v1", digest); got.Code != 403 {
			t.Errorf("%q: %d", who, got.Code)
		}
	}
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"} {
		if got := edit("op", "save", "policy: {}\r\n", "v1", digest, header); got.Code != 403 {
			t.Errorf("%s: %d", header, got.Code)
		}
	}
	if got := edit("op", "check", strings.Repeat("x", 2<<20), "v1", ""); got.Code != 429 || len(told) > 0 {
		t.Errorf("a text that is too long: %d, told %q", got.Code, told)
	}
	if got := edit("op", "save", "policy: {}\r\n", "v1", digest); got.Code != 303 || got.Header().Get("Location") != "/ui/policy" || strings.Join(told, "|") != "save policy v1 policy: {}" {
		t.Errorf("%d to %q, told %q", got.Code, got.Header().Get("Location"), told)
	}
}

// saved is what the next page says of a text that is saved.
func saved(t *testing.T, text string) string {
	t.Helper()
	var told []string
	d := newDashboard(t, house{told: &told}, &told)
	page := send(t, d, "op", "/ui/policy/edit", url.Values{"do": {"check"}, "text": {text}, "version": {"v1"}}).Body.String()
	got := send(t, d, "op", "/ui/policy/edit", url.Values{"do": {"save"}, "text": {text}, "version": {"v1"}, "checked": {hiddenField(page, "checked")}})
	if got.Code != 303 {
		return got.Body.String()
	}
	cookie := got.Result().Cookies()[0]
	page = send(t, d, "op", "/ui/policy", nil, "Cookie: "+cookie.Name+"="+cookie.Value).Body.String()
	checkHarmless(t, page)
	return page
}

// TestPolicySaved: the page after an edit says whether the rules are in force.
func TestPolicySaved(t *testing.T) {
	for text, want := range map[string]string{"policy: {}": "Saved, and in force.", "policy: slow": "Saved, but not in force: ", "policy: late": "The file has changed in this moment."} {
		if page := saved(t, text); !strings.Contains(page, want) {
			t.Errorf("%s: no %q in %.5000s", text, want, page)
		}
	}
}
