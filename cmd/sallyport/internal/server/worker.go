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
		Long: `Worker runs sandboxes on this machine, which must be Linux, for a gateway on
another machine that runs "serve --sandbox ssh://HOST" and starts it over ssh. It
reads no settings and has no upstreams and no credentials. It ends, with all its
sandboxes, when its stdin is closed. See docs/how-to/remote-sandboxes.md for the setup.`,
		Example: "  ssh -T linuxbox sallyport worker --stdio\n  sallyport worker --stdio --runsc /opt/gvisor/runsc",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return cli.Misuse(cmd, "worker is started by a gateway, with --stdio")
			}
			return a.work(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&stdio, "stdio", false, "communicate with the gateway on stdin and stdout")
	flags.StringVar(&opts.Runsc, "runsc", "", "use the runsc at `PATH` (default next to sallyport, then in PATH)")
	flags.StringVar(&opts.Python, "python", "", "run Python programs with the python at `PATH`")
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
	stream := &stdioStream{Reader: a.Stdin, Writer: a.Stdout}
	return remote.ServeWorker(ctx, stream, remote.WorkerOptions{Version: cli.BuildVersion(), Host: opts})
}

// stdioStream combines stdin and stdout into one stream.
type stdioStream struct {
	io.Reader
	io.Writer
	once sync.Once
}

// Close closes both, if they can be closed.
func (s *stdioStream) Close() (err error) {
	s.once.Do(func() {
		for _, end := range []any{s.Reader, s.Writer} {
			if c, ok := end.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
	})
	return err
}
