package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/cluster"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/mcpserver/statekey"
	"sallyport/gateway/task"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// serveOptions holds the flags of serve.
type serveOptions struct {
	http string
	// mode is the mode of all clients whose URL names none, "" for the settings.
	mode   string
	prefix bool
	share  bool
	// port is a port of this machine to listen at, 0 for none: short for http.
	port int
	// compat replaces the server of compat: in the settings, if it is not empty.
	compat string
	// profiles replaces the profiles of the settings, if it is not empty.
	profiles []string
}

// modeTools is an older name of mode code.
const modeTools = "tools"

// ServeCommand returns the verb.
func ServeCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	s := serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "be an MCP server on stdin and stdout, or over HTTP",
		Long: `Serve speaks MCP on stdin and stdout, with the two tools search_tools and
execute_code. It is started by an MCP client, and ends, with all processes that it
started, when the client closes stdin or sends SIGINT or SIGTERM.

With --http it listens instead, at /mcp, for clients of every revision. Other
machines can connect only with http.tokens, http.oauth or http.login in
upstreams.yaml. After SIGTERM running calls may finish, within http.grace.

With --compat clients of another code execution server see its tools and get its
answers: see docs/how-to/replace-another-server.md.

In mode direct clients see the tools, resources and prompts of the upstreams
themselves, each as UPSTREAM__NAME, and calls are forwarded unchanged. In mode
search they see search_tools and call_tool in place of these tools. The mode is in
the URL of a client (/mcp?mode=direct, also /mcp?codemode=off and /mcp/direct),
else it is that of --mode, else that of clients: and mode: in upstreams.yaml.
With --mode direct or search no client gets mode code.

The log goes to stderr. It has no arguments, no results and no secrets in it.
An error in upstreams.yaml ends it with status 2 before anything starts; an
upstream that is down does not end it. Only one process has the records of a data
directory: a second one needs another directory (--data) or keeps its records in
memory (--share). All other verbs work at the same time.`,
		Example: `  claude mcp add sallyport -- sallyport serve --share --config "$PWD/upstreams.yaml"
  sallyport serve --log-level debug 2>sallyport.log
  sallyport serve --http 127.0.0.1:8080
  sallyport serve --mode direct
  sallyport serve --sandbox ssh://me@linuxbox`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(s.check(), s.address(cmd)); err != nil {
				return err
			}
			return a.serve(cmd.Context(), s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.http, "http", "", "listen on `ADDR` (HOST:PORT, port 0 for any, or unix:PATH) instead of stdin")
	flags.IntVar(&s.port, "port", 0, "listen on this `PORT` of this machine: short for --http 127.0.0.1:PORT")
	flags.StringVar(&s.compat, "compat", "", "be like another `SERVER` for its clients: code-execution-mcp,\nmcp_code_executor, or code-executor (over HTTP, port 9091 if no\nother is given); see compat: in upstreams.yaml")
	flags.StringVar(&s.mode, "mode", "", "what clients see: `MODE` is code (search_tools and execute_code),\ndirect (what the upstreams have) or search (search_tools and\ncall_tool); default is clients: and mode: in upstreams.yaml")
	flags.BoolVar(&s.prefix, "prefix", true, "in direct mode, put UPSTREAM__ before names; without, of two\nequal names only the second gets it")
	flags.StringSliceVar(&s.profiles, "profiles", nil, "show the tools of these `PROFILES`, instead of those of profiles: in\nupstreams.yaml: files, skills, privacy, stats, catalog, environments, all")
	a.SandboxFlag(cmd)
	flags.BoolVar(&s.share, "share", false, "share the data directory with another serve: workspaces and skills are\nshared, executions are handed over to that one, other records end with\nthis one; it takes over schedules when that one ends")
	cli.CompleteFlag(cmd, "mode", config.Modes()...)
	cli.CompleteFlag(cmd, "compat", config.Compats()...)
	cli.CompleteFlag(cmd, "profiles", append(config.AllProfiles(), "all")...)
	return cmd
}

// compatPort is the port of code-executor.
const compatPort = 9091

