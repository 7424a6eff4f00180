package gateway_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/timeline"
	"sallyport/internal/tool"
)

// TestStats counts the programs of one session of one principal, and what they kept out of the context.
func TestStats(t *testing.T) {
	t.Parallel()
	g := open(t, withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc), "notes": newSite(t, notes)})), &gateway.Options{DataDir: t.TempDir()})
	as := func(principal, session string) context.Context {
		return tool.WithSession(tool.WithPrincipal(t.Context(), principal), session)
	}
	ann := as("ann", "1")
	for _, p := range []execution.Program{
		{Code: "from servers.calc import add, fail\nfor i in range(3): add(a=1, b=2)\ntry: fail()\nexcept Exception: pass"},
		{Code: "from servers.notes import *\nimport servers.notes\nopen('/workspace/a', 'w').write('abc')"},
		{Code: "1/0"}, {Code: "1", Language: "ts"},
	} {
		if _, err := g.Executor.Execute(ann, p); err != nil {
			t.Fatal(err)
		}
	}
	const want = `^4 programs since 20[0-9-]+ [0-9:]+ UTC: 3 ok, 1 failed; 3 python, 1 typescript
duration: p50 [0-9.]+m?s, p99 [0-9.]+m?s
tool calls: 4: 4 calc; failed: 1 calc
answers: [0-9]+ tokens
/workspace: 3B of 256MiB, 1 of 50000 files and folders
idle sandboxes: [0-9]+ Python, [0-9]+ TypeScript$`
	if said, err := g.History.Stats(ann); err != nil || !regexp.MustCompile(want).MatchString(said) {
		t.Errorf("%v\n%s", err, said)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for who, want := range map[string]history.SavingsStep{"ann": {Executions: 4, Failed: 1, Calls: 4}, "ben": {}} {
		got, err := g.History.Savings(as(who, "1"), today.AddDate(0, 0, -6), 24*time.Hour)
		if last := got.Steps[len(got.Steps)-1]; err != nil || len(got.Steps) != 7 || last.Executions != want.Executions || got.Total.Failed != want.Failed || got.Total.Calls != want.Calls || (got.Total.Answered > 0) != (who == "ann") {
			t.Errorf("%s: %v\n%+v", who, err, got)
		}
	}
	seen, err := g.Timeline.Graphs(tool.WithOperator(t.Context(), "op"), timeline.Hour)
	if total := seen.Total; err != nil || total.Programs != 4 || total.Failures["failed"] != 1 || total.Calls < 4 || total.P99MS <= 0 || !slices.Contains(seen.Tools, timeline.Share{Name: "calc.add", Count: 3}) {
		t.Errorf("%v\n%+v", err, seen)
	}
	_, err = g.History.Savings(ann, today.AddDate(0, 0, -6), time.Second)
	wantError(t, err, tool.Invalid, "at most 1000 steps")
	for _, other := range []context.Context{as("ann", "2"), as("ann", ""), as("ben", "1"), as("", "1"), t.Context()} {
		said, err := g.History.Stats(other)
		if err != nil || !regexp.MustCompile(`^no programs yet\n`).MatchString(said) {
			t.Errorf("%v\n%s", err, said)
		}
	}
}
