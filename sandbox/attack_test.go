//go:build linux

package sandbox_test

import (
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// newRange opens a host to attack, with things to steal around it.
func newRange(t *testing.T, opts sandbox.Options) *sandboxtest.Range {
	t.Helper()
	opts.Runsc, opts.Guest, opts.State, opts.Parallel = testutil.Runsc(t), runtime.Guest(), testutil.ShortDir(t), 2
	r := sandboxtest.NewRange(t, opts.State)
	opts.Logger = r.Logger()
	host, err := sandbox.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	names := hostNames(t, opts.State)
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		nothingLeft(t, opts.State, names...)
	})
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	r.Runner = host
	return r
}

// TestAttacks makes every attack of the list that a program can make, in sandboxes that waited for them (B13).
func TestAttacks(t *testing.T) {
	r := newRange(t, sandbox.Options{Pool: sandbox.Pool{Min: 1, Max: 2, Memory: 160 << 20}})
	r.Waiting = 4 // whatever their limits are: there is memory for no more
	sandboxtest.Try(t, r)
}

// TestApart is group J, of sandboxes that are clones of one snapshot: nothing of a program is there for the next, nobody gets another's result, and no two draw the same.
func TestApart(t *testing.T) {
	host := hostWith(t, sandbox.Options{Pool: sandbox.Pool{Min: 2, Max: 4}})
	t.Run("J01-J02-residue", func(t *testing.T) { sandboxtest.Residue(t, host) })
	t.Run("J04-nonces", func(t *testing.T) { sandboxtest.Nonces(t, host, 100, 8) })
	t.Run("J05-random", func(t *testing.T) { sandboxtest.Draws(t, host, 6) })
}
