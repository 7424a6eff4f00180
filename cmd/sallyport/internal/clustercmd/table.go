package clustercmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/labels"
	"sallyport/sandbox/workers"
)

// printTable prints a line for each worker.
func (a *app) printTable(found []workers.Worker) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	return a.Print(table(found, cfg.Sandbox.Placement))
}

// table returns a line for each worker. placement are the labels that it must have.
func table(found []workers.Worker, placement []string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKER\tSEATS\tBUSY\tSTATE\tLACKS\tVERSION\tJOINED\tSEEN\tLABELS")
	for _, w := range found {
		labels := []string{}
		for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
			labels = append(labels, key+"="+w.Labels[key])
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			w.Name, w.Seats, w.Busy, state(w), lacks(w, placement), cli.Cell(w.Version, 40), cli.Age(w.Since), cli.Age(w.Seen), cli.Cell(strings.Join(labels, " "), 80))
	}
	_ = t.Flush() // to a string
	return b.String()
}

// lacks returns what a worker lacks for some or all programs: labels, interpreters, or this version.
func lacks(w workers.Worker, placement []string) string {
	all := labels.Missing(placement, w.Labels)
	for _, i := range w.Lacks {
		all = append(all, string(i))
	}
	if version := cli.BuildVersion(); w.Version != version {
		all = append(all, "version "+version)
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

// state says whether a worker takes programs.
func state(w workers.Worker) string {
	switch {
	case !w.Draining:
		return "ready"
	case w.Busy > 0:
		return "draining"
	}
	return "drained"
}
