package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// ExecutionsCommand returns the verb.
func ExecutionsCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var limit int
	var text string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "executions [COMMAND] [flags]",
		Short: "show the programs that ran last",
		Long: `Executions lists the programs that ran last, of all clients, the newest first: those
of the gateways that run on the data directory, and the stored ones, also those of
"sallyport exec" and of gateways that have ended.`,
		Example: "  sallyport executions\n  sallyport executions --text invoice\n  sallyport executions show e-2f6qdmnhx3k4c",
		Args:    cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return cli.Misuse(cmd, "--limit must be 1 to 1000")
			}
			return a.executions(cmd.Context(), limit, text, asJSON)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show `N` of them, at most 1000")
	cmd.Flags().StringVar(&text, "text", "", "only those with `WORDS` in the title, program, output, error, client\nor a tool")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, cli.OneObject)
	list := &cobra.Command{Use: "list [flags]", Short: "list the programs that ran last, as executions alone does", Args: cli.NoArguments, RunE: cmd.RunE}
	list.Flags().IntVar(&limit, "limit", 20, cmd.Flag("limit").Usage)
	list.Flags().StringVar(&text, "text", "", cmd.Flag("text").Usage)
	cmd.AddCommand(list, &cobra.Command{
		Use:   "show [flags] ID",
		Short: "show one execution: its program, its calls and its output",
		Args:  cli.OneID,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showExecution(cmd.Context(), args[0], asJSON) },
	})
	return cmd
}

func (a *app) executions(ctx context.Context, limit int, text string, asJSON bool) error {
	list := httpapi.ExecutionList{Executions: []httpapi.ExecutionSummary{}}
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, fmt.Sprintf("/executions?limit=%d&text=%s", limit, url.QueryEscape(text)), func(more httpapi.ExecutionList) {
			list.Executions = append(list.Executions, more.Executions...)
		})
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list.Executions, func(x, y httpapi.ExecutionSummary) int {
		return cmp.Or(y.Started.Compare(x.Started), cmp.Compare(x.ID, y.ID))
	})
	list.Executions = slices.CompactFunc(list.Executions, func(x, y httpapi.ExecutionSummary) bool { return x.ID == y.ID }) // handed over by a gateway that runs
	list.Executions = list.Executions[:min(limit, len(list.Executions))]
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Executions) == 0 {
		if text != "" {
			a.Say("no program has run with " + cli.Cell(text, 60))
			return nil
		}
		a.Say("no program has run yet")
		return nil
	}
	return a.printExecutions(list.Executions)
}

func (a *app) printExecutions(list []httpapi.ExecutionSummary) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tAGE\tWHO\tLANGUAGE\tSTATUS\tTOOK\tCALLS\tTITLE")
	for _, e := range list {
		took := time.Duration(e.DurationMS) * time.Millisecond
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", cli.Cell(e.ID, 40), cli.Age(e.Started), cli.Cell(e.Principal, 30), cli.Cell(e.Language, 20), cli.Cell(e.Status, 20), took, e.Calls, cli.Cell(e.Title, 50))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// execution returns the record of an execution from the gateway that has it, or what the audit record says about it.
func (a *app) execution(ctx context.Context, id string) (r history.Record, err error) {
	err = a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		if len(c.All) == 0 {
			return &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + cli.Cell(id, 60)}
		}
		return c.Find(ctx, "/executions/"+url.PathEscape(id), nil, &r)
	})
	missing, ok := errors.AsType[*tool.Error](err)
	if !ok || missing.Kind != tool.NotFound {
		return r, err
	}
	if audited, err := history.FromAudit(ctx, audit.Dir(a.DataDir()), id); err == nil {
		a.Say("the record of " + cli.Cell(id, 60) + " is gone; this is what the audit record says")
		return audited, nil
	}
	missing.Hint = "list the last ones: sallyport executions"
	return r, missing
}

func (a *app) showExecution(ctx context.Context, id string, asJSON bool) error {
	r, err := a.execution(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(r)
	}
	var b strings.Builder
	b.WriteString(heading(r))
	for _, call := range r.Calls {
		fmt.Fprintf(&b, "  %s  %s  %s\n", call.Tool, call.Outcome, call.Duration.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(r.Code, "\n"))
	if o := r.Output; o != nil {
		for _, part := range []struct{ name, text string }{{"stdout", o.Stdout}, {"stderr", o.Stderr}, {"value", o.Value}} {
			if part.text != "" {
				fmt.Fprintf(&b, "\n%s:\n%s\n", part.name, part.text)
			}
		}
		if o.Cut {
			b.WriteString("\nthe rest of the output is not kept\n")
		}
	}
	return a.Print(b.String())
}

// heading returns the first lines about an execution.
func heading(r history.Record) string {
	text := fmt.Sprintf("%s  %s  %s  by %s  %s", cli.Cell(r.ID, 40), cli.Cell(r.Language, 20), cli.Cell(string(r.Status), 20), cli.Cell(r.Principal, 60), r.Started.Local().Format(time.DateTime))
	if r.Client != "" {
		text += "  with " + cli.Cell(r.Client, 100)
	}
	if r.Title != "" {
		text += "\n" + cli.Cell(r.Title, 120)
	}
	if r.Error != "" {
		text += "\nerror: " + cli.Cell(r.Error, 300)
	}
	return text + "\n"
}
