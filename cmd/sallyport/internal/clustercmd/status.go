package clustercmd

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/cluster"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox/workers"
)

// listTime is how long workers may take to answer, and storeTime how long the servers of the store may.
const listTime, storeTime = 1500 * time.Millisecond, 15 * time.Second

func (a *app) statusCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "show the gateways, the workers and the NATS servers",
		Long: `Status lists the gateways that share the store (store: in upstreams.yaml), the workers
that have joined, and the NATS servers of the store. For gateways and workers it shows
their programs, start, last heartbeat and state; for servers, how many streams they keep
and lead, and how many records they lack.`,
		Example: "  sallyport cluster status\n  sallyport cluster status --json",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, cli.OneObject)
	return cmd
}

// members is what the command shows.
type members struct {
	Gateways []cluster.Gateway `json:"gateways"`
	Workers  []workers.Worker  `json:"workers"`
	Servers  []cluster.Server  `json:"servers"`
}

func (a *app) status(ctx context.Context, asJSON bool) error {
	found, unanswered, err := a.members(ctx)
	if err != nil {
		return err
	}
	if unanswered != nil {
		a.Say("the NATS servers of the store do not answer: " + sanitize.Line(unanswered.Error(), 300))
	}
	if asJSON {
		return a.PrintJSON(found)
	}
	parts := []string{gatewayTable(found.Gateways)}
	if len(found.Workers) == 0 {
		a.Say("no worker has joined: start one with sallyport worker --join URL --creds FILE")
	} else {
		workers, err := a.workerTable(found.Workers)
		if err != nil {
			return err
		}
		parts = append(parts, workers)
	}
	return a.Print(strings.Join(append(parts, serverTable(found.Servers)), "\n"))
}

// members asks workers and servers at the same time. unanswered is why the store did not answer.
func (a *app) members(ctx context.Context) (found members, unanswered, err error) {
	server, prefix, err := a.servers()
	if err != nil {
		return found, nil, err
	}
	var work sync.WaitGroup
	work.Go(func() { found.Gateways, found.Servers, unanswered = a.askStore(ctx) })
	found.Workers, err = workers.List(ctx, server, prefix, listTime)
	work.Wait()
	if err != nil {
		return found, nil, &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err}
	}
	return found, unanswered, nil
}

func (a *app) askStore(ctx context.Context) (gateways []cluster.Gateway, servers []cluster.Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	records, err := cli.ConnectStore(cfg, a.Logger(slog.LevelError+1))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = records.Close() }() // it was only read
	return cluster.Store(ctx, records)
}
