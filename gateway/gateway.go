// Package gateway is the middle of the house: it keeps one session to each
// upstream, the catalog of their tools, the wrappers and the search index made
// from it, and the host that runs programs. Its main type is [Gateway], with the
// verbs Search, Execute and Call. Whatever calls a tool (a program, a workflow, a
// face, the command line) does it through [Gateway.Call], where features are
// middleware; nothing else reaches an upstream.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/privacy"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/upstream"
	"sallyport/gateway/workspaces"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/mask"
	"sallyport/internal/plain"
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
	// OnNotice hears what an upstream says outside of any call (notifications/resources/updated,
	// notifications/message), with the upstream's id. It must not block.
	OnNotice func(id, method string, params json.RawMessage)
	// NoPool has no sandbox wait for programs: for somebody who runs one and goes.
	NoPool bool
	// Telemetry measures what happens and keeps traces of it; nil does not. Who opened it closes it, after the gateway.
	Telemetry *telemetry.Telemetry
	// Purpose is what the process is for, such as "serve"; it is put on record.
	Purpose string
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string

	budget  *upstream.Budget // of the large messages of all upstreams; Open makes it
	secrets *mask.Book       // of the settings, and tokens in use; Open makes it
}

// Gateway is one running gateway. All methods are safe for concurrent use.
type Gateway struct {
	cfg     atomic.Pointer[config.Config]
	opts    Options
	patient atomic.Pointer[time.Time] // until then the upstreams' first connection is waited for
	log     *slog.Logger
	catalog *catalog
	// functions is the index of what programs can import from "sallyport".
	functions *index.Index
	// meter counts tokens.
	meter        execution.Meter
	aids         aids
	runner       *runner
	checks       *checks
	Environments *environments.Environments
	skills       *skills
	// Workspaces are the files that outlive programs.
	Workspaces *workspaces.Workspaces
	// lives are the executions that go on, admission lets them begin.
	lives     lives
	admission admission
	// hide keeps secrets out of what programs print.
	hide *mask.Mask
	// sessions are the sessions that programs have named.
	sessions *sessions
	// recorder has a record of each execution.
	History *history.History
	// auditor puts on record what happens.
	Auditor *auditor.Auditor
	// Privacy keeps personal data from models.
	Privacy *privacy.Tokenizer
	// approvals are what people are asked about calls.
	Approver *approvals.Approver
	// policies decide about calls, flows are what has been read.
	Guard *guard.Guard
	call  toolcall.Handler
	close func() error

	started   *config.Config // as it was opened
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
}

// Verbs returns the verbs of all rooms.
func (g *Gateway) Verbs() Verbs {
	return Verbs{g, g.Workspaces, g.Environments, g.History, g.Approver, g.Auditor, g.Guard}
}

// Open starts a gateway: it begins to connect to every upstream and returns
// without waiting for them. Close it.
func Open(cfg *config.Config, opts *Options) (*Gateway, error) {
	if opts == nil {
		opts = &Options{}
	}
	g := &Gateway{opts: *opts, started: cfg}
	g.opts.complete(cfg)
	g.log, g.hide = g.opts.Logger, g.opts.secrets.For("")
	g.skills = newSkills(g.opts.DataDir)
	if err := g.openRooms(cfg); err != nil {
		return nil, err
	}
	if err := g.openCatalog(cfg); err != nil {
		return nil, err
	}
	g.call = toolcall.Chain(g.sent(g.dispatch), g.measured, g.logged, g.owned, g.checked, g.replayed, g.Guard.Middleware, g.journaled, g.observed, g.followed, g.Privacy.Middleware(g.catalog.attached))
	g.History.Start()
	g.close = sync.OnceValue(g.closeRooms)
	g.aid(cfg.Search)
	opts.Telemetry.Watch(g.state)
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
	o.secrets, o.budget = &mask.Book{}, upstream.NewBudget(0)
	o.secrets.Set(cfg.Known())
	o.Logger = slog.New(o.secrets.For("").Handler(o.Logger.Handler()))
}

// Close stops running programs and every upstream, and waits for both. It is idempotent.
func (g *Gateway) Close() error { return g.close() }