// address sets the address to listen at from --port and --compat.
func (s *serveOptions) address(cmd *cobra.Command) error {
	switch {
	case s.port != 0 && s.http != "":
		return cli.Misuse(cmd, "--port and --http do not go together: --port N is --http 127.0.0.1:N")
	case s.port < 0 || s.port > 65535:
		return cli.Misuse(cmd, "--port is a number from 1 to 65535")
	case s.http == "" && s.port == 0 && s.compat == config.CompatHTTP:
		s.port = compatPort
	}
	if s.port != 0 {
		s.http = fmt.Sprintf("127.0.0.1:%d", s.port)
	}
	return nil
}

// check refuses an unknown mode.
func (s *serveOptions) check() error {
	if s.mode == modeTools {
		s.mode = string(config.ModeCode)
	}
	if s.mode == "" || slices.Contains(config.Modes(), s.mode) {
		return nil
	}
	return unknownWord("mode", s.mode, config.Modes())
}

// modeOf returns the mode of a client whose URL names none.
func (s serveOptions) modeOf(cfg *config.Config, name, version string) config.Mode {
	return cmp.Or(config.Mode(s.mode), cfg.ModeOf(name, version), cfg.Mode, config.ModeCode)
}

// servesCode reports whether clients over HTTP may use code mode: --mode with another mode excludes it, whatever their URL names.
func (s serveOptions) servesCode() bool { return s.mode == "" || s.mode == string(config.ModeCode) }

// noRoots reports whether no client can list its folders to upstreams.
func (s serveOptions) noRoots(cfg *config.Config) bool {
	return s.http == "" && !s.byClient(cfg) && s.modeOf(cfg, "", "") == config.ModeCode
}

// byClient reports whether the mode depends on the client.
func (s serveOptions) byClient(cfg *config.Config) bool { return s.mode == "" && len(cfg.Clients) > 0 }

// unknownWord is the error for a value of a flag that is none of some words.
func unknownWord(what, given string, words []string) error {
	hint := "use " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if near := suggest.Of(given, words); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown %s %.40q", what, given), Hint: hint}
}

// load reads the settings and applies --profiles.
func (s serveOptions) load(a *app) (*config.Config, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	if s.compat != "" && !slices.Contains(config.Compats(), s.compat) {
		return nil, unknownWord("server for --compat", s.compat, config.Compats())
	}
	cfg.Compat = cmp.Or(s.compat, cfg.Compat)
	if len(s.profiles) == 0 {
		return cfg, nil
	}
	if cfg.Profiles, err = config.ParseProfiles(s.profiles); err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: err.Error()}
	}
	return cfg, nil
}

func (a *app) serve(ctx context.Context, s serveOptions) (err error) {
	load := func() (*config.Config, error) { return s.load(a) }
	cfg, err := load()
	if err != nil {
		return err
	}
	log := a.Logger(slog.LevelInfo)
	f := &front{}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(ctx, a, s, cfg, log); err != nil {
		return err
	}
	records, d := f.records, f.listener
	watched, err := a.openTelemetry(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer closeTelemetry(watched, log)
	notices := &mcpserver.Notices{}
	g, err := a.OpenGateway(cfg, log, gateway.Options{Records: records, Telemetry: watched, Purpose: "serve", PeerRequests: true, NoRoots: s.noRoots(cfg), OnNotice: notices.Notice, ServeSingle: serveSingle(notices, log), Site: d.site(cfg.HTTP), Directory: d.groups(), Subjects: d.people()})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, g.Close())
		log.Info("stopped")
	}()
	a.warnMissing(cfg, log)
	log.Info("serving", "config", cfg.Path, "upstreams", len(g.Catalog.Upstreams()), "version", cli.BuildVersion())
	sv := &service{serveOptions: s, callers: f.callers, cfg: cfg, gateway: g, records: records, env: a.Env, directory: d.groups(), notices: notices, telemetry: watched, log: log, clientReady: make(chan struct{})}
	opts := &httpapi.Options{Version: cli.BuildVersion(), Kept: records != nil, Draining: func() bool { return ctx.Err() != nil }, Telemetry: watched, Logger: log}
	if sv.tasks, err = a.OpenTasks(g, cfg, records, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sv.tasks.Close()) }()
	opts.Tasks, opts.Plugins = sv.tasks, g.Plugins
	if records.Shared() {
		records.ReportLoad(loadOf(g))
		sv.cluster = cluster.New(records, cfg, "sallyport "+cli.BuildVersion())
		opts.Cluster = sv.cluster
	}
	if records != nil {
		if sv.workflows, err = a.openWorkflows(sv, records); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sv.workflows.Close()) }()
		opts.Workflows = sv.workflows.Engine
	} else if s.share && a.DataDir() != "" {
		sv.standby = &standby{app: a, load: load, log: log}
	}
	sv.openAPI(opts)
	sv.openKey(ctx, a.DataDir(), records)
	defer a.startBackground(ctx, sv, d, load)()
	if err := f.serve(ctx, sv); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// loadOf returns a function that returns the load of a gateway.
