// Package clustercmd has the verbs for a cluster of gateways and workers.
package clustercmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/upstream/single"
	"sallyport/internal/natsconn"
	"sallyport/internal/seal"
	"sallyport/internal/tool"
	"sallyport/sandbox/workers"
)

// app has the verbs of this package.
type app struct{ *cli.App }

// Command returns the verb with its subcommands.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	return cli.Group(&cobra.Command{
		Use:   "cluster COMMAND",
		Short: "set up and show gateways and workers on several machines",
		Long: `A cluster is one or more gateways with a store on NATS servers (store: in
upstreams.yaml), and workers that run programs for them: docs/how-to/workers.md.`,
	}, a.initCommand(), a.statusCommand(), a.drainCommand(), a.resumeCommand())
}

func (a *app) initCommand() *cobra.Command {
	prefix, names := "sallyport", []string{}
	cmd := &cobra.Command{
		Use:   "init DIR [flags]",
		Short: "write credentials for NATS servers, gateways and workers",
		Long: `Init writes nats-accounts.conf, to include in the configuration of the NATS
servers, gateway.creds, and credentials for each worker. A worker's permit only what a
worker of this name needs; neither records nor other workers. seal.key is store.key of
the gateways, with which they encrypt logins and sessions in the store. In a DIR that
init has written before, it only adds what is missing, and the servers need no change.
account.seed in DIR makes further credentials. Keep it and seal.key secret, and away
from the servers.`,
		Example: "  sallyport cluster init keys --worker w1 --worker w2\n  sallyport cluster init keys --worker w3",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Misuse(cmd, "init takes one folder")
			}
			for _, name := range names {
				if err := workers.CheckName(name); err != nil || name == "gateway" {
					return cli.Misuse(cmd, "%.40q cannot name a worker", name)
				}
			}
			return a.init(args[0], prefix, names)
		},
	}
	cmd.Flags().StringArrayVar(&names, "worker", nil, "write the credentials of the worker `NAME`; can be repeated")
	cmd.Flags().StringVar(&prefix, "prefix", prefix, "`WORD` that is store.prefix of the gateways")
	return cmd
}

func (a *app) init(dir, prefix string, names []string) error {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name+".creds")); err == nil {
			return &tool.Error{Kind: tool.Invalid, Message: filepath.Join(dir, name+".creds") + " exists", Hint: "remove it to make others; servers still accept the old ones"}
		}
	}
	authority, made, err := natsconn.OpenAuthority(dir)
	if err != nil {
		return fmt.Errorf("init cluster: %w", err)
	}
	written := []string{}
	if made {
		written = append(written, filepath.Join(dir, natsconn.ServerFile))
	}
	if _, err := os.Lstat(filepath.Join(dir, "gateway.creds")); errors.Is(err, fs.ErrNotExist) {
		g := workers.GatewayRights(prefix)
		publish, subscribe := single.Rights(prefix)
		publish = slices.Concat([]string{prefix + ".>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>"}, g.Publish, publish)
		path, err := authority.AddUser("gateway", publish, slices.Concat([]string{"_INBOX." + prefix + ".>"}, g.Subscribe, subscribe))
		if err != nil {
			return fmt.Errorf("init cluster: %w", err)
		}
		written = append(written, path)
	}
	path, made, err := authority.AddFile("seal.key", seal.Generate())
	if err != nil {
		return fmt.Errorf("init cluster: %w", err)
	}
	if made {
		written = append(written, path)
	}
	for _, name := range names {
		r := workers.WorkerRights(prefix, name)
		path, err := authority.AddUser(name, r.Publish, r.Subscribe)
		if err != nil {
			return fmt.Errorf("init cluster: %w", err)
		}
		written = append(written, path)
	}
	if len(written) == 0 {
		a.Say("nothing to do: name a worker with --worker")
		return nil
	}
	return a.Print(strings.Join(written, "\n"))
}

// servers returns the servers of the settings, and the prefix of the store there.
func (a *app) servers() (server natsconn.Server, prefix string, err error) {
	cfg, err := a.Load()
	if err != nil {
		return server, "", err
	}
	if !cfg.Store.IsRemote() || cfg.Store.Problem != "" {
		return server, "", &tool.Error{Kind: tool.Invalid, Message: "there is no cluster: " + cmp.Or(cfg.Store.Problem, "upstreams.yaml has no store with a url"), Hint: "see docs/how-to/workers.md"}
	}
	return natsconn.Of(cfg.Store, "sallyport "+cli.BuildVersion()), cfg.Store.Prefix, nil
}
