//go:build linux

package sandbox_test

import (
	"path/filepath"
	"testing"

	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestConformanceEveryWay runs the core of the suite over the ways that are not TestConformance's (the machine's own
// cgroups as root) and TestConformanceRootless's (an ordinary user, without cgroups), which run all of it. [TestEveryWayToTheSameLimits] has cgroup v2.
func TestConformanceEveryWay(t *testing.T) {
	for name, opts := range map[string]sandbox.Options{
		"waiting": {Pool: sandbox.Pool{Min: 2, Max: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Snapshots = filepath.Join(t.TempDir(), "kept")
			host, _ := hostWith(t, opts)
			sandboxtest.RunCore(t, host)
		})
	}
}
