package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	guest "sallyport/codegen/runtime"
	"sallyport/gateway/environments"
	"sallyport/gateway/executor"
	"sallyport/gateway/typecheck"
	"sallyport/internal/config"
	"sallyport/internal/labels"
	"sallyport/internal/natsconn"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/workers"
)

// workerFlags are the flags of the verb.
type workerFlags struct {
	stdio           bool
	join, creds, ca string
	name, prefix    string
	labels          []string
	seats           int
	sandbox         sandbox.Options
	// checkers are the paths of the type checkers.
	pyright, tsc string
	environments string // the path of the settings that have them
}

// WorkerCommand returns the verb.
func WorkerCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "run the programs of gateways on other machines",
		Long: `Worker runs sandboxes on this machine, which must be Linux, for gateways on other
machines. It reads no settings and has no upstreams and no logins of theirs.

With --join it joins a cluster at the NATS servers of the gateways' store, and
runs programs of all gateways with "remote: workers" under "sandbox". After
SIGTERM it takes no new programs, and ends when those that run have ended; a
second signal ends it at once. See docs/how-to/workers.md.

With --stdio it serves one gateway that runs "serve --sandbox ssh://HOST" and
starts it over ssh. It ends, with all its sandboxes, when its stdin is closed. See
docs/how-to/remote-sandboxes.md.`,
		Example: "  sallyport worker --join tls://n1:4222,tls://n2:4222 --creds w1.creds --ca ca.pem\n  sallyport worker --join nats://n1:4222 --creds w2.creds --seats 16 --label region=eu\n  ssh -T linuxbox sallyport worker --stdio",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.stdio && f.join != "":
				return cli.Misuse(cmd, "--stdio and --join do not go together")
			case f.stdio && f.environments != "":
				return cli.Misuse(cmd, "--environments is for workers that join a cluster")
			case f.stdio:
				return a.work(cmd.Context(), f)
			case f.join != "":
				return a.joinCluster(cmd, f)
			}
			return cli.Misuse(cmd, "worker needs --join, or --stdio if a gateway starts it")
		},
	}
	f.add(cmd)
	return cmd
}

func (f *workerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.join, "join", "", "join the cluster at the NATS servers `URL`, nats://HOST:PORT or tls://HOST:PORT,\nseveral with commas")
	flags.StringVar(&f.creds, "creds", "", "log in to the servers with the credentials in `FILE`, of cluster init")
	flags.StringVar(&f.ca, "ca", "", "trust the certificates in `FILE` (default those of the system)")
	flags.StringVar(&f.name, "name", "", "join as `NAME` (default the name in the credentials)")
	flags.StringVar(&f.prefix, "prefix", "sallyport", "`WORD` that is store.prefix of the gateways")
	flags.StringArrayVar(&f.labels, "label", nil, "describe this machine by `KEY=VALUE`; cluster status shows it")
	flags.IntVar(&f.seats, "seats", 0, "run `N` programs at once (default 2 for each processor)")
	flags.BoolVar(&f.stdio, "stdio", false, "serve one gateway on stdin and stdout")
	flags.StringVar(&f.sandbox.Runsc, "runsc", "", "use the runsc at `PATH` (default next to sallyport, then in PATH)")
	flags.StringVar(&f.sandbox.Python, "python", "", "run Python programs with the python at `PATH`")
	flags.StringVar(&f.sandbox.Node, "node", "", "run TypeScript programs with the node at `PATH`")
	flags.StringVar(&f.environments, "environments", "", "make the environments of the settings in `FILE`, and run programs in them")
	flags.StringVar(&f.pyright, "pyright", "", "check the types of Python programs with the pyright at `PATH` (default in PATH)")
	flags.StringVar(&f.tsc, "tsc", "", "check the types of TypeScript programs with the tsc at `PATH` (default in PATH)")
}

func (a *app) work(ctx context.Context, f workerFlags) error {
	if err := sandbox.Platform(); err != nil {
		return err
	}
	opts, err := a.remoteWorker(f, a.Logger(slog.LevelError))
	if err != nil {
		return err
	}
	return remote.ServeWorker(ctx, &stdioStream{Reader: a.Stdin, Writer: a.Stdout}, opts)
}

func (a *app) remoteWorker(f workerFlags, log *slog.Logger) (remote.WorkerOptions, error) {
	opts := f.sandbox
	opts.Guest, opts.Logger = guest.Guest(), log
	if dir := a.CacheDir(); dir != "" {
		opts.Snapshots = filepath.Join(dir, "snapshots")
	}
	services, err := f.checkers(log)
	return remote.WorkerOptions{Version: cli.BuildVersion(), Host: opts, Services: services}, err
}

