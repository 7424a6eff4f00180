package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/policy"
)

// TestPoliciesAgainstSpellings: however a raw frame spells a tool, or the arguments that rules look at, the upstream does not get a
// call that a rule refuses.
func TestPoliciesAgainstSpellings(t *testing.T) {
	t.Parallel()
	const evil = `{"to":"eve","n":1000}`
	deny := func(when string, tools ...string) policy.Settings {
		return policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Tools: tools, When: when, Then: policy.Deny}}}
	}
	allow := func(when string, tools ...string) policy.Settings {
		return policy.Settings{On: true, Default: policy.Deny, Rules: []policy.Rule{{Tools: tools, When: when, Then: policy.Allow}}}
	}
	answers := oddAnswers()
	answers["tools/list"] = `{"tools":[{"name":"odd.tool","inputSchema":{"type":"object","additionalProperties":true}}]}` // any key passes the schema
	names := []string{"odd__odd_tool", "odd.odd_tool", "odd.odd.tool", "odd/odd_tool", "odd/odd.tool", "odd.tool", "ODD__ODD_TOOL", "odd__odd.tool",
		"odd__odd%5ftool", `odd\u005f\u005fodd_tool`, "ｏdd__odd_tool", " odd__odd_tool", `odd__odd_tool\u0000`, "servers.odd.odd_tool", "sallyport://odd/odd_tool"}
	arguments := []string{evil, `{"n":1000,"to":"ann","to":"eve"}`, `{"n":1e3,"to":"eve"}`, `{"n":1000.0,"t\u006f":"eve"}`, `{"n":1000,"TO":"eve","to":"ann"}`,
		`{"N":1000,"n":1,"To":"eve"}`, `{"n":1000,"to":"ann","ｔｏ":"eve"}`}
	for name, set := range map[string]policy.Settings{
		"all":             deny(""),
		"the tool":        deny("", "odd.odd_tool"),
		"the upstream":    deny("", "odd.*"),
		"a suffix":        deny("", "*.odd_tool"),
		"a value":         deny(`args.to == "eve"`, "odd.*"),
		"a number":        deny(`args.n >= 1000`, "odd.*"),
		"by variables":    deny(`upstream == "odd" && tool == "odd_tool"`),
		"by the method":   deny(`method == "tools/call"`),
		"nothing allowed": {On: true, Default: policy.Deny},
		"others allowed":  allow("", "even.*", "odd.odd", "odd.tool"),
		"a value allowed": allow(`args.to == "ann" && args.n < 1000`, "odd.*"),
		"a key":           deny(`has(args.to)`, "odd.*"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			odd := newRawServer(t, answers)
			d := newDirectPolicy(t, false, set, upstream("odd", odd.url, ""))
			c := d.dialogue("2025-11-25")
			try := func(frame string) {
				c.id++
				_, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, c.id, frame), "tools/call", "")
				if params, _ := odd.last("tools/call"); params != nil || strings.Contains(body, "hologram") {
					t.Fatalf("%s came through: %s", frame, params)
				}
			}
			for _, spelled := range names {
				try(`{"name":"` + spelled + `","arguments":` + evil + `}`)
			}
			for _, args := range arguments {
				try(`{"name":"odd__odd_tool","arguments":` + args + `}`)
			}
			try(`{"name":"none","name":"odd__odd_tool","arguments":` + evil + `}`)
			try(`{"n\u0061me":"odd__odd_tool","arguments":{"to":"ann","n":1},"arguments":` + evil + `}`)
			try(`{"Name":"none","name":"odd__odd_tool","Arguments":{"to":"ann","n":1},"arguments":` + evil + `}`)
		})
	}
	t.Run("what is allowed", func(t *testing.T) { // so the rest is no accident
		t.Parallel()
		odd := newRawServer(t, answers)
		c := newDirectPolicy(t, false, allow(`args.to == "ann" && args.n < 1000`, "odd.*"), upstream("odd", odd.url, "")).dialogue("2025-11-25")
		if got := c.ask("tools/call", `{"name":"odd__odd_tool","arguments":{"to":"ann","n":999.0}}`); !strings.Contains(got, "hologram") {
			t.Error(got)
		}
	})
}
