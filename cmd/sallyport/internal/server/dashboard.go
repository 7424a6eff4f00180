package server

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/tool"
)

// DashboardCommand returns the verb.
func DashboardCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var printOnly bool
	cmd := &cobra.Command{
		Use:   "dashboard [flags]",
		Short: "open the dashboard of the gateway that runs, as its operator",
		Long: `Dashboard asks the gateway that runs on the data directory for an address that
opens its dashboard once and within a minute, prints it, and opens it in a browser
if this is a terminal. The address logs in as an operator, who sees the data of all
principals, may answer approvals, and may change the settings.

A gateway that an MCP client started (serve without --http) has no address: it
listens on a free port of this machine from the first such request until it ends,
for the dashboard and the API, and accepts only requests with a login or a token.`,
		Example: "  sallyport dashboard\n  sallyport dashboard --print",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dashboard(cmd.Context(), printOnly) },
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address only")
	return cmd
}

func (a *app) dashboard(ctx context.Context, printOnly bool) error {
	var code dashboardCode
	err := a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) (err error) {
		if code, err = requestPages(ctx, c); err != nil && tool.AsError(err).Kind == tool.NotFound {
			return &tool.Error{Kind: tool.NotFound, Message: "no gateway runs on this data directory", Hint: "start an MCP client that uses sallyport, or run: sallyport serve --http 127.0.0.1:8080"}
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := a.Print(code.URL); err != nil || printOnly || !cli.IsTerminal(a.Stdout) || !hasDisplay(a.Env) {
		return err
	}
	if err := cli.OpenBrowser(ctx, code.URL); err != nil {
		a.Say("no browser could be opened here: open the address yourself")
	}
	return nil
}

// hasDisplay reports whether there is likely a display.
func hasDisplay(env func(string) (string, bool)) bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return true
	}
	_, x := env("DISPLAY")
	_, wayland := env("WAYLAND_DISPLAY")
	return x || wayland
}