// checkers returns the type checkers of this machine. It is an error if one of a flag cannot be used.
func (f workerFlags) checkers(log *slog.Logger) (map[string]sandbox.Service, error) {
	services := map[string]sandbox.Service{}
	for language, path := range map[typecheck.Language]string{typecheck.Python: f.pyright, typecheck.TypeScript: f.tsc} {
		service, err := executor.FindChecker(language, path)
		if err == nil && service.Interpreter != "" {
			_, err = sandbox.InterpreterPath(service.Interpreter, f.sandbox.Node)
		}
		switch {
		case err == nil:
			services[executor.CheckerName(language)] = service
		case path != "":
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the type checker of %s: %v", language, err), Hint: "leave the flag out to do without it", Err: err}
		default:
			log.Info("programs run here without a type checker", "language", language, "error", err)
		}
	}
	return services, nil
}

// joinCluster runs programs of a cluster until the process is told to end.
func (a *app) joinCluster(cmd *cobra.Command, f workerFlags) error {
	has, err := labels.Parse(f.labels)
	if !cmd.Flags().Changed("seats") {
		f.seats = 2 * runtime.NumCPU()
	}
	if err == nil && (f.seats < 1 || f.seats > workers.MaxSeats) {
		err = fmt.Errorf("--seats is a number from 1 to %d", workers.MaxSeats)
	}
	server := natsconn.Server{URL: f.join, Creds: f.creds, CA: f.ca, Name: "sallyport worker " + cli.BuildVersion()}
	if f.name == "" && err == nil {
		f.name, err = server.User()
	}
	if err == nil {
		err = workers.CheckName(f.name)
	}
	if err != nil {
		return cli.Misuse(cmd, "%s", err)
	}
	if err := sandbox.Platform(); err != nil {
		return err
	}
	log := a.Logger(slog.LevelInfo)
	opts, err := a.remoteWorker(f, log)
	if err != nil {
		return err
	}
	closed, err := a.prepare(cmd.Context(), f.environments, &opts)
	if err != nil {
		return err
	}
	defer closed()
	err = workers.Work(cmd.Context(), workers.WorkerOptions{Server: server, Prefix: f.prefix, Name: f.name, Seats: f.seats, Labels: has, Lacks: lacking(opts.Host), Remote: opts, Logger: log})
	if err != nil {
		return &tool.Error{Kind: tool.Failed, Message: err.Error(), Hint: "docs/how-to/workers.md has the servers' configuration", Err: err}
	}
	return nil
}

// lacking returns the interpreters that this machine does not have.
func lacking(opts sandbox.Options) (names []sandbox.Interpreter) {
	for i, path := range map[sandbox.Interpreter]string{sandbox.Python: opts.Python, sandbox.Node: opts.Node} {
		if _, err := sandbox.InterpreterPath(i, path); err != nil {
			names = append(names, i)
		}
	}
	slices.Sort(names)
	return names
}

// prepare returns why this machine cannot run sandboxes, or makes the environments of a file of settings, "" for none. They are kept until
// closed is called.
func (a *app) prepare(ctx context.Context, file string, opts *remote.WorkerOptions) (closed func(), err error) {
	host, err := sandbox.New(opts.Host)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return func() {}, host.Close()
	}
	made, err := a.makeEnvironments(ctx, file, host)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	opts.Host.Environments, opts.Extend = made.All, made.Extend
	return func() {
		made.Close()
		_ = host.Close() // the next host removes what is left
	}, nil
}

// makeEnvironments makes the environments of a file of settings, in sandboxes of a host that stays open while packages are added.
func (a *app) makeEnvironments(ctx context.Context, file string, host *sandbox.Host) (*environments.Made, error) {
	cfg, err := config.Sources{Getenv: a.Env}.Load(file)
	if err != nil {
		return nil, &cli.ConfigError{Err: err}
	}
	if len(cfg.Upstreams) > 0 || cfg.Sandbox.Remote != "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: file + " is for environments: a worker has no upstreams", Hint: "write `upstreams: {}` and environments"}
	}
	var source atomic.Pointer[config.Config]
	source.Store(cfg)
	made, err := environments.MakeAll(ctx, host, environments.Options{Settings: &source, CacheDir: a.CacheDir(), Logger: a.Logger(slog.LevelInfo)})
	if err != nil {
		return nil, &tool.Error{Kind: tool.Failed, Message: err.Error(), Hint: "correct it in " + file + ", see docs/how-to/environments.md", Err: err}
	}
	return made, nil
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
