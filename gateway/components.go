package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

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
	"sallyport/gateway/privacy"
	"sallyport/gateway/reload"
	"sallyport/gateway/replay"
	"sallyport/gateway/skills"
	"sallyport/gateway/timeline"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/budget"
	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/single"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/natsconn"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// openComponents opens the components that need no upstream, in order of dependency.
func (g *Gateway) openComponents(cfg *config.Config) (err error) {
	if g.Privacy, err = privacy.New(cfg, g.log); err != nil {
		return err
	}
	g.opts.OnNotice = redactLogs(g.Privacy, g.opts.OnNotice)
	if err = g.openSandboxes(); err != nil {
		return err
	}
	if g.Auditor, err = auditor.New(auditor.Options{
		DataDir: g.opts.DataDir, Version: g.opts.Version, Purpose: g.opts.Purpose, Records: g.opts.Records, Durable: g.opts.Records != nil,
		Settings: g.Reloader.Current(), Reloading: &g.reloading, Logger: g.log, Meter: &g.meter, Definition: func(id tool.ID) string { return g.Catalog.Digest(id) },
		Redact: func(text string) string { return g.Privacy.Redact(g.opts.secrets.For("").Text(text)) }, CountApproval: g.Telemetry.RecordApproval,
	}); err != nil {
		return err
	}
	if err = g.openRecords(g.opts.Records); err != nil {
		return err
	}
	rules, err := g.Guard.Compile(cfg)
	if err != nil {
		return err
	}
	g.Guard.Apply(rules)
	return nil
}

// openSandboxes creates the components that programs run in. The sandboxes themselves are opened when the first program needs them.
func (g *Gateway) openSandboxes() (err error) {
	g.Sandboxes = executor.NewSandboxes(executor.SandboxOptions{
		Settings: g.Reloader.Current(), Logger: g.log, Version: g.opts.Version, Snapshots: g.opts.Snapshots, DebugLog: g.opts.DebugLog, NoPool: g.opts.NoPool,
		Open: g.opts.openHost,
	})
	if g.Workspaces, err = workspaces.New(workspaces.Options{
		Records: g.opts.Records, DataDir: g.opts.DataDir, CacheDir: g.opts.CacheDir, LockFile: g.opts.LockFile, Settings: g.Reloader.Current(), Directory: g.opts.Directory, Logger: g.log,
		Watch: func(ctx context.Context, ws workspaces.Space, name string) workspaces.Space {
			return g.Guard.WatchFiles(ctx, ws, name, nil)
		},
	}); err != nil {
		return err
	}
	g.Environments = environments.New(environments.Options{
		Settings: g.Reloader.Current(), CacheDir: g.opts.CacheDir, DataDir: g.opts.DataDir, Records: g.opts.Records, Logger: g.log, Sandboxes: g.Sandboxes, Packages: g.Sandboxes.Packages, Usage: g.Workspaces.Usage, Writable: g.Workspaces.Writable,
		MayInstall: func(ctx context.Context) error { return g.Guard.MayInstall(ctx) },
	})
	g.isolated = isolation.New(isolation.Options{
		Sandboxes: g.Sandboxes, Installer: g.Environments, Images: environments.ImagesOf(g.Environments), DataDir: g.opts.DataDir, Checkpoints: environments.CheckpointDir(g.opts.CacheDir), Profile: g.opts.Profile, Logger: g.log,
	})
	return nil
}

