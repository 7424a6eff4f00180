package upstreamscmd

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
)

func upstreamsLogsCommand(a *app) *cobra.Command {
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use:   "logs [flags] NAME",
		Short: "show what an upstream wrote to stderr",
		Long: `Logs shows the end of what the process of an upstream wrote to stderr, at most 8 KiB
without secrets, in the gateways that run on the data directory. With --follow it then
shows each line as it comes, also of the next process after a restart.`,
		Example: "  sallyport upstreams logs files\n  sallyport upstreams logs files --follow",
		Args:    cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case follow && asJSON:
				return cli.Misuse(cmd, "--follow and --json do not go together")
			case follow:
				return a.followLogs(cmd.Context(), args[0])
			}
			return a.upstreamsLogs(cmd.Context(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "then show each line as it comes, until interrupted")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// logsJSON is what logs --json prints.
type logsJSON struct {
	Logs []httpapi.UpstreamLog `json:"logs"`
}

func (a *app) upstreamsLogs(ctx context.Context, name string, asJSON bool) error {
	var all logsJSON
	err := a.withRunning(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return eachGateway(ctx, c, name, func(gate *http.Client, id string) error {
			var one httpapi.UpstreamLog
			err := cli.DoJSON(ctx, gate, http.MethodGet, "/upstreams/log/"+url.PathEscape(id), nil, &one)
			all.Logs = append(all.Logs, one)
			return err
		})
	})
	switch {
	case err != nil:
		return a.processError(name, err)
	case asJSON:
		return a.PrintJSON(all)
	}
	for _, one := range all.Logs {
		if one.Stderr == "" {
			a.Say("upstream " + name + " has written nothing to stderr")
		} else if err := a.Print(one.Stderr); err != nil {
			return err
		}
	}
	return nil
}

// followEvery is the time between two looks for new lines.
const followEvery = 250 * time.Millisecond

// followLogs prints the lines that the upstream writes, until ctx ends.
func (a *app) followLogs(ctx context.Context, name string) error {
	err := a.withRunning(ctx, func(ctx context.Context, c *cli.Gateways) error {
		seen := map[*http.Client]string{}
		for ctx.Err() == nil {
			if err := eachGateway(ctx, c, name, func(gate *http.Client, id string) error { return a.printNew(ctx, gate, id, seen) }); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(followEvery):
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt is the normal end
	}
	return a.processError(name, err)
}

// printNew prints the lines of one gateway since the position in seen, and moves it.
func (a *app) printNew(ctx context.Context, gate *http.Client, id string, seen map[*http.Client]string) error {
	var log httpapi.UpstreamLog
	after := url.Values{"after": {cmp.Or(seen[gate], "0")}}
	if err := cli.DoJSON(ctx, gate, http.MethodGet, "/upstreams/log/"+url.PathEscape(id)+"?"+after.Encode(), nil, &log); err != nil {
		return err
	}
	seen[gate] = log.Next
	if log.Stderr == "" {
		return nil
	}
	return a.Print(log.Stderr)
}