func loadOf(g *gateway.Gateway) func() store.Load {
	return func() store.Load {
		running, waiting := g.Executor.Load()
		return store.Load{Running: running, Waiting: waiting, Seats: g.Executor.Slots()}
	}
}

// openAPI makes the handler of the API.
func (s *service) openAPI(opts *httpapi.Options) {
	opts.Guides = func() map[string]string { return mcpserver.ToolDescriptions(s.gateway.Service(), s.tools()) }
	s.api = httpapi.New(s.rateLimitedService(""), opts)
	s.signalReady = sync.OnceFunc(func() { close(s.clientReady) })
}

// openKey opens the key of what clients carry between requests: that of all gateways which share a store, else one of its own.
func (s *service) openKey(ctx context.Context, dataDir string, records *store.Store) {
	var err error
	if records.Shared() {
		if s.key, err = statekey.Shared(ctx, records); err == nil {
			return
		}
		s.log.Warn("other gateways do not know the tasks and pending calls of this one's clients, until it is restarted", "error", err)
	}
	if s.key, err = statekey.Of(dataDir); err != nil {
		s.log.Warn("answers of clients are lost at a restart", "error", err)
	}
}

// listenerFor returns the function that serves clients over stdio or HTTP; d is the HTTP listener, nil for stdio.
func (a *app) listenerFor(ctx context.Context, s serveOptions, cfg *config.Config, who callers, log *slog.Logger) (serve func(context.Context, *service) error, d *httpListener, err error) {
	if s.http == "" {
		if cli.IsTerminal(a.Stdin) {
			a.Say(stdioHint(cfg))
		}
		return a.serveStdio, nil, nil
	}
	if cfg.HTTP.Problem != "" {
		return nil, nil, &cli.ConfigError{Err: errors.New(cfg.HTTP.Problem)}
	}
	if d, err = a.openListener(ctx, s.http, cfg.HTTP, who, log); err != nil {
		return nil, nil, err
	}
	return d.serve, d, nil
}

// startBackground starts the background work of a gateway that serves, until stop is called.
func (a *app) startBackground(ctx context.Context, s *service, d *httpListener, load func() (*config.Config, error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { s.gateway.Reloader.WatchSettings(ctx, load) })
	work.Go(func() { s.gateway.Auditor.MaintainAudit(ctx) })
	work.Go(func() {
		select {
		case <-s.clientReady:
			s.gateway.Executor.Warm(ctx)
		case <-ctx.Done():
		}
	})
	if s.workflows != nil {
		work.Go(func() { s.workflows.run(ctx) })
	}
	if s.standby != nil {
		work.Go(func() { s.standby.run(ctx) })
	}
	if s.callers.sealed != nil {
		work.Go(func() { checkSeal(ctx, s.callers.sealed, s.log) })
	}
	pages := a.newLocalPages(ctx, s, d)
	closeControl := a.OpenControl(s.log, pages.withLoginCodes(s.api))
	return func() {
		closeControl()
		cancel()
		pages.wait()
		work.Wait()
	}
}

// warnMissing logs what is not available.
func (a *app) warnMissing(cfg *config.Config, log *slog.Logger) {
	if a.DataDir() == "" {
		log.Warn("no audit record: there is no data directory")
	}
	if err := cli.Platform(cfg); err != nil {
		log.Warn("programs cannot be run here", "error", err)
	}
}

