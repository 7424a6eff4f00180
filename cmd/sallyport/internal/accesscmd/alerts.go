package accesscmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/alerts"
	"sallyport/internal/config"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// AlertsCommand returns the verb.
func AlertsCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:     "alerts COMMAND",
		Short:   "test the receivers of alerts",
		Long:    "Alerts works with the section alerts of the settings: webhooks and desktops\nthat get approvals, quarantined tools, upstreams that are not available, and budgets.",
		Example: "  sallyport alerts test",
	}
	return cli.Group(cmd, alertsTestCommand(a))
}

func alertsTestCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags] [NAME...]",
		Short: "send a test to each receiver of alerts",
		Long: `Test sends an alert of the type test to each receiver, or to those with these names,
once, and shows what each answered. The exit status is 1 if one did not take it. No
gateway needs to run.`,
		Example: "  sallyport alerts test\n  sallyport alerts test pager",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.testAlerts(cmd.Context(), args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// alertTest is the result of one receiver.
type alertTest struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	On    []string `json:"on,omitempty"`
	OK    bool     `json:"ok"`
	Said  string   `json:"answer,omitempty"`
	Error string   `json:"error,omitempty"`
}

func (a *app) testAlerts(ctx context.Context, names []string, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	sets, err := chooseAlerts(cfg.Alerts, names)
	if err != nil {
		return err
	}
	sender, all := alerts.NewSender(nil, nil), make([]alertTest, len(sets))
	var work sync.WaitGroup
	for i, set := range sets {
		work.Go(func() { all[i] = testAlert(ctx, sender, set, strings.TrimSuffix(cfg.HTTP.URL, "/")) })
	}
	work.Wait()
	failed := 0
	for _, one := range all {
		if !one.OK {
			failed++
		}
	}
	if err := a.printAlertTests(all, asJSON); err != nil {
		return err
	}
	if failed > 0 {
		return cli.Status(cli.ExitFailed)
	}
	return nil
}

// chooseAlerts returns the receivers with these names, all without names.
func chooseAlerts(all []config.Alert, names []string) (chosen []config.Alert, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, set := range all {
		known = append(known, set.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			e := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no alert %q", name)}
			if near := suggest.Of(name, known); near != "" {
				e.Hint = "did you mean " + near + "?"
			}
			return nil, e
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func testAlert(ctx context.Context, sender *alerts.Sender, set config.Alert, site string) alertTest {
	result := alertTest{Name: set.Name, Kind: set.Format, On: set.On}
	if set.Desktop {
		result.Kind = "desktop"
	}
	said, err := sender.Send(ctx, set, alerts.NewTest(site))
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.OK, result.Said = true, said
	return result
}

func (a *app) printAlertTests(all []alertTest, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			Alerts []alertTest `json:"alerts"`
		}{all})
	}
	if len(all) == 0 {
		a.Say("no receiver of alerts: see alerts in upstreams.yaml")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, one := range all {
		state, text := "ok", one.Said
		if !one.OK {
			state, text = "failed", one.Error
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", cli.Cell(one.Name, 60), one.Kind, state, cli.Cell(text, 200))
	}
	_ = table.Flush() // to a string
	return a.Print(strings.TrimSuffix(b.String(), "\n"))
}
