package upstreamscmd

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/internal/tool"
)

func upstreamsRestartCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restart NAME...",
		Short: "restart upstreams of the gateways that run",
		Long: `Restart ends the process of an upstream, or its connection, in each gateway that
runs on the data directory, once its calls have ended, and connects again.`,
		Example: "  sallyport upstreams restart files",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return cli.Misuse(cmd, "restart needs the name of an upstream")
			}
			return a.upstreamsRestart(cmd.Context(), names)
		},
	}
}

func (a *app) upstreamsRestart(ctx context.Context, names []string) error {
	return a.withRunning(ctx, func(ctx context.Context, c *cli.Gateways) error {
		for _, name := range names {
			err := eachGateway(ctx, c, name, func(gate *http.Client, id string) error {
				var done httpapi.Restarted
				return cli.DoJSON(ctx, gate, http.MethodPost, "/upstreams/restart/"+url.PathEscape(id), httpapi.Nothing{}, &done)
			})
			if err != nil {
				return a.processError(name, err)
			}
			if err := a.Print("restarted " + name); err != nil {
				return err
			}
		}
		return nil
	})
}

// withRunning calls use with the gateways that run on the data directory, of which there is at least one.
func (a *app) withRunning(ctx context.Context, use func(ctx context.Context, c *cli.Gateways) error) error {
	return a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		if len(c.All) == 0 {
			return &tool.Error{Kind: tool.Failed, Message: "no gateway runs on " + a.DataDir(),
				Hint: "start one (sallyport serve), name its data directory with --data, or connect without one: sallyport upstreams test"}
		}
		return use(ctx, c)
	})
}

// eachGateway calls do with each gateway that has the upstream of a name or id. It is an error if none has.
func eachGateway(ctx context.Context, c *cli.Gateways, name string, do func(gate *http.Client, id string) error) error {
	found := false
	for _, gate := range c.All {
		var list httpapi.UpstreamList
		if err := cli.DoJSON(ctx, gate, http.MethodGet, "/upstreams", nil, &list); err != nil {
			return err
		}
		for _, up := range list.Upstreams {
			if up.Name != name && up.ID != name {
				continue
			}
			found = true
			if err := do(gate, up.ID); err != nil {
				return err
			}
		}
	}
	if !found {
		return &tool.Error{Kind: tool.NotFound, Message: "no gateway that runs has the upstream " + cli.Cell(name, 80), Hint: "list those of the settings: sallyport upstreams list"}
	}
	return nil
}

// processError adds the next command to the error of a restart or of logs.
func (a *app) processError(name string, err error) error {
	fault, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	if fault.Kind == tool.NotFound {
		return a.explainMissing(name, err)
	}
	if fault.Kind == tool.Upstream {
		shown := *fault
		shown.Hint = "see why: sallyport upstreams logs " + name
		return &shown
	}
	return err
}
