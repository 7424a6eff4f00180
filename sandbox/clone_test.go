//go:build linux

package sandbox_test

import (
	"path/filepath"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestNothingRandomIsCloned restores sandboxes from one snapshot: nothing random may be the same in two of them.
func TestNothingRandomIsCloned(t *testing.T) {
	sandboxtest.Randomness(t, newCloningHost(t), 4)
}

func TestProgramsInSessions(t *testing.T) {
	t.Run("from nothing", func(t *testing.T) {
		host, _ := newHost(t)
		sandboxtest.Sessions(t, host)
	})
	t.Run("clones", func(t *testing.T) { sandboxtest.Sessions(t, newCloningHost(t)) })
}

// newCloningHost opens a host that starts sandboxes from snapshots, which are there already.
func newCloningHost(tb testing.TB) *sandbox.Host {
	tb.Helper()
	dir := tb.TempDir()
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(tb), Guest: runtime.Guest(), State: testutil.ShortDir(tb), Snapshots: dir, Logger: testutil.Logger(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := host.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		tb.Fatal(err)
	}
	for interpreter, code := range map[sandbox.Interpreter]string{sandbox.Python: "1", sandbox.Node: "export default 1"} {
		if outcome, err := host.Run(tb.Context(), sandbox.Job{ID: "first-" + string(interpreter), Interpreter: interpreter, Code: code, Limits: sandbox.DefaultLimits()}, nil); err != nil || outcome.Status != sandbox.OK {
			tb.Fatalf("%v: %+v", err, outcome)
		}
	}
	testutil.Eventually(tb, "two snapshots", time.Minute, func() bool {
		made, _ := filepath.Glob(filepath.Join(dir, "*", "manifest.json"))
		return len(made) == 2
	})
	return host
}