// openCatalog opens the catalog and the components that need it, and begins to connect to the upstreams.
func (g *Gateway) openCatalog(cfg *config.Config) (err error) {
	personAuth, await := g.openConnections()
	once, err := g.openSingle(cfg)
	if err != nil {
		return err
	}
	if g.Catalog, err = catalog.Open(catalog.Options{
		Settings: g.Reloader.Current(), Logger: g.log, Version: g.opts.Version, ConnectWait: g.opts.ConnectWait, CacheDir: g.opts.CacheDir, Fresh: g.opts.Fresh, LockFile: g.opts.LockFile, Records: g.opts.Records,
		Auth: g.opts.Auth, PersonAuth: personAuth, Login: await, Asks: g.opts.PeerRequests, NoRoots: g.opts.NoRoots, OnNotice: g.opts.OnNotice, Budget: budget.New(0), Secrets: g.opts.secrets, Renew: g.Reloader.RenewSecrets, Isolate: g.isolated, Single: once,
		Publish: g.Sandboxes.Publish, Restore: g.Privacy.Arguments, Audit: g.Auditor.Audit,
	}); err != nil {
		return err
	}
	g.Guard.Catalog = g.Catalog
	g.View = &confine.View{Endpoints: g.Endpoints, Catalog: g.Catalog, Policy: g.Guard, Groups: g.opts.Directory.Groups}
	if g.Skills, err = skills.New(skills.Options{
		Records: g.opts.Records, Serving: g.opts.Purpose == "serve", DataDir: g.opts.DataDir, Settings: g.Reloader.Current(), Logger: g.log, Catalog: g.Catalog, Environments: g.Environments, History: g.History, Auditor: g.Auditor, Guard: g.Guard, Directory: g.opts.Directory,
	}); err != nil {
		return err
	}
	g.Replay = replay.New(replay.Options{Settings: g.Reloader.Current(), Logger: g.log, Catalog: g.Catalog, History: g.History, Guard: g.Guard, Privacy: g.Privacy})
	g.Searcher, err = toolsearch.New(toolsearch.Options{
		Catalog: g.Catalog, Guard: g.Guard, Endpoints: g.Endpoints, Upstreams: g.View.Visible, Skills: g.Skills, Logger: g.log, CacheDir: g.opts.CacheDir, Records: g.opts.Records, Meter: &g.meter, Telemetry: g.Telemetry,
		Problem: func() string { return reload.Summary(g.Reloader.Settings()) },
	}, cfg.Search)
	if err != nil {
		return err
	}
	g.Executor, err = executor.New(executor.Options{
		Settings: g.Reloader.Current(), Logger: g.log, Sandboxes: g.Sandboxes, Secrets: g.opts.secrets.For(""), Records: g.opts.Records, Telemetry: g.Telemetry,
		Catalog: g.Catalog, Workspaces: g.Workspaces, Environments: g.Environments, History: g.History, Approver: g.Approver, Auditor: g.Auditor,
		Guard: g.Guard, Budgets: g.Budgets, Replay: g.Replay, Skills: g.Skills, Endpoints: g.Endpoints, Upstreams: g.View.Visible, Call: g.Call,
		Check: func(ctx context.Context, code, language string) error { return g.Plugins.Check(ctx, code, language) },
	})
	if err != nil {
		return err
	}
	g.Skills.Executor, g.Completer, g.Drafts = g.Executor, toolsearch.NewCompleter(g.Searcher), executor.NewDrafts(g.Executor)
	return nil
}

// openSingle returns what decides which gateway of the store runs an upstream with instances: one; nil if this is the only gateway.
func (g *Gateway) openSingle(cfg *config.Config) (once upstream.Single, err error) {
	if !g.opts.Records.Shared() || g.opts.ServeSingle == nil {
		return nil, nil
	}
	g.single, err = single.New(single.Options{
		Server: natsconn.Of(cfg.Store, "sallyport "+g.opts.Version), Prefix: cfg.Store.Prefix, Records: g.opts.Records, Logger: g.log,
		Serve: func(ctx context.Context, id string, conn io.ReadWriteCloser) error {
			return g.opts.ServeSingle(ctx, catalog.NewSingleUpstream(g.Catalog, id), conn)
		},
	})
	return g.single, err
}

// openConnections opens the logins of principals, and returns what the catalog needs of them; nil without Options.PersonAuth.
func (g *Gateway) openConnections() (auth func(up config.Upstream, principal string) upstream.Authorizer, await func(context.Context, config.Upstream, tool.Call, time.Time) error) {
	if g.opts.PersonAuth == nil {
		return nil, nil
	}
	g.Connections = connections.New(connections.Options{
		Attempts: pendingLogins(g.opts.Records, g.log),
		Settings: g.Reloader.Current(), Site: g.opts.Site, Audit: g.Auditor.Audit, Logger: g.log,
		Connect: func(ctx context.Context, id string) error { return g.Catalog.Connect(ctx, id) },
		Login:   func(up config.Upstream, principal string) connections.Login { return g.opts.PersonAuth(up, principal) },
	})
	g.opts.Subjects.Use(g.Connections.KeepsTokensOf, g.Connections.ForgetExchanged)
	return func(up config.Upstream, principal string) upstream.Authorizer {
		login := g.opts.PersonAuth(up, principal)
		if h, ok := login.(*oauth.Handler); ok {
			h.OnExchange(func(ctx context.Context) { g.Connections.Exchanged(ctx, up.ID, principal) })
		}
		return login
	}, g.Connections.Await
}

// pendingLogins returns the logins that have begun at any gateway of a shared store with a key, else nil.
func pendingLogins(in *store.Store, log *slog.Logger) oauth.Records {
	records, err := sharedrecords.OpenSealed(in, "pending_logins", store.Limits{Records: 10_000, Record: 64 << 10, Age: 15 * time.Minute})
	if err != nil {
		log.Error("logins end at the gateway where they begin", "error", err)
	}
	if records == nil {
		return nil
	}
	return records
}

