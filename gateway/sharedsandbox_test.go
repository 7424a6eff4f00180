package gateway_test

import (
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// isShared runs a program that tells whether its sandbox is for several programs.
func isShared(t *testing.T, g *gateway.Gateway, principal, isolation string) bool {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), principal)
	e, err := g.Executor.Execute(ctx, execution.Program{Code: `"SALLYPORT_ZYGOTE" in open("/proc/1/environ").read()`, Isolation: isolation})
	if err != nil || e.Value == nil {
		t.Fatalf("%+v, %v", e.Outcome, err)
	}
	return e.Value.Text == "true"
}

// TestSharedSandboxes: programs that follow each other share a sandbox, with and without authentication, unless one
// asks for its own, or the policy or the settings demand it.
func TestSharedSandboxes(t *testing.T) {
	g := open(t, withRunsc(t, settings(nil)), nil)
	for _, principal := range []string{"", "ann"} {
		testutil.Eventually(t, "programs of "+principal+" share a sandbox", time.Minute, func() bool { return isShared(t, g, principal, "") })
		if isShared(t, g, principal, execution.IsolationProgram) {
			t.Errorf("a program of %q shares a sandbox that was to be its own", principal)
		}
	}
	if _, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1", Isolation: "none"}); err == nil {
		t.Error("isolation none is accepted")
	}

	some := withRunsc(t, settings(nil))
	some.Policy.Isolate = `principal == "bob" || read.exists(l, l == "private")`
	g = open(t, some, nil)
	testutil.Eventually(t, "programs of ann share a sandbox", time.Minute, func() bool { return isShared(t, g, "ann", "") })
	for range 3 {
		if isShared(t, g, "bob", "") {
			t.Fatal("a program of bob shares a sandbox, which the policy does not allow")
		}
	}

	never := withRunsc(t, settings(nil))
	never.Sandbox.Reuse = config.ReuseNever
	g = open(t, never, nil)
	for range 10 {
		if isShared(t, g, "ann", "") {
			t.Fatal("a program shares a sandbox, which the settings do not allow")
		}
	}
}
