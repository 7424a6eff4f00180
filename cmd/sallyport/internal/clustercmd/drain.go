package clustercmd

import (
	"context"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/cluster"
	"sallyport/sandbox/workers"
)

func (a *app) drainCommand() *cobra.Command {
	idle := false
	cmd := &cobra.Command{
		Use:   "drain NAME [flags]",
		Short: "let a worker take no new programs",
		Long: `Drain tells a worker to take no new programs, so that its machine can be stopped.
Those that run go on; sessions there begin without variables elsewhere. The worker
stays until "cluster resume" or a restart, and cluster status shows it as draining,
and as drained when it runs no program. The credentials are those of store: in
upstreams.yaml; a worker's do not permit it.`,
		Example: "  sallyport cluster drain w1 --wait\n  sallyport cluster resume w1",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.command(cmd, args, workers.Drain, idle)
		},
	}
	cmd.Flags().BoolVar(&idle, "wait", false, "wait until it runs no program")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "let a worker take programs again",
		Long:    `Resume undoes "cluster drain". A worker that got SIGTERM ends nevertheless.`,
		Example: "  sallyport cluster resume w1",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.command(cmd, args, workers.Resume, false)
		},
	}
}

// command gives an order to a worker, and shows it.
func (a *app) command(cmd *cobra.Command, args []string, order workers.Order, idle bool) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Misuse(cmd, "%s takes the name of one worker", order)
	}
	if err := workers.CheckName(args[0]); err != nil {
		return cli.Misuse(cmd, "%s", err)
	}
	found, err := a.give(cmd.Context(), args[0], order, idle)
	if err != nil {
		return err
	}
	return a.printTable(found)
}

func (a *app) give(ctx context.Context, name string, order workers.Order, idle bool) ([]workers.Worker, error) {
	server, prefix, err := a.servers()
	if err != nil {
		return nil, err
	}
	found, err := workers.Command(ctx, server, prefix, name, order, idle, listTime)
	return found, cluster.OrderError(err)
}
