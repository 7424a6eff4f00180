// Package gateway connects the components of the gateway: one session per
// upstream, the catalog of their tools, the wrappers and the search index
// generated from it, and the sandbox host that runs programs. Its main type is
// [Gateway]. Every tool call (by a program, a workflow, a server or the command
// line) goes through [Gateway.Call], where each feature is a middleware; there is
// no other path to an upstream.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"sallyport/gateway/alerts"
	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/budgets"
	"sallyport/gateway/catalog"
	"sallyport/gateway/confine"
	"sallyport/gateway/connections"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/isolation"
	"sallyport/gateway/plugin"
	"sallyport/gateway/privacy"
	"sallyport/gateway/reload"
	"sallyport/gateway/replay"
	"sallyport/gateway/skills"
	"sallyport/gateway/timeline"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/single"
	"sallyport/gateway/workspaces"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Options configure a gateway; nil means all defaults.
type Options struct {
	// Logger gets messages for the operator, never arguments, results or secrets; nil discards them.
	Logger *slog.Logger
	// Version is the gateway's version, as upstreams and clients see it; "" is "dev".
	Version string
	// ConnectWait is how long after Open the methods Search and Execute wait for
	// upstreams that are connecting for the first time; 0 is 15 s.
	ConnectWait time.Duration
	// CacheDir caches the definitions of each upstream between processes; "" disables the cache.
	CacheDir string
	// Snapshots is the directory for snapshots of started interpreters; "" is snapshots/ in CacheDir, if there is one.
	Snapshots string
	// DataDir stores user data, such as workspaces in workspaces/; with "" nothing is stored, and /workspace lasts for one program.
	DataDir string
	// Journals is the directory of the programs' journals, which hold the results of their calls; "" is below DataDir.
	Journals string
	// Records stores executions and sessions; nil keeps them in memory, until Close. The caller closes it after the
	// gateway.
	Records *store.Store
	// Fresh connects to every upstream immediately, also to cached ones.
	Fresh bool
	// LockFile is the file that pins digests of tool definitions; "" pins nothing.
	LockFile string
	// Auth returns the authorizer of an HTTP upstream, or nil if it needs none. A nil Auth authorizes no upstream.
	Auth func(up config.Upstream) upstream.Authorizer
	// PersonAuth returns the login of a principal at an HTTP upstream, of "" the one that all share. With nil, all principals
	// share one login.
	PersonAuth func(up config.Upstream, principal string) oauth.Authorizer
	// Subjects keeps the tokens with which principals sign in, for upstreams that exchange them; nil for none.
	Subjects *access.Subjects
	// ManagedSecrets renews the secrets of secret managers; nil renews none.
	ManagedSecrets reload.ManagedSecrets
	// Site is the address of the gateway's pages, without a path; "" if it serves none.
	Site string
	// Directory has the groups of principals of OpenID providers; nil knows none.
	Directory *access.Directory
	// PeerRequests says that calls may have a [tool.Peer], which answers requests of upstreams.
	PeerRequests bool
	// NoRoots says that no peer lists roots, so programs get no folders of the client.
	NoRoots bool
	// OnNotice gets notifications that an upstream sends outside of calls (notifications/resources/updated,
	// notifications/message), with the upstream's id. It must not block.
	OnNotice func(id, method string, params json.RawMessage)
	// ServeSingle serves an upstream with instances: one, whose process runs here, to another gateway of the store over MCP, until
	// the connection ends. Nil runs the processes of all upstreams here.
	ServeSingle func(ctx context.Context, one catalog.SingleUpstream, conn io.ReadWriteCloser) error
	// NoPool disables the pool of idle sandboxes, for a process that runs one program and exits.
	NoPool bool
	// Telemetry records metrics and traces; nil records nothing. The caller closes it after the gateway.
	Telemetry *telemetry.Telemetry
	// Purpose is the purpose of the process, such as "serve"; it is recorded in the audit log.
	Purpose string
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string
	// Profile gets what isolated upstreams are refused; nil is none.
	Profile *isolation.Profile

	secrets  *redact.Book                  // of the settings, and tokens in use; set by Open
	openHost func() (executor.Host, error) // nil opens sandboxes by the settings
}

// Gateway is a running gateway: its components, and the handler chain of calls. It and its components are safe for concurrent use.
type Gateway struct {
	// Privacy keeps personal data from models.
	Privacy *privacy.Tokenizer
	// Workspaces holds the files that outlive programs, Environments the interpreters with packages.
	Workspaces   *workspaces.Workspaces
	Environments *environments.Environments
	// History stores a record of each execution, Auditor writes the audit log.
	History *history.History
	Auditor *auditor.Auditor
	// Timeline counts programs and calls over time.
	Timeline *timeline.Timeline
	// Approver asks people about calls, Guard decides which.
	Approver *approvals.Approver
	Guard    *guard.Guard
	// Budgets count what principals use in a day.
	Budgets *budgets.Budgets
	// Alerts tells receivers of what needs a person.
	Alerts *alerts.Alerts
	// Catalog holds the tools of the upstreams, Searcher searches them, and Skills holds saved programs.
	Catalog  *catalog.Catalog
	Searcher *toolsearch.Searcher
	Skills   *skills.Library
	// Completer and Drafts help people to write programs.
	Completer toolsearch.Completer
	Drafts    *executor.Drafts
	// Executor runs programs in Sandboxes, and Replay resumes them.
	Executor  *executor.Executor
	Sandboxes *executor.Sandboxes
	Replay    *replay.Replay
	// Connections holds the logins at upstreams; nil without Options.PersonAuth.
	Connections *connections.Connections
	// Plugins runs the plugins of the operator.
	Plugins *plugin.Plugins
	// Endpoints decides which tools exist for callers at endpoints of the settings, View which upstreams they see.
	Endpoints *confine.Endpoints
	View      *confine.View
	// Telemetry records metrics and traces; nil records nothing.
	Telemetry *telemetry.Telemetry
	// Reloader holds the settings in force.
	Reloader *reload.Reloader

	opts      Options
	log       *slog.Logger
	isolated  *isolation.Launcher
	single    *single.Runner // nil without a store that gateways share
	meter     execution.Meter
	private   toolcall.Middleware // keeps personal data from models
	call      toolcall.Handler
	close     func() error
	reloading sync.Mutex // held while other settings are put into force
}

