//go:build linux

package sandbox_test

import (
	"path/filepath"
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestConformanceEveryWay runs the core of the suite over the ways that are not TestConformance's (the machine's own
// cgroups as root) and TestConformanceRootless's (an ordinary user, without cgroups), which run all of it. [TestEveryWayToTheSameLimits] has cgroup v2.
func TestConformanceEveryWay(t *testing.T) {
	for name, opts := range map[string]sandbox.Options{
		"waiting": {Pool: sandbox.Pool{Min: 2, Max: 4}, Snapshots: "kept"},
	} {
		t.Run(name, func(t *testing.T) { sandboxtest.Core(t, hostWith(t, opts)) })
	}
}

// hostWith opens a host with a state directory of its own, where the tree of the suite is published.
func hostWith(t *testing.T, opts sandbox.Options) *sandbox.Host {
	t.Helper()
	opts.Runsc, opts.Guest, opts.State, opts.Logger = testutil.Runsc(t), runtime.Guest(), testutil.ShortDir(t), testutil.Logger(t)
	if opts.Snapshots != "" {
		opts.Snapshots = filepath.Join(t.TempDir(), opts.Snapshots)
	}
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
	return host
}
