package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/internal/config"
	"sallyport/internal/plain"
)

// upstreamsCommand is the parent of the verbs about single upstreams.
func upstreamsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upstreams COMMAND",
		Short: "look after the upstreams in the settings",
		Long:  "Upstreams shows and edits what upstreams.yaml says of the servers that sallyport\nstands in front of.",
		Example: `  sallyport upstreams list
  sallyport upstreams add files -- npx -y @modelcontextprotocol/server-filesystem /data
  sallyport upstreams test files`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			return errors.Join(cmd.Help(), status(exitUsage))
		},
	}
	cmd.AddCommand(upstreamsListCommand(a), upstreamsAddCommand(a), upstreamsRemoveCommand(a), upstreamsTestCommand(a))
	cmd.AddCommand(upstreamsReviewCommand(a), upstreamsApproveCommand(a))
	return cmd
}

func upstreamsListCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "list the upstreams of the settings",
		Long:  "List prints the upstreams as upstreams.yaml has them, the disabled ones too. It\nconnects to none.",
		Example: `  sallyport upstreams list
  sallyport upstreams list --json | jq -r '.upstreams[] | select(.disabled) | .name'`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.upstreamsList(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
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
	cfg, err := a.glance()
	if err != nil {
		return &configError{err}
	}
	list := struct {
		Upstreams []settingJSON `json:"upstreams"`
	}{[]settingJSON{}}
	for _, up := range cfg.Upstreams {
		list.Upstreams = append(list.Upstreams, setting(up))
	}
	if asJSON {
		return a.printJSON(list)
	}
	if len(list.Upstreams) == 0 {
		a.say("no upstreams in " + cfg.Path)
		return nil
	}
	return a.printSettings(list.Upstreams)
}

// glance reads the settings without the values of their references, which may not be there yet.
func (a *app) glance() (*config.Config, error) {
	path, err := config.Find(a.configPath, a.env)
	if err != nil {
		return nil, err
	}
	f, err := config.Open(path, a.env)
	if err != nil {
		return nil, err
	}
	return f.Config()
}

func setting(up config.Upstream) settingJSON {
	return settingJSON{
		Name: up.Name, ID: up.ID, Description: up.Description, Transport: transport(up),
		Trust: string(up.Trust), Auth: authOf(up), Eager: up.Eager, Disabled: up.Disabled,
	}
}

// transport says in a word how an upstream is reached.
func transport(up config.Upstream) string {
	switch {
	case up.Command != "":
		return "stdio"
	case up.Socket != "":
		return "socket"
	case up.Transport == "" || up.Transport == "auto":
		return "http"
	}
	return up.Transport
}

// authOf says in a word what an upstream over HTTP is told of who we are.
func authOf(up config.Upstream) string {
	if up.URL == "" {
		return ""
	}
	if up.Auth.Type != "" {
		return up.Auth.Type
	}
	for name := range up.Headers {
		if strings.EqualFold(name, "Authorization") {
			return "header"
		}
	}
	return ""
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
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Transport, s.Trust, cmp.Or(s.Auth, "-"), state, cmp.Or(plain.Line(s.Description, 60), "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.print(b.String())
}