// Call runs one tool. Its errors are *tool.Error; a tool that reports a failure
// itself is none, see [tool.Result].
func (g *Gateway) Call(ctx context.Context, c tool.Call) (result tool.Result, err error) {
	defer g.recovered(ctx, c, &result, &err)
	c = ofRun(ctx, c)
	result, err = g.call(ctx, c)
	if err != nil && tool.AsError(err).Kind == tool.Upstream && g.catalog.over() {
		return tool.Result{}, toolcall.ClosedError() // the reason for whatever went wrong
	}
	return result, err
}

// recovered makes an error of a panic during a call: it would end the programs of all others, too. It is deferred.
func (g *Gateway) recovered(ctx context.Context, c tool.Call, result *tool.Result, err *error) {
	if cause := recover(); cause != nil {
		g.log.ErrorContext(ctx, "panic during a call", "tool", c.Tool, "panic", cause, "stack", string(debug.Stack()))
		*result, *err = tool.Result{}, &tool.Error{Kind: tool.Internal, Message: "the gateway failed during the call", Hint: "it may have been done; the operator's log has the reason"}
	}
}

// dispatch is the end of the chain: the upstream's session.
func (g *Gateway) dispatch(ctx context.Context, c tool.Call) (tool.Result, error) {
	for {
		m, err := g.catalog.member(c.Tool.Upstream)
		if err != nil {
			return tool.Result{}, err
		}
		if !m.calls.begin() {
			continue // the settings have just put another in its place, or it closes
		}
		if m.own == nil {
			return m.call(ctx, c)
		}
		done, err := yield(ctx)
		if err != nil {
			m.calls.end()
			return tool.Result{}, err
		}
		defer done()
		return m.call(ctx, c)
	}
}

// yield gives up the turn of the program that makes the call, if one does, until done is called.
func yield(ctx context.Context) (done func(), err error) {
	if r := toolcall.ExecutionOf(ctx); r != nil && r.Yield != nil {
		return r.Yield()
	}
	return func() {}, nil
}

// Settle waits until every upstream has been tried once, or the time for that is over.
func (g *Gateway) Settle(ctx context.Context) { g.settle(ctx, "") }

// settle is Settle for one upstream, or for all for "".
func (g *Gateway) settle(ctx context.Context, id string) {
	ctx, cancel := context.WithDeadline(ctx, *g.patient.Load())
	defer cancel()
	g.catalog.settle(ctx, id)
}

// Tools returns all tools known now, sorted by id.
func (g *Gateway) Tools() []tool.Tool { return slices.Clone(g.catalog.current().tools) }

// Tree returns the files of the servers/ tree by their slash-separated paths.
func (g *Gateway) Tree() map[string][]byte { return maps.Clone(g.catalog.current().files()) }

// Upstream tells how one upstream stands.
type Upstream struct {
	ID          string
	Name        string
	Description string
	State       upstream.State
	// Held is how many of its tools are quarantined; they do not count as tools.
	Held int
	// Known says that it is known what it offers, in this run or from an earlier one.
	Known bool
	// Arriving says that searches do not have what it offers yet.
	Arriving bool
	// Cached says that what is known of it is of an earlier run: it was not connected in this one.
	Cached bool
}

// Problem says why an upstream is not available, "" if it is: in one line, fit to be shown.
func (u Upstream) Problem() string {
	switch {
	case u.Arriving && u.State.Error == "" && u.State.Status != upstream.Closed:
	case u.State.Status == upstream.Ready, u.State.Error == "" && u.Known && u.State.Status != upstream.Closed:
		return "" // a call starts it
	case u.State.Error != "":
		why := strings.TrimPrefix(u.State.Error, "cannot connect to upstream "+u.ID+": ")
		return plain.Line(strings.TrimPrefix(why, "upstream "+u.ID+" needs authorization: "), 200)
	case u.State.Status == upstream.Closed:
		return "closed"
	}
	return "still connecting"
}

// Upstreams returns the state of every upstream that is not disabled, in the order of the settings.
func (g *Gateway) Upstreams() []Upstream { return g.catalog.upstreams() }

func enabled(cfg *config.Config) []config.Upstream {
	var ups []config.Upstream
	for _, up := range cfg.Upstreams {
		if !up.Disabled {
			ups = append(ups, up)
		}
	}
	return ups
}
