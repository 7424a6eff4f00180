//go:build linux

package sandbox_test

import (
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// newTestbed opens a host to attack, with things to steal around it.
func newTestbed(t *testing.T, opts sandbox.Options) *sandboxtest.Testbed {
	t.Helper()
	opts.State, opts.Snapshots, opts.Parallel = testutil.ShortDir(t), testutil.Snapshots(), 2
	r := sandboxtest.NewTestbed(t, opts.State)
	opts.Logger = r.Logger()
	r.Runner, _ = hostWith(t, opts)
	return r
}

// TestAttacks makes every attack of the list that a program can make, in sandboxes that waited for them (B13).
func TestAttacks(t *testing.T) {
	r := newTestbed(t, sandbox.Options{Pool: sandbox.Pool{Min: 1, Max: 2, Memory: 160 << 20}})
	r.Waiting = 4 // whatever their limits are: there is memory for no more
	sandboxtest.RunAttacks(t, r)
}

// TestApart is group J, of sandboxes that are clones of one snapshot: nothing of a program is there for the next, nobody gets another's result, and no two draw the same.
func TestApart(t *testing.T) {
	host, _ := hostWith(t, sandbox.Options{Pool: sandbox.Pool{Min: 2, Max: 4}, Snapshots: testutil.Snapshots()})
	t.Run("J01-J02-residue", func(t *testing.T) { sandboxtest.Residue(t, host, sandbox.Python, sandbox.Node) })
	t.Run("J04-nonces", func(t *testing.T) { sandboxtest.Nonces(t, host, 100, 8) })
	t.Run("J05-random", func(t *testing.T) { sandboxtest.Randomness(t, host, 6) })
}
