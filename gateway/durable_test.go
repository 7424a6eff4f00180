package gateway_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestRecordsOutliveTheGateway: after a restart an execution can still be had by its id, and a session of before it is
// said to have ended, to whose session it was.
func TestRecordsOutliveTheGateway(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	dir := t.TempDir()
	begin := func() (*gateway.Gateway, func()) {
		records, err := store.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.Open(cfg, &gateway.Options{Records: records, Snapshots: testutil.Snapshots(), NoPool: true})
		if err != nil {
			t.Fatal(err)
		}
		return g, func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			if err := records.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	run := func(g *gateway.Gateway, ctx context.Context) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(ctx, execution.Program{Code: "x = 1", Session: "mine"})
		if err != nil || e.Status != sandbox.OK {
			t.Fatal(err, e.Text())
		}
		return e
	}
	ada, bob := tool.WithPrincipal(t.Context(), "ada"), tool.WithPrincipal(t.Context(), "bob")
	g, end := begin()
	first := run(g, ada)
	if strings.Contains(first.Text(), "had ended") {
		t.Errorf("the first of a session: %q", first.Text())
	}
	end()
	g, end = begin()
	defer end()
	if r, err := g.History.Record(ada, first.ID); err != nil || r.Code != "x = 1" || r.Memory != "mine" {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := g.History.Record(bob, first.ID)
	wantError(t, err, tool.NotFound)
	if e := run(g, ada); !strings.Contains(e.Text(), "note: session mine had ended") {
		t.Errorf("after a restart: %q", e.Text())
	}
	if e := run(g, ada); strings.Contains(e.Text(), "had ended") {
		t.Errorf("the next one: %q", e.Text())
	}
	if e := run(g, bob); strings.Contains(e.Text(), "had ended") {
		t.Errorf("of another principal: %q", e.Text())
	}
}

// TestRecordsThatCannotBeKept: programs answer all the same, and the log says so.
func TestRecordsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	broken := store.Memory()
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	log := &records{}
	g := open(t, settings(nil), &gateway.Options{Records: broken, Logger: slog.New(log)})
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "let = ;", Language: "ts"})
	if err != nil || e.Status != sandbox.Failed {
		t.Fatal(err, e.Status)
	}
	if found := log.find("execution is not recorded"); len(found) != 1 || found[0]["execution"] != e.ID {
		t.Errorf("log: %v", found)
	}
	_, err = g.History.Record(t.Context(), e.ID)
	wantError(t, err, tool.Internal, "the records cannot be read")
}