// closeComponents stops running programs and then closes the components in reverse order of dependency.
func (g *Gateway) closeComponents() error {
	g.Executor.Close()
	if g.Plugins != nil {
		g.Plugins.Close()
	}
	g.Privacy.Close()
	g.Sandboxes.EndPrograms() // before their upstreams end
	err := g.Catalog.Close()  // before the sandboxes of upstreams
	if g.single != nil {
		err = errors.Join(err, g.single.Close())
	}
	g.isolated.Close()
	g.Environments.Close()
	err = errors.Join(err, g.Sandboxes.Close())
	g.Approver.Close()
	g.Alerts.Close()
	g.Workspaces.Close()
	g.History.Close()
	g.Timeline.Close()
	return errors.Join(err, g.Budgets.Close(), g.Searcher.Close(), g.Skills.Close(), g.Auditor.Close())
}

// redactLogs wraps pass: it removes personal data from log messages of upstreams first.
func redactLogs(tokenizer *privacy.Tokenizer, pass func(id, method string, params json.RawMessage)) func(id, method string, params json.RawMessage) {
	if pass == nil {
		return nil
	}
	return func(id, method string, params json.RawMessage) {
		if method == "notifications/message" {
			params = tokenizer.RedactNotice(id, params)
		}
		pass(id, method, params)
	}
}

// openRecords opens the components that use the store; nil keeps their records in memory.
func (g *Gateway) openRecords(in *store.Store) (err error) {
	if err = g.Privacy.UseStore(in); err != nil {
		return err
	}
	if g.Timeline, err = timeline.Open(timeline.Options{
		Records: in, Logger: g.log, Load: func() (running, waiting int) { return g.Executor.Load() },
	}); err != nil {
		return err
	}
	if g.History, err = history.Open(history.Options{
		DataDir: g.opts.DataDir, Journals: g.opts.Journals, Records: in, Settings: g.Reloader.Current(), EstimateTokens: g.opts.NoPool, Logger: g.log, Meter: &g.meter,
		OnRecord: func(r history.Record) {
			g.Timeline.AddProgram(timeline.Program{Status: r.Status, Ended: r.Started.Add(r.Duration), Duration: r.Duration, Client: r.Client})
		},
		OnTaken: g.Auditor.Audit,
		OnTokens: func(answered, read int) { // called some time after the execution, when its tokens are counted
			g.Telemetry.RecordTokens(context.Background(), "execute", answered, read)
		},
		Resources: resources(g),
	}); err != nil {
		return err
	}
	if err = g.openAlerts(in); err != nil {
		return err
	}
	if g.Approver, err = approvals.Open(approvals.Options{
		Records: in, Settings: g.Reloader.Current(), Logger: g.log, Record: g.Auditor.RecordApproval, Changed: g.Alerts.Approval, Definition: func(id tool.ID) string { return g.Catalog.Digest(id) }, Closing: g.Sandboxes.Closing,
	}); err != nil {
		return err
	}
	g.History.RebuildWith(g.Approver.Book)
	if g.Budgets, err = budgets.Open(budgets.Options{
		Settings: g.Reloader.Current(), Records: in, Directory: g.opts.Directory, Logger: g.log,
		OnSpend: g.Timeline.AddMoney,
		OnRefusal: func(ctx context.Context, r budgets.Refusal) {
			g.Telemetry.RecordRefusal(ctx, "budget")
			g.Alerts.Budget(r.Budget, r.Principal, r.Resource.String())
		},
	}); err != nil {
		return err
	}
	g.Guard, err = guard.New(guard.Options{
		Settings: g.Reloader.Current(), Records: in, Logger: g.log, Telemetry: g.Telemetry, Privacy: g.Privacy, Workspaces: g.Workspaces, Approver: g.Approver, Auditor: g.Auditor, Directory: g.opts.Directory,
	})
	return err
}

// resources returns a function that lists, one per line, the resources that a caller uses now.
func resources(g *Gateway) func(ctx context.Context) []string {
	return func(ctx context.Context) (lines []string) {
		if used, err := g.Workspaces.Usage(ctx, g.Executor.Limits(execution.Program{})); err == nil && used != "" {
			lines = append(lines, used)
		}
		if n := len(g.Skills.Modules(ctx)); n > 0 {
			lines = append(lines, fmt.Sprintf("skills: %d", n))
		}
		return append(lines, fmt.Sprintf("idle sandboxes: %d Python, %d TypeScript", g.Sandboxes.Waiting(sandbox.Python), g.Sandboxes.Waiting(sandbox.Node)))
	}
}
