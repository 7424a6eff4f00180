// Package executor runs programs in sandboxes: it admits them, checks their types, makes their calls on behalf of their caller, and
// lists the running ones. Its main types are [Executor] and [Sandboxes], which opens the sandbox host when a program needs it.
package executor

import (
	"cmp"
	"context"
	"log/slog"

	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/budgets"
	"sallyport/gateway/catalog"
	"sallyport/gateway/confine"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/replay"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/sandbox/bridge"
)

// Options configure an executor. All but Records and Telemetry are required.
type Options struct {
	Settings config.Source
	Logger   *slog.Logger
	// Sandboxes run programs. The caller closes them, before the executor.
	Sandboxes *Sandboxes
	// Secrets are removed from what programs print and return.
	Secrets *redact.Mask
	// Records stores which sessions were used; nil keeps that in memory.
	Records   *store.Store
	Telemetry *telemetry.Telemetry

	Catalog      *catalog.Catalog
	Workspaces   *workspaces.Workspaces
	Environments *environments.Environments
	History      *history.History
	Approver     *approvals.Approver
	Auditor      *auditor.Auditor
	Guard        *guard.Guard
	Replay       *replay.Replay
	Skills       Skills
	// Endpoints decides which tools exist for a caller, Upstreams returns the upstreams that the caller sees.
	Endpoints *confine.Endpoints
	Upstreams func(ctx context.Context) []catalog.Upstream
	// Budgets count programs and their processor time.
	Budgets *budgets.Budgets
	// Check, if set, judges a program before it runs; language is python or typescript. Its errors are *tool.Error.
	Check func(ctx context.Context, code, language string) error
	// Call makes the calls of programs.
	Call toolcall.Handler
}

// Skills are the skills that programs of a caller import.
type Skills interface {
	// Files returns the files of a skill in TypeScript.
	Files(ctx context.Context, name string) (map[string][]byte, error)
	// Explain adds the text of lines in skills, which a sandbox does not have.
	Explain(ctx context.Context, lines []bridge.Line)
	// OnExecutionEnd is called with each execution that has ended.
	OnExecutionEnd(ctx context.Context, e execution.Result)
}

// Executor runs programs. It is safe for concurrent use.
type Executor struct {
	opts      Options
	sandboxes *Sandboxes
	checks    *checks
	active    activeSet // running and waiting executions
	admission admission
	hide      *redact.Mask
	sessions  *sessions
}

// New returns an executor. Close it.
func New(opts Options) (x *Executor, err error) {
	settings := func() config.Sandbox { return opts.Settings.Load().Sandbox }
	x = &Executor{opts: opts, sandboxes: opts.Sandboxes, hide: opts.Secrets}
	x.admission = admission{parallel: cmp.Or(settings().Parallel, config.Default().Sandbox.Parallel), limits: settings}
	x.checks = &checks{sandboxes: x.sandboxes, settings: settings, log: opts.Logger, checkers: map[checkerKey]*keptChecker{}}
	x.sandboxes.setOnPublish(x.checks.setFiles)
	x.sessions, err = openSessions(opts.Records)
	return x, err
}

// Close ends the type checkers.
func (ex *Executor) Close() { ex.checks.close() }
