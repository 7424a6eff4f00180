package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
)

// TestUnresponsiveUpstreams: a handshake waits for no upstream, a list of tools not for one that never answers, and a call for none but its own.
func TestUnresponsiveUpstreams(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	silent := config.Upstream{Name: "mute", ID: "mute", Command: "sleep", Args: []string{"1000"}, Timeout: 20 * time.Second}
	cfg.Upstreams, cfg.Trust = []config.Upstream{upstream("odd", newRawServer(t, oddAnswers()).url, ""), silent}, config.TrustAllow
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, err := gateway.Open(&cfg, &gateway.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := &direct{t: t, face: mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{Logger: testutil.Logger(t)})}
			t.Cleanup(func() {
				d.face.Close()
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
			d.url = serve(t, d.face, &siteOptions{Settings: cfg.HTTP}) + "/mcp"
			begun := time.Now()
			within := func(what string, most time.Duration) {
				if took := time.Since(begun); took > most {
					t.Errorf("%s: after %v", what, took)
				}
			}
			c := d.dialogue(version)
			if version < "2026" {
				within("initialize", 10*time.Second)
			} else if got := c.ask("server/discover", `{}`); !strings.Contains(got, `"prompts"`) || !strings.Contains(got, `"resources"`) {
				t.Errorf("what nobody knows yet is not declared: %s", got)
			}
			within("the handshake", 10*time.Second)
			want(t, version, c.ask("tools/call", `{"name":"odd__odd_tool","arguments":{}}`), oddResult)
			within("a call", 10*time.Second)
			if got := c.ask("tools/list", `{}`); !strings.Contains(got, "odd__odd_tool") {
				t.Error(got)
			}
			within("tools/list", 9*time.Second)
			if got := c.ask("prompts/list", `{}`); !strings.Contains(got, "odd__ask_me") {
				t.Error(got)
			}
		})
	}
}

// TestDeniedIsNotListed: what rules always deny is in no list, what they deny for some arguments is, and a call by name is refused still.
func TestDeniedIsNotListed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		rule   policy.Rule
		listed bool
	}{
		{"always", policy.Rule{Tools: []string{"odd.*"}, Then: policy.Deny}, false},
		{"for some", policy.Rule{Tools: []string{"odd.*"}, When: `args.a == 1`, Then: policy.Deny}, true},
		{"for others", policy.Rule{Tools: []string{"odd.*"}, When: `principal == "nobody"`, Then: policy.Deny}, true},
		{"other tools", policy.Rule{Tools: []string{"even.*"}, Then: policy.Deny}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			odd := newRawServer(t, oddAnswers())
			rules := policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{tc.rule}}
			d := newDirectPolicy(t, false, rules, upstream("odd", odd.url, ""))
			c := d.dialogue("2025-11-25")
			for method, name := range map[string]string{"tools/list": "odd__odd_tool", "prompts/list": "odd__ask_me", "resources/list": "odd://1"} {
				if got := c.ask(method, `{}`); strings.Contains(got, name) != tc.listed && (method == "tools/list" || tc.listed) {
					t.Errorf("%s: %s", method, got)
				}
			}
			got := c.ask("tools/call", `{"name":"odd__odd_tool","arguments":{"a":1}}`)
			if refused := strings.Contains(got, "policy refuses"); refused == (tc.name == "for others" || tc.name == "other tools") {
				t.Errorf("called: %s", got)
			}
		})
	}
}
