// Package gateway is the middle of the house: it keeps one session to each
// upstream, the catalog of their tools, the wrappers and the search index made
// from it, and the host that runs programs. Its main type is [Gateway], with the
// verbs Search, Execute and Call. Whatever calls a tool (a program, a workflow, a
// face, the command line) does it through [Gateway.Call], where features are
// middleware; there is no other way to an upstream.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/catalog"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/privacy"
	"sallyport/gateway/replay"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Options configure a gateway; nil means all defaults.
type Options struct {
	// Logger gets what an operator should know, never arguments, results or secrets; nil discards.
	Logger *slog.Logger
	// Version is ours, as upstreams and clients see it; "" is "dev".
	Version string
	// Settle is how long after Open Search and Execute still wait for upstreams
	// that are connecting for the first time; 0 is 15 s.
	Settle time.Duration
	// CacheDir keeps between runs what each upstream offered; "" is none.
	CacheDir string
	// DataDir keeps what people own: their workspaces, in workspaces/; "" keeps nothing, and /workspace is for one program.
	DataDir string
	// Journals is where programs have their journals, with the results of their calls; "" is below DataDir.
	Journals string
	// Records keeps what happened (executions, sessions); nil keeps it in memory, until Close. Who opened it closes it,
	// after the gateway.
	Records *store.Store
	// Fresh connects to every upstream at once, also to those that the cache knows.
	Fresh bool
	// LockFile is where digests of tool definitions are pinned; "" pins nothing.
	LockFile string
	// Auth makes the authorizer of an upstream over HTTP, nil if it needs none; a nil Auth is for none.
	Auth func(up config.Upstream) upstream.Authorizer
	// Asks says that calls may come with a [tool.Peer] that can be asked.
	Asks bool
	// NoRoots says that none of them lists folders: a program has none of its client's.
	NoRoots bool
	// OnNotice gets what an upstream says outside of any call (notifications/resources/updated,
	// notifications/message), with the upstream's id. It must not block.
	OnNotice func(id, method string, params json.RawMessage)
	// NoPool keeps no sandbox ready for programs: for a process that runs one and ends.
	NoPool bool
	// Telemetry measures what happens and keeps traces of it; nil does not. Who opened it closes it, after the gateway.
	Telemetry *telemetry.Telemetry
	// Purpose is what the process is for, such as "serve"; it is put on record.
	Purpose string
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string

	secrets  *redact.Book                  // of the settings, and tokens in use; Open makes it
	openHost func() (executor.Host, error) // nil opens sandboxes as the settings say
}

// Gateway is one running gateway: its rooms, and the way of a call through them. It is safe for concurrent use, and so are its rooms.
type Gateway struct {
	// Privacy keeps personal data from models.
	Privacy *privacy.Tokenizer
	// Workspaces are the files that outlive programs, Environments the interpreters with packages.
	Workspaces   *workspaces.Workspaces
	Environments *environments.Environments
	// History has a record of each execution, Auditor one of whatever happens.
	History *history.History
	Auditor *auditor.Auditor
	// Approver asks people about calls, Guard decides which.
	Approver *approvals.Approver
	Guard    *guard.Guard
	// Catalog has what the upstreams offer, Searcher finds it, and Skills are programs that were saved.
	Catalog  *catalog.Catalog
	Searcher *toolsearch.Searcher
	Skills   *skills.Library
	// Executor runs programs in Sandboxes, and Replay resumes them.
	Executor  *executor.Executor
	Sandboxes *executor.Sandboxes
	Replay    *replay.Replay
	// Telemetry measures what happens; nil measures nothing.
	Telemetry *telemetry.Telemetry

	opts  Options
	log   *slog.Logger
	meter execution.Meter
	call  toolcall.Handler
	close func() error

	cfg       atomic.Pointer[config.Config] // in force
	started   *config.Config                // as it was opened
	reloading sync.Mutex
	settings  atomic.Pointer[Settings]
}

// Verbs are all verbs of a gateway, each from the room that has it, for what serves them to clients.
type Verbs struct {
	*Gateway
	*workspaces.Workspaces
	*environments.Environments
	*history.History
	*approvals.Approver
	*auditor.Auditor
	*guard.Guard
	*catalog.Catalog
	*toolsearch.Searcher
	*executor.Executor
	*skills.Library
}

// Verbs returns the verbs of all rooms.
func (g *Gateway) Verbs() Verbs {
	return Verbs{g, g.Workspaces, g.Environments, g.History, g.Approver, g.Auditor, g.Guard, g.Catalog, g.Searcher, g.Executor, g.Skills}
}

// Open starts a gateway: it begins to connect to every upstream and returns
// without waiting for them. Close it.
func Open(cfg *config.Config, opts *Options) (*Gateway, error) {
	if opts == nil {
		opts = &Options{}
	}
	g := &Gateway{opts: *opts, started: cfg, Telemetry: opts.Telemetry}
	g.opts.complete(cfg)
	g.log = g.opts.Logger
	if err := g.openRooms(cfg); err != nil {
		return nil, err
	}
	if err := g.openCatalog(cfg); err != nil {
		return nil, err
	}
	g.call = toolcall.Chain(trace(opts.Telemetry)(g.Catalog.Dispatch), measure(opts.Telemetry, g.Catalog.Has), logCalls(g.log),
		toolsearch.Answer(g.Catalog.Closed, g.Searcher.Builtins(), g.Skills.Builtins()), g.Catalog.Validate, g.Replay.Middleware, g.Guard.Middleware,
		g.Replay.Journal, g.Catalog.Learn, g.Searcher.Learn, g.Privacy.Middleware(g.Catalog.Attached))
	g.History.Start()
	g.close = sync.OnceValue(g.closeRooms)
	opts.Telemetry.Watch(gauges(g))
	return g, nil
}

// complete fills in defaults, and what all upstreams share.
func (o *Options) complete(cfg *config.Config) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Settle == 0 {
		o.Settle = 15 * time.Second
	}
	o.secrets = &redact.Book{}
	o.secrets.Set(cfg.Known())
	o.Logger = slog.New(o.secrets.For("").Handler(o.Logger.Handler()))
}

// Close stops running programs and every upstream, and waits for both. It is idempotent.
func (g *Gateway) Close() error { return g.close() }

// Call runs one tool. Its errors are *tool.Error; a tool that reports a failure
// itself is none, see [tool.Result].
func (g *Gateway) Call(ctx context.Context, c tool.Call) (result tool.Result, err error) {
	defer toolcall.Recover(ctx, g.log, c, &result, &err)
	c = executor.ForRun(ctx, c)
	result, err = g.call(ctx, c)
	if err != nil && tool.AsError(err).Kind == tool.Upstream && g.Catalog.Closed() {
		return tool.Result{}, toolcall.ClosedError() // the reason for whatever went wrong
	}
	return result, err
}
