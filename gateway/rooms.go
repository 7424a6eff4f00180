package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/environments"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/privacy"
	"sallyport/gateway/typecheck"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/store"
)

// openRooms opens the rooms that need no upstream, those below first.
func (g *Gateway) openRooms(cfg *config.Config) (err error) {
	if g.Privacy, err = privacy.New(cfg, g.log); err != nil {
		return err
	}
	g.opts.OnNotice = redactLogs(g.Privacy, g.opts.OnNotice)
	g.adopt(cfg)
	g.openSandboxes(cfg)
	if g.Auditor, err = auditor.New(auditor.Options{
		DataDir: g.opts.DataDir, Version: g.opts.Version, Purpose: g.opts.Purpose, Records: g.opts.Records, Durable: g.opts.Records != nil,
		Settings: &g.cfg, Reloading: &g.reloading, Logger: g.log, Meter: &g.meter, Definition: g.definition, Redact: g.withoutPrivate, Asked: g.opts.Telemetry.Asked,
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

// openSandboxes prepares what programs run in. The sandboxes themselves are opened when the first program needs them.
func (g *Gateway) openSandboxes(cfg *config.Config) {
	sandboxes := func() config.Sandbox { return g.cfg.Load().Sandbox }
	g.runner = newRunner(g.openHost)
	g.admission = admission{parallel: cmp.Or(cfg.Sandbox.Parallel, config.Default().Sandbox.Parallel), limits: sandboxes}
	g.checks = &checks{runner: g.runner, settings: sandboxes, log: g.log, checkers: map[checkerKey]*typecheck.Checker{}}
	g.runner.shown = g.checks.show
	g.Workspaces = workspaces.New(workspaces.Options{
		DataDir: g.opts.DataDir, CacheDir: g.opts.CacheDir, LockFile: g.opts.LockFile, Settings: &g.cfg, Logger: g.log,
		Watch: func(ctx context.Context, ws workspaces.Space, name string) workspaces.Space {
			return g.Guard.WatchFiles(ctx, ws, name, nil)
		},
	})
	g.Environments = environments.New(environments.Options{
		Settings: &g.cfg, CacheDir: g.opts.CacheDir, Logger: g.log, Sandboxes: g.runner, Usage: g.Workspaces.Usage,
		MayInstall: func(ctx context.Context) error { return g.Guard.MayInstall(ctx) },
	})
}

// openCatalog opens what is searched, and begins to connect to the upstreams.
func (g *Gateway) openCatalog(cfg *config.Config) (err error) {
	if g.functions, err = functionIndex(); err != nil {
		return err
	}
	if g.catalog, err = openCatalog(cfg, g.opts, g.runner.publish); err != nil {
		return errors.Join(err, g.functions.Close())
	}
	g.Guard.Catalog = definitions{g.catalog}
	return nil
}

// closeRooms ends what runs, then the rooms from the top down.
func (g *Gateway) closeRooms() error {
	g.checks.close()
	g.Privacy.Close()
	g.Environments.Close()
	err := g.runner.close()
	g.Approver.Close()
	g.History.Close()
	return errors.Join(err, g.catalog.close(), g.aids.close(), g.functions.Close(), g.skills.close(), g.Auditor.Close())
}

// redactLogs removes personal data from log messages of upstreams before they are passed on.
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

// openRecords opens what is kept in the store; in memory, for nil.
func (g *Gateway) openRecords(in *store.Store) (err error) {
	if err = g.Privacy.ShareNumbers(in); err != nil {
		return err
	}
	if g.History, err = history.Open(history.Options{
		DataDir: g.opts.DataDir, Journals: g.opts.Journals, Records: in, Settings: &g.cfg, Hasty: g.opts.NoPool, Logger: g.log, Meter: &g.meter, Spent: g.spent,
	}); err != nil {
		return err
	}
	if g.Approver, err = approvals.Open(approvals.Options{
		Records: in, Settings: &g.cfg, Logger: g.log, Record: g.Auditor.RecordApproval, Definition: g.definition, Closing: g.runner.closing,
	}); err != nil {
		return err
	}
	g.History.RebuildWith(g.Approver.Book)
	if g.Guard, err = guard.New(guard.Options{
		Settings: &g.cfg, Records: in, Logger: g.log, Telemetry: g.opts.Telemetry, Privacy: g.Privacy, Workspaces: g.Workspaces, Approver: g.Approver, Auditor: g.Auditor,
	}); err != nil {
		return err
	}
	g.sessions, err = openSessions(in)
	return err
}
