package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"sallyport/bench/chaos/killtest"
	"sallyport/bench/machine"
)

// cluster disturbs a cluster that has clients, and writes what happened to a file, unless out is "".
func cluster(ctx context.Context, o killtest.Options, out string) error {
	report, err := killtest.RunCluster(ctx, o)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Faults of members of a cluster under load (make chaos-cluster)\n# %s, %d x %s, %s, Linux %s, load %s\n# commit %s, seed %d, %d clients\n",
		time.Now().UTC().Format("2006-01-02 15:04:05 UTC"), runtime.NumCPU(), machine.CPU(), machine.Memory(), machine.Kernel(), machine.MeanLoad(machine.Load()), machine.Commit(ctx), o.Seed, o.Clients)
	text := head + report.String() + "\n"
	fmt.Print(text)
	if err := complain(report.Problems); err != nil || out == "" {
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644) //nolint:gosec // a result for all to read
}
