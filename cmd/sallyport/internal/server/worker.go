package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/codegen/runtime"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// WorkerCommand returns the verb.
func WorkerCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var stdio bool
	var opts sandbox.Options
	cmd := &cobra.Command{
		Use:   "worker --stdio [flags]",
		Short: "run the programs of a gateway on another machine",
		Long: `Worker has sandboxes on this machine, which must be Linux, for a gateway on
another one that runs "serve --sandbox ssh://HOST". That one starts it, by ssh;
it reads no settings, knows no upstreams and no credentials, and ends, with all
that it runs, when its stdin does. docs/remote.md tells how to set it up.`,
		Example: "  ssh -T linuxbox sallyport worker --stdio\n  sallyport worker --stdio --runsc /opt/gvisor/runsc",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return cli.Misuse(cmd, "worker speaks with a gateway over --stdio, and that is started by it")
			}
			return a.work(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&stdio, "stdio", false, "speak with the gateway on stdin and stdout")
	flags.StringVar(&opts.Runsc, "runsc", "", "use the runsc at `PATH` (default beside sallyport, then in PATH)")
	flags.StringVar(&opts.Python, "python", "", "run Python programs with the one at `PATH`")
	flags.StringVar(&opts.Node, "node", "", "run TypeScript programs with the node at `PATH`")
	return cmd
}

func (a *app) work(ctx context.Context, opts sandbox.Options) error {
	if err := sandbox.Platform(); err != nil {
		return err
	}
	opts.Guest, opts.Logger = runtime.Guest(), a.Logger(slog.LevelError)
	if dir := a.CacheDir(); dir != "" {
		opts.Snapshots = filepath.Join(dir, "snapshots")
	}
	stream := &standard{Reader: a.Stdin, Writer: a.Stdout}
	return remote.ServeWorker(ctx, stream, remote.WorkerOptions{Version: cli.BuildVersion(), Host: opts})
}

// standard is stdin and stdout as one stream.
type standard struct {
	io.Reader
	io.Writer
	once sync.Once
}

// Close closes both, where they can be.
func (s *standard) Close() (err error) {
	s.once.Do(func() {
		for _, end := range []any{s.Reader, s.Writer} {
			if c, ok := end.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
	})
	return err
}
