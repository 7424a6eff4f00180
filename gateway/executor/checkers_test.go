package executor

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestCheckersAreReassigned: with as many checkers as there may be, a further principal gets the one that was idle for the longest time.
func TestCheckersAreReassigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &checks{settings: func() config.Sandbox { return config.Sandbox{Typecheck: true, Pyright: "/none/pyright"} }, log: slog.New(slog.DiscardHandler), checkers: map[checkerKey]*keptChecker{}}
		defer c.close()
		has := func(who string) bool {
			ctx := tool.WithPrincipal(t.Context(), who)
			c.checker(ctx, sandbox.Python)
			return c.missing(ctx, sandbox.Python) // it has its own, which is not installed here
		}
		for i := range maxCheckers {
			if !has(fmt.Sprint(i)) {
				t.Errorf("%d has no checker", i)
			}
			time.Sleep(time.Second)
		}
		if has("another") {
			t.Error("another has a checker while all others are in use")
		}
		time.Sleep(minCheckerIdle - 5*time.Second)
		if !has("0") || !has("another") || len(c.checkers) != maxCheckers {
			t.Errorf("%d checkers; 0 and another have none", len(c.checkers))
		}
		if kept := c.checkers[checkerKey{principal: "1", interpreter: sandbox.Python}]; kept != nil {
			t.Error("1 was idle for the longest time, and has still its checker")
		}
		if has("1") != true || len(c.checkers) != maxCheckers {
			t.Errorf("1 comes back to %d checkers", len(c.checkers))
		}
	})
}
