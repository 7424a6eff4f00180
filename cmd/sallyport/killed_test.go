package main_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"sallyport/bench/chaos/killtest"
	"sallyport/internal/testutil"
)

// TestKilledUnderLoad kills a gateway while clients have programs and workflows: nothing that was acknowledged is lost, and no call that
// must not be made twice is, unless a person says so. KILLTEST_SEED repeats a run; `make chaos` kills more often.
func TestKilledUnderLoad(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	seed := killtestSeed(t)
	report, err := killtest.Run(t.Context(), killtest.Options{
		Command: func(args ...string) *exec.Cmd {
			return exec.CommandContext(context.WithoutCancel(t.Context()), "sallyport", args...)
		},
		Upstream: []string{"till"}, Runsc: testutil.Runsc(t), Kills: 5, Clients: 4, Seed: seed,
		Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	for _, problem := range report.Problems {
		t.Error(problem)
	}
}

// killtestSeed returns the seed of a campaign, and logs it.
func killtestSeed(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("KILLTEST_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	t.Logf("KILLTEST_SEED=%d", seed)
	return seed
}
