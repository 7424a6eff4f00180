package killtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/testutil/netcluster"
)

// ClusterReport is what happened to a cluster.
type ClusterReport struct {
	Report

	// Faults counts the faults by kind and kind of member, such as "cut gateway". Answers counts what clients were told, by status.
	Faults, Answers map[string]int
	Took            time.Duration
	// Longest is how long the job took that took longest.
	Longest time.Duration
}

// String returns the counts as a table.
func (r ClusterReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %8s %8s %8s\n", "faults", "servers", "gateways", "workers")
	for _, kind := range faultKinds {
		fmt.Fprintf(&b, "%-8s", kind)
		for _, member := range memberKinds {
			fmt.Fprintf(&b, " %8d", r.Faults[kind+" "+member])
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n%s\nanswers:", r.counts("faults"))
	for _, status := range slices.Sorted(maps.Keys(r.Answers)) {
		fmt.Fprintf(&b, " %d %s,", r.Answers[status], status)
	}
	fmt.Fprintf(&b, " in %s; the longest job took %s", r.Took.Round(time.Second), r.Longest.Round(time.Second))
	return b.String()
}

// lanes is how many faults there are at a time, at most.
const lanes = 2

// RunCluster has a cluster on this machine: three NATS servers, three gateways and three workers, each a host of its own in a network.
// It kills and pauses them, and cuts and slows down their links, at random moments under a load of programs and workflows. Kills is the
// number of faults; the seed chooses jobs, faults and how long they last. [errors.ErrUnsupported] matches the error where this user may
// not make networks.
func RunCluster(ctx context.Context, o Options) (_ ClusterReport, err error) {
	dir, err := os.MkdirTemp("/tmp", "fleet-") // short: a socket's path has room for little
	if err != nil {
		return ClusterReport{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	network, err := netcluster.New()
	if err != nil {
		return ClusterReport{}, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	f := newFleet(newCampaign(o, dir), network)
	defer f.end()
	if err := f.start(ctx); err != nil {
		return ClusterReport{}, err
	}
	began := time.Now()
	if err := f.load(ctx, func() error { return f.disturb(ctx) }); err != nil {
		return ClusterReport{}, err
	}
	took := time.Since(began)
	if err := f.stop(ctx); err != nil {
		return ClusterReport{}, err
	}
	return ClusterReport{Report: f.report, Faults: f.faults, Answers: f.answers, Took: took, Longest: f.longest}, nil
}

// disturb lets faults happen in lanes, which do not wait for each other.
func (f *fleet) disturb(ctx context.Context) error {
	var all sync.WaitGroup
	failed := make([]error, lanes)
	for lane := range lanes {
		n := (f.Kills + lane) / lanes
		all.Go(func() { failed[lane] = f.lane(ctx, lane, n) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// lane lets faults happen one after the other.
func (f *fleet) lane(ctx context.Context, lane, n int) error {
	dice := f.dice(1_000_000 + lane)
	for range n {
		fault := f.newFault(dice)
		f.awaitMoment(ctx, dice)
		if err := ctx.Err(); err != nil {
			return err
		}
		f.say("%s", fault)
		if err := fault.happen(ctx); err != nil {
			return fmt.Errorf("%s: %w", fault, err)
		}
		f.say("%s: ended", fault)
		f.seeHosts()
		f.mu.Lock()
		f.faults[fault.kind+" "+fault.member.kind]++
		f.report.Kills++
		f.mu.Unlock()
	}
	return nil
}
