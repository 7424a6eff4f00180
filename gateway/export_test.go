package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"sallyport/gateway/alerts"
	"sallyport/gateway/catalog"
	"sallyport/gateway/executor"
	"sallyport/gateway/upstream/budget"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/redact"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// GoProgram is a program of tests that are not about the sandbox: it makes calls, and returns the error that it ended with.
type GoProgram func(ctx context.Context, call func(ctx context.Context, id, args string) (tool.Result, error)) error

// goHost runs programs of Go, by what they have as their code.
type goHost struct {
	programs map[string]GoProgram
}

// InProcess has a gateway run programs of Go in place of code: tests of what becomes of calls need no sandbox.
func (o *Options) InProcess(programs map[string]GoProgram) *Options {
	o.openHost = func() (executor.Host, error) { return goHost{programs}, nil }
	return o
}

// Run implements host.
func (h goHost) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	err := h.programs[job.Code](ctx, func(ctx context.Context, id, args string) (tool.Result, error) {
		parsed, err := tool.ParseID(id)
		if err != nil {
			return tool.Result{}, err
		}
		result, err := caller.Call(ctx, tool.Call{Tool: parsed, Args: json.RawMessage(args), Execution: job.ID})
		if err == nil && result.IsError { // as the bridge has it
			err = &tool.Error{Kind: tool.Failed, Message: result.Text()}
		}
		return result, err
	})
	switch {
	case ctx.Err() != nil:
		return sandbox.Outcome{Status: sandbox.Canceled}, nil //nolint:nilerr // how it ended is in the outcome
	case err != nil:
		fault := &bridge.Fault{Type: "ValueError", Message: err.Error()}
		if e, ok := err.(*tool.Error); ok { //nolint:errorlint // one that is wrapped was caught
			fault = &bridge.Fault{Type: "ToolError", Message: e.Message}
		}
		return sandbox.Outcome{Status: sandbox.Failed, Fault: fault}, nil
	}
	return sandbox.Outcome{Status: sandbox.OK}, nil
}

// Publish implements host.
func (goHost) Publish(map[string][]byte) error { return nil }

// Warm implements host.
func (goHost) Warm(...sandbox.Job) {}

// Waiting implements host.
func (goHost) Waiting(sandbox.Interpreter) (int, bool) { return 0, false }

// Close implements host.
func (goHost) Close() error { return nil }

// JournalPath is where the journal of an execution is.
func JournalPath(g *Gateway, principal, id string) string {
	return journal.Path(g.History.Folder(principal), id)
}

// FlushRecords puts on record what has ended.
func FlushRecords(ctx context.Context, g *Gateway) { g.History.Flush(ctx, "") }

// SetApprovalWait sets how long a call waits for people.
func SetApprovalWait(g *Gateway, d time.Duration) {
	cfg := *g.Reloader.Current().Load()
	cfg.Approval.Wait = d
	g.Reloader.Adopt(&cfg)
}

// SlowCatalog is a catalog that shows what upstreams offer only when release is closed.
type SlowCatalog struct{ catalog *catalog.Catalog }

// OpenSlowCatalog begins to connect to the upstreams of cfg.
func OpenSlowCatalog(cfg *config.Config, release <-chan struct{}) (*SlowCatalog, error) {
	var settings atomic.Pointer[config.Config]
	settings.Store(cfg)
	var opened atomic.Bool
	c, err := catalog.Open(catalog.Options{
		Settings: &settings, Logger: slog.New(slog.DiscardHandler), ConnectWait: 30 * time.Second, Budget: budget.New(0), Secrets: &redact.Book{},
		Publish: func(func() map[string][]byte) error {
			if opened.Swap(true) { // the first shows what is known without upstreams
				<-release
			}
			return nil
		},
	})
	return &SlowCatalog{c}, err
}

// Await waits as a search does.
func (c *SlowCatalog) Await(ctx context.Context) { c.catalog.Await(ctx, "") }

// Test tests an upstream, as the dashboard does.
func (c *SlowCatalog) Test(ctx context.Context, name string) error { return c.catalog.Test(ctx, name) }

// Upstreams are the upstreams as a search has them.
func (c *SlowCatalog) Upstreams() []catalog.Upstream { return c.catalog.Upstreams() }

// Close ends it.
func (c *SlowCatalog) Close() error { return c.catalog.Close() }

// HeldForAlerts returns the tools that alerts are sent of.
func (g *Gateway) HeldForAlerts() []alerts.Held { return heldTools(g.Catalog) }
