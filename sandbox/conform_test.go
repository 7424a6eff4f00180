//go:build linux

package sandbox_test

import (
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestConformanceEveryWay runs the core of the suite over the ways that are not TestConformance's (the machine's own
// cgroups as root) and TestConformanceRootless's (an ordinary user, without cgroups), which run all of it. [TestEveryWayToTheSameLimits] has cgroup v2.
func TestConformanceEveryWay(t *testing.T) {
	for name, opts := range map[string]sandbox.Options{
		"waiting": {Pool: sandbox.Pool{Min: 1, Max: 1}, Snapshots: testutil.Snapshots()},
	} {
		t.Run(name, func(t *testing.T) {
			host, _ := hostWith(t, opts)
			sandboxtest.RunCore(t, host)
		})
	}
}
