package clustercmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/cluster"
	"sallyport/internal/labels"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/workers"
)

// printTable prints a line for each worker.
func (a *app) printTable(found []workers.Worker) error {
	text, err := a.workerTable(found)
	if err != nil {
		return err
	}
	return a.Print(text)
}

// workerTable returns a line for each worker, with what it lacks for the settings.
func (a *app) workerTable(found []workers.Worker) (string, error) {
	cfg, err := a.Load()
	if err != nil {
		return "", err
	}
	return table(found, cfg.Sandbox.Placement), nil
}

// gatewayTable returns a line for each gateway.
func gatewayTable(found []cluster.Gateway) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GATEWAY\tHOST\tPROCESS\tSEATS\tRUNNING\tWAITING\tSTATE\tVERSION\tSTARTED\tSEEN")
	for _, g := range found {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n",
			cli.Cell(g.ID, 40), cli.Cell(g.Host, 60), g.PID, g.Seats, g.Running, g.Waiting, g.State, cli.Cell(g.Version, 40), cli.Age(g.Since), cli.Age(g.Beaten))
	}
	_ = t.Flush() // to a string
	return b.String()
}

// serverTable returns a line for each server of the store.
func serverTable(found []cluster.Server) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVER\tSTATE\tSTREAMS\tLEADS\tBEHIND\tLAG")
	for _, s := range found {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", cli.Cell(s.Name, 60), s.State, s.Streams, s.Leads, s.Behind, s.Lag)
	}
	_ = t.Flush() // to a string
	return b.String()
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

// lacks returns what a worker lacks for some or all programs: labels, interpreters, or a version that works with this one.
func lacks(w workers.Worker, placement []string) string {
	all := labels.Missing(placement, w.Labels)
	for _, i := range w.Lacks {
		all = append(all, string(i))
	}
	if version := cli.BuildVersion(); w.Version != version && !w.Speaks.WorksWith(remote.Here()) {
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
