package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/plain"
)

func executionsCommand(a *app) *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "executions [flags]",
		Short: "show the programs that ran last",
		Long: `Executions lists the programs that ran last, of all clients, the newest first: those
of the gateways that run on the data directory, and those that are kept there.`,
		Example: "  sallyport executions\n  sallyport executions show e-2f6qdmnhx3k4c",
		Args:    unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return misuse(cmd, "--limit must be 1 to 1000")
			}
			return a.executions(cmd.Context(), limit, asJSON)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show `N` of them, at most 1000")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(&cobra.Command{
		Use:   "show [flags] ID",
		Short: "show one execution: its program and its calls",
		Args:  oneID,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showExecution(cmd.Context(), args[0], asJSON) },
	})
	return cmd
}

func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return misuse(cmd, "%s takes one ID", cmd.Name())
	}
	return nil
}

func (a *app) executions(ctx context.Context, limit int, asJSON bool) error {
	list := httpapi.ExecutionList{Executions: []httpapi.ExecutionSummary{}}
	err := a.withControls(ctx, func(ctx context.Context, c *controls) error {
		return everywhere(ctx, c, fmt.Sprint("/executions?limit=", limit), func(more httpapi.ExecutionList) {
			list.Executions = append(list.Executions, more.Executions...)
		})
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list.Executions, func(x, y httpapi.ExecutionSummary) int { return y.Started.Compare(x.Started) })
	list.Executions = list.Executions[:min(limit, len(list.Executions))]
	if asJSON {
		return a.printJSON(list)
	}
	if len(list.Executions) == 0 {
		a.say("no program has run yet")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tAGE\tWHO\tLANGUAGE\tSTATUS\tTOOK\tCALLS")
	for _, e := range list.Executions {
		took := time.Duration(e.DurationMS) * time.Millisecond
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", cell(e.ID, 40), age(e.Started), cell(e.Principal, 30), cell(e.Language, 20), cell(e.Status, 20), took, e.Calls)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.print(b.String())
}

// cell is a text that fits in a table, "-" for none.
func cell(text string, most int) string { return cmp.Or(plain.Line(text, most), "-") }

// age is how long ago something was, in the largest unit that tells enough.
func age(then time.Time) string {
	d := time.Since(then)
	switch {
	case d < time.Minute:
		return fmt.Sprint(max(0, int(d.Seconds())), "s")
	case d < time.Hour:
		return fmt.Sprint(int(d.Minutes()), "m")
	case d < 48*time.Hour:
		return fmt.Sprint(int(d.Hours()), "h")
	}
	return fmt.Sprint(int(d.Hours()/24), "d")
}

// execution returns the record of an execution, of whichever gateway has it.
func (a *app) execution(ctx context.Context, id string) (r history.Record, err error) {
	err = a.withControls(ctx, func(ctx context.Context, c *controls) error {
		return c.find(ctx, "/executions/"+url.PathEscape(id), nil, &r)
	})
	return r, err
}

func (a *app) showExecution(ctx context.Context, id string, asJSON bool) error {
	r, err := a.execution(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  by %s  %s\n", r.ID, r.Language, r.Status, cell(r.Principal, 60), r.Started.Local().Format(time.DateTime))
	for _, call := range r.Calls {
		fmt.Fprintf(&b, "  %s  %s  %s\n", call.Tool, call.Outcome, call.Duration.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(r.Code, "\n"))
	return a.print(b.String())
}
