//go:build linux

package sandbox_test

import (
	"testing"

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
		host, _ := newColdHost(t)
		sandboxtest.Sessions(t, host)
	})
	t.Run("clones", func(t *testing.T) { sandboxtest.Sessions(t, newCloningHost(t)) })
}

// newCloningHost opens a host that restores each sandbox from a snapshot.
func newCloningHost(tb testing.TB) *sandbox.Host {
	tb.Helper()
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(tb), Guest: runtime.Guest(), State: testutil.ShortDir(tb), Snapshots: testutil.Snapshots(), Logger: testutil.Logger(tb)})
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
	return host
}
