package gateway_test

import (
	"encoding/json"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestDone: of a program that ended well its calls are known, also those that were answered from the journal of a run before.
func TestDone(t *testing.T) {
	t.Parallel()
	g, _ := resuming(t, nil)
	ada := tool.WithPrincipal(t.Context(), "ada")
	code := "from servers.ledger import book, total\nbook(name='a')\nif not ok: 1/0\nbook(name=str(total()['total']))"
	failed := runWith(ada, t, g, execution.Program{Code: code, Variables: map[string]json.RawMessage{"ok": json.RawMessage("false")}}, sandbox.Failed)
	_, err := g.History.Succeeded(ada, failed.ID)
	wantError(t, err, tool.Invalid, "did not succeed")
	well := runWith(ada, t, g, execution.Program{Resume: failed.ID, Variables: map[string]json.RawMessage{"ok": json.RawMessage("true")}}, sandbox.OK)
	for _, who := range []bool{true, false} {
		ctx := ada
		if !who {
			ctx = tool.WithOperator(tool.WithPrincipal(t.Context(), "root"), "cli")
		}
		done, err := g.History.Succeeded(ctx, well.ID)
		if err != nil || len(done.Did) != 3 || string(done.Did[0].Arguments) != `{"name":"a"}` || string(done.Did[2].Arguments) != `{"name":"1"}` ||
			string(done.Did[1].Result.Value().JSON) != `{"total":1}` || done.Code != code || string(done.Variables["ok"]) != "true" {
			t.Errorf("%+v, %v", done, err)
		}
	}
	_, err = g.History.Succeeded(tool.WithPrincipal(t.Context(), "eve"), well.ID)
	wantError(t, err, tool.NotFound, "there is no execution")
	idle := runWith(ada, t, g, execution.Program{Code: "1"}, sandbox.OK)
	_, err = g.History.Succeeded(ada, idle.ID)
	wantError(t, err, tool.Invalid, "made no calls")
	if e := runWith(ada, t, g, execution.Program{Code: "from servers.ledger import book\nbook(name='z')\n1/0"}, sandbox.Failed); e.Failed() {
		runWith(ada, t, g, execution.Program{Resume: "last"}, sandbox.Failed, "1 call answered from the journal of "+e.ID)
	}
}

// TestDoneOff: where the settings say so nothing of what ended well is kept.
func TestDoneOff(t *testing.T) {
	t.Parallel()
	g, _ := resuming(t, func(cfg *config.Config) { cfg.Journal.Successes = false })
	e := runWith(t.Context(), t, g, execution.Program{Code: "from servers.ledger import book\nbook(name='a')"}, sandbox.OK)
	_, err := g.History.Succeeded(t.Context(), e.ID)
	wantError(t, err, tool.NotFound, "the calls of "+e.ID+" are not kept")
}