// service is a running gateway with the options of its servers.
type service struct {
	serveOptions

	callers callers
	cfg     *config.Config
	gateway *gateway.Gateway
	records *store.Store // nil without stored records
	api     http.Handler
	// env looks up the variables of the settings, directory has the groups of callers.
	env       func(string) (string, bool)
	directory *access.Directory
	// executions counts the programs of each principal over HTTP.
	executions *access.Limits
	// workflows are the workflows, nil if this process does not have the records.
	workflows *workflowService
	// cluster is what the gateway knows of its cluster, nil without one.
	cluster *cluster.Cluster
	// tasks works on tasks in words.
	tasks *task.Tasks
	// standby takes over the records when another process ends, nil if this process has them.
	standby *standby
	// key signs the state that clients return with an answer.
	key     []byte
	notices *mcpserver.Notices
	// telemetry collects traces and metrics.
	telemetry *telemetry.Telemetry
	log       *slog.Logger
	// signalReady closes listed. It is called when a client has listed the tools, and is likely to run programs soon.
	signalReady func()
	clientReady chan struct{}
}

func (s *service) tools() *mcpserver.Options {
	opts := cli.ToolOptions(s.cfg, s.gateway, s.log)
	if s.tasks != nil {
		opts.Tasks = s.tasks
	}
	opts.OnReady, opts.StateKey, opts.Telemetry, opts.Watch = s.signalReady, s.key, s.telemetry, s.gateway.Catalog.Watch
	return opts
}

// serveSingle serves one upstream to another gateway, which has all that stands before the tools.
func serveSingle(notices *mcpserver.Notices, log *slog.Logger) func(context.Context, catalog.SingleUpstream, io.ReadWriteCloser) error {
	return func(ctx context.Context, one catalog.SingleUpstream, conn io.ReadWriteCloser) error {
		self, err := one.Start(ctx)
		if err != nil {
			return err
		}
		if _, err := conn.Write([]byte("\n")); err != nil { // it is connected
			return err
		}
		return mcpserver.ServeConn(ctx, one, &mcpserver.DirectOptions{Version: cli.BuildVersion(), Logger: log, Protocol: cli.ProtocolLog(log), WireNames: true, As: &self, Notices: notices}, conn)
	}
}

// modeNow is modeOf with the settings in force.
func (s *service) modeNow(name, version string) config.Mode {
	return s.modeOf(s.gateway.Reloader.Current().Load(), name, version)
}

// direct returns the server of the modes direct and search of an endpoint of the settings, of all tools for ""; mode returns the
// mode of a client whose URL names none.
func (s *service) direct(endpoint string, mode mcpserver.ModeOf) *mcpserver.Direct {
	verbs := s.gateway.Service().At(endpoint)
	return mcpserver.NewDirect(verbs, &mcpserver.DirectOptions{
		Version: cli.BuildVersion(), Logger: s.log, Protocol: cli.ProtocolLog(s.log), WireNames: !s.prefix, Search: verbs, Mode: mode, Upstreams: s.gateway.View.Visible, Notices: s.notices, StateKey: s.key, Telemetry: s.telemetry,
	})
}

func (a *app) serveStdio(ctx context.Context, s *service) error {
	in, mode := mcpserver.OpenStdin(), s.modeNow("", "")
	if s.byClient(s.cfg) {
		mode = s.modeNow(in.Client(ctx))
		s.log.Debug("the client selects the mode", "mode", mode)
	}
	if mode == config.ModeCode {
		return mcpserver.ServeStdio(ctx, in, s.gateway.Service(), s.tools())
	}
	direct := s.direct("", func(string, string) config.Mode { return mode })
	defer direct.Close()
	return direct.ServeStdio(ctx, in)
}

// stdioHint is the message for a person who starts serve in a terminal.
func stdioHint(cfg *config.Config) string {
	self, err := os.Executable()
	if err != nil {
		self = "sallyport"
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		path = cfg.Path
	}
	return fmt.Sprintf("waiting for an MCP client on stdin; to add it to one: claude mcp add sallyport -- %s serve --share --config %s", self, path)
}
