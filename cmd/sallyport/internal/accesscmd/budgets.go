package accesscmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/budgets"
)

// BudgetsCommand returns the verb.
func BudgetsCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "budgets [flags]",
		Short: "show what was used of the budgets today",
		Long: `Budgets shows what principals have used today of the budgets in upstreams.yaml,
the most used first: calls, programs, processor time and money, each with its
limit. All budgets start again at 00:00 UTC.`,
		Example: "  sallyport budgets\n  sallyport budgets --json",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.budgets(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, cli.OneObject)
	return cmd
}

func (a *app) budgets(ctx context.Context, asJSON bool) error {
	var report budgets.Report
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, "/budgets", func(one budgets.Report) {
			if !report.Stored { // the counts of a process that stores none are its own
				report = one
			}
		})
	})
	if err != nil {
		return err
	}
	if report.Budgets == nil {
		report.Budgets = []budgets.Row{}
	}
	if asJSON {
		return a.PrintJSON(report)
	}
	if len(report.Budgets) == 0 {
		a.Say("no gateway with budgets has run here: see budgets in upstreams.yaml")
		return nil
	}
	return a.Print(budgetTable(report))
}

// budgetTable returns a line for each budget and principal.
func budgetTable(report budgets.Report) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUDGET\tWHO\tCALLS\tPROGRAMS\tPROCESSOR TIME\tMONEY")
	for _, row := range report.Budgets {
		who := row.Principal
		switch {
		case row.Shared:
			who = "all together"
		case row.Unused:
			who = "not used yet"
		case who == "":
			who = "local"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(row.Budget, 60), cli.Cell(who, 60), useCell(row.Calls, 1, ""), useCell(row.Programs, 1, ""), useCell(row.CPU, 1000, "s"), useCell(row.Money, 1, ""))
	}
	_ = table.Flush() // to a string
	return b.String() + "resets: " + report.Resets.Format("2006-01-02 15:04 MST")
}

// useCell says how much of a limit is used, in multiples of unit.
func useCell(u *budgets.Use, unit float64, name string) string {
	return cmp.Or(budgets.UseText(u, unit, name), "-")
}