// Service combines the methods of all components of a gateway, for the servers that expose them to clients.
type Service struct {
	*Gateway
	*reload.Reloader
	*confine.View
	*workspaces.Workspaces
	*environments.Environments
	*history.History
	*approvals.Approver
	*auditor.Auditor
	*guard.Guard
	*budgets.Budgets
	*catalog.Catalog
	*toolsearch.Searcher
	*executor.Executor
	*skills.Library
	*timeline.Timeline

	endpoint string
}

// Service returns the combined methods of all components.
func (g *Gateway) Service() Service {
	return Service{g, g.Reloader, g.View, g.Workspaces, g.Environments, g.History, g.Approver, g.Auditor, g.Guard, g.Budgets, g.Catalog, g.Searcher, g.Executor, g.Skills, g.Timeline, ""}
}

// Open starts a gateway. It begins to connect to every upstream and returns
// without waiting for them. The caller must close the gateway.
func Open(cfg *config.Config, opts *Options) (*Gateway, error) {
	if opts == nil {
		opts = &Options{}
	}
	g := &Gateway{opts: *opts, Endpoints: &confine.Endpoints{}, Telemetry: opts.Telemetry}
	g.Endpoints.Apply(cfg)
	g.opts.complete(cfg)
	g.log = g.opts.Logger
	g.Reloader = reload.New(cfg, reload.Options{Logger: g.log, Apply: g.Reload, Managed: opts.ManagedSecrets, Secrets: g.opts.secrets})
	if err := g.openComponents(cfg); err != nil {
		return nil, err
	}
	if err := g.openCatalog(cfg); err != nil {
		return nil, err
	}
	if err := g.openPlugins(); err != nil {
		return nil, errors.Join(err, g.closeComponents())
	}
	g.call = toolcall.Chain(trace(opts.Telemetry)(g.Catalog.Dispatch), measure(opts.Telemetry, g.Catalog.Has), g.Timeline.CountCalls, logCalls(g.log),
		toolsearch.Answer(g.Catalog.Closed, g.Searcher.Builtins(), g.Skills.Builtins()), toolcall.Confine, g.Endpoints.Middleware(g.Catalog), g.Catalog.Validate, g.Plugins.Middleware(g.Catalog.Validate), g.Replay.Middleware, g.Budgets.Middleware, g.Guard.Middleware, budgets.CountMade,
		g.Replay.Journal, g.Timeline.MeasureCalls, g.Catalog.Learn, g.Searcher.Learn, g.private)
	g.History.Start()
	g.Timeline.Start()
	if opts.Purpose == "serve" {
		g.Workspaces.Start()
		g.Alerts.Watch(func() []alerts.Upstream { return upstreamStates(g.Catalog) }, func() []alerts.Held { return heldTools(g.Catalog) })
	}
	g.close = sync.OnceValue(g.closeComponents)
	opts.Telemetry.Watch(gauges(g))
	return g, nil
}

// complete sets defaults, and the values that all upstreams share.
func (o *Options) complete(cfg *config.Config) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ConnectWait == 0 {
		o.ConnectWait = 15 * time.Second
	}
	if o.Snapshots == "" && o.CacheDir != "" {
		o.Snapshots = filepath.Join(o.CacheDir, "snapshots")
	}
	o.secrets = &redact.Book{}
	o.secrets.Set(cfg.SecretValues())
	o.Logger = slog.New(o.secrets.For("").Handler(o.Logger.Handler()))
}

// Close stops running programs and every upstream, and waits for both. It is idempotent.
func (g *Gateway) Close() error { return g.close() }

// Call runs one tool. Its errors are *tool.Error; a failure that the tool itself
// reports is not an error, see [tool.Result].
func (g *Gateway) Call(ctx context.Context, c tool.Call) (result tool.Result, err error) {
	defer toolcall.Recover(ctx, g.log, c, &result, &err)
	if toolcall.ExecutionOf(ctx) == nil && toolcall.ScopeOf(ctx).Run == "" { // what has begun may end
		if err := toolcall.Unavailable(g.opts.Records.Available()); err != nil {
			return tool.Result{}, err
		}
	}
	c = executor.ForRun(ctx, c)
	result, err = g.call(ctx, c)
	if err != nil && tool.AsError(err).Kind == tool.Upstream && g.Catalog.Closed() {
		return tool.Result{}, toolcall.ClosedError() // whatever failed, this is the cause
	}
	return result, err
}
