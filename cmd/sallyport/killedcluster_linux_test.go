package main_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"sallyport/bench/chaos/killtest"
	"sallyport/internal/testutil"
)

// TestDisturbedCluster has a cluster with clients, and its members are killed, paused, cut off and slowed down: nothing that was acknowledged
// is lost, and no call that must not be made twice is, unless a person says so. KILLTEST_SEED repeats a run, as far as moments permit;
// `make chaos-cluster` has more faults.
func TestDisturbedCluster(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	seed := killtestSeed(t)
	report, err := killtest.RunCluster(t.Context(), killtest.Options{
		Command: func(args ...string) *exec.Cmd {
			return exec.CommandContext(context.WithoutCancel(t.Context()), "sallyport", args...)
		},
		Upstream: []string{"till"}, Runsc: testutil.Runsc(t), Kills: 10, Clients: 3, Seed: seed,
		Log: func(line string) { t.Log(line) },
	})
	if errors.Is(err, errors.ErrUnsupported) {
		testutil.Missing(t, "a network namespace ("+err.Error()+")", "run as root on Linux")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	for _, problem := range report.Problems {
		t.Error(problem)
	}
}
