package upstreamscmd

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// Command returns the parent of the verbs about upstreams.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "upstreams COMMAND",
		Short: "manage the upstreams in the settings",
		Long:  "Upstreams lists, edits, tests and restarts the servers in upstreams.yaml.",
		Example: `  sallyport upstreams list
  sallyport upstreams add files -- npx -y @modelcontextprotocol/server-filesystem /data
  sallyport upstreams test files`,
	}
	return cli.Group(cmd, upstreamsListCommand(a), upstreamsAddCommand(a), upstreamsRemoveCommand(a), upstreamsTestCommand(a),
		upstreamsEditCommand(a), upstreamsSwitchCommand(a, false), upstreamsSwitchCommand(a, true), upstreamsRestartCommand(a), upstreamsLogsCommand(a),
		upstreamsLearnCommand(a), upstreamsProfileCommand(a), upstreamsReviewCommand(a), upstreamsApproveCommand(a), upstreamsRejectCommand(a))
}

func upstreamsListCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "list the upstreams of the settings",
		Long:  "List prints the upstreams as upstreams.yaml has them, the disabled ones too. It\nconnects to none.",
		Example: `  sallyport upstreams list
  sallyport upstreams list --json | jq -r '.upstreams[] | select(.disabled) | .name'`,
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return a.upstreamsList(asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// settingJSON is one upstream as upstreams list --json prints it.
type settingJSON struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	Transport   string `json:"transport"`
	Trust       string `json:"trust"`
	Auth        string `json:"auth,omitempty"`
	Eager       bool   `json:"eager"`
	Disabled    bool   `json:"disabled"`
}

func (a *app) upstreamsList(asJSON bool) error {
	cfg, err := a.ReadSettings()
	if err != nil {
		return &cli.ConfigError{Err: err}
	}
	list := struct {
		Upstreams []settingJSON `json:"upstreams"`
	}{[]settingJSON{}}
	for _, up := range cfg.Upstreams {
		list.Upstreams = append(list.Upstreams, newSettingJSON(up))
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Upstreams) == 0 {
		a.Say("no upstreams in " + cfg.Path)
		return nil
	}
	return a.printSettings(list.Upstreams)
}

func newSettingJSON(up config.Upstream) settingJSON {
	return settingJSON{
		Name: up.Name, ID: up.ID, Description: up.Description, Transport: cli.Transport(up),
		Trust: string(up.Trust), Auth: cli.AuthType(up), Eager: up.Eager, Disabled: up.Disabled,
	}
}

func (a *app) printSettings(list []settingJSON) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tTRANSPORT\tTRUST\tAUTH\tSTATE\tABOUT")
	for _, s := range list {
		state := "lazy"
		switch {
		case s.Disabled:
			state = "disabled"
		case s.Eager:
			state = "eager"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Transport, s.Trust, cmp.Or(s.Auth, "-"), state, cmp.Or(sanitize.Line(s.Description, 60), "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}
