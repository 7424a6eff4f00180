// Package engine gives the verbs access to the workflow engine of a data directory: that of a running gateway, or a temporary one in this process.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/task"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/library"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Engine is a workflow engine with its definitions, for the API and serve.
type Engine struct {
	*workflow.Engine
	// Library has the definitions.
	Library *library.Library
	// file is a definition in addition to those of the library, nil for none.
	file   *spec.Definition
	policy lint.Policy
	env    func(string) (string, bool)
	// NotifyChanged tells the gateway that the definitions have changed, as it offers exposed workflows to programs.
	NotifyChanged func()
}

// Plan returns what a run would do. Errors are *tool.Error.
func (m *Engine) Plan(ctx context.Context, name string, inputs json.RawMessage) (lint.Planned, error) {
	all := ByName(m.definitions())
	d := all[name]
	if d == nil {
		return lint.Planned{}, &tool.Error{Kind: tool.NotFound, Message: "there is no workflow " + sanitize.Line(name, 64)}
	}
	given := map[string]any{}
	if len(inputs) > 0 {
		value, err := expr.Decode(inputs)
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			return lint.Planned{}, &tool.Error{Kind: tool.Invalid, Message: "inputs must be an object"}
		}
		given = object
	}
	env := map[string]string{}
	for _, variable := range d.Env {
		if value, ok := m.env(variable.Text); ok {
			env[variable.Text] = value
		}
	}
	return lint.Plan(ctx, d, given, lint.PlanOptions{Workflows: all, Policy: m.policy, Env: env})
}

// ByName returns definitions by their names.
func ByName(all []*spec.Definition) map[string]*spec.Definition {
	names := map[string]*spec.Definition{}
	for _, d := range all {
		names[d.Name] = d
	}
	return names
}

// definitions returns all definitions. That of a file replaces the one of the library with its name.
func (m *Engine) definitions() []*spec.Definition {
	all := m.Library.Definitions()
	if m.file == nil {
		return all
	}
	return append(slices.DeleteFunc(slices.Clone(all), func(d *spec.Definition) bool { return d.Name == m.file.Name }), m.file)
}

// Open opens an engine on a gateway. With alone it does not resume runs by itself.
func Open(a *cli.App, cfg *config.Config, g *gateway.Gateway, records *store.Store, tasks *task.Tasks, log *slog.Logger, alone bool) (*Engine, error) {
	return open(a, cfg, g, records, tasks, log, alone, nil)
}

func open(a *cli.App, cfg *config.Config, g *gateway.Gateway, records *store.Store, tasks *task.Tasks, log *slog.Logger, alone bool, file *spec.Definition) (*Engine, error) {
	m := &Engine{file: file, Library: library.Open(cfg.Workflows.Path, log), policy: g.Guard, env: a.Env, NotifyChanged: func() {}}
	var err error
	m.Engine, err = workflow.Open(g.Service(), &workflow.Options{Records: records, Definitions: m.definitions, Logger: log, Env: a.Env,
		Approvals: g.Approver, Catalog: g.Service(), Tasks: tasks, Labels: g.Guard, Plugins: g, Telemetry: g.Telemetry, NoAutoResume: alone, MaxRuns: cfg.Workflows.Runs, Retention: cfg.Workflows.Keep,
		Limits: workflow.Limits{Items: cfg.Workflows.Limits.Items, Steps: cfg.Workflows.Limits.Steps, Bytes: int64(cfg.Workflows.Limits.Bytes), Time: cfg.Workflows.Limits.Time}})
	if err != nil || !cfg.Profiles.Has(config.ProfileWorkflows) {
		return m, err
	}
	if m.NotifyChanged, err = g.Catalog.Attach(toolcall.WorkflowsID, "workflows: reviewed programs made of steps", m.AsUpstream(g.Service())); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Client sends requests to the engine of the data directory.
type Client struct {
	*http.Client
	// InProcess reports that the engine is in this process, and ends with it.
	InProcess bool
}

// Get sends a GET request and decodes the response into into.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return cli.DoJSON(ctx, c.Client, http.MethodGet, path, nil, into)
}

// Post sends a POST request with body and decodes the response into into.
func (c *Client) Post(ctx context.Context, path string, body, into any) error {
	return cli.DoJSON(ctx, c.Client, http.MethodPost, path, body, into)
}

// Use calls use with the engine of the data directory: that of a running gateway, else a temporary one in this
// process. The temporary engine has upstreams and executes steps only if working is set.
func Use(ctx context.Context, a *cli.App, working bool, use func(ctx context.Context, c *Client) error) error {
	found := false
	err := a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		for _, one := range c.All {
			var health httpapi.Health
			if cli.DoJSON(ctx, one, http.MethodGet, "/health", nil, &health) == nil && health.Workflows {
				found = true
				return use(ctx, &Client{Client: one})
			}
		}
		return nil
	})
	if found || err != nil {
		return err
	}
	return useInProcess(ctx, a, working, nil, use)
}

// UseFile is Use with an engine in this process that also has the definition of a file. If another process has the records,
// those of its runs are in memory.
func UseFile(ctx context.Context, a *cli.App, file *spec.Definition, use func(ctx context.Context, c *Client) error) error {
	return useInProcess(ctx, a, true, file, use)
}

func useInProcess(ctx context.Context, a *cli.App, working bool, file *spec.Definition, use func(ctx context.Context, c *Client) error) (err error) {
	cfg, err := loadSettings(a, working)
	if err != nil {
		return err
	}
	log := a.Logger(slog.LevelError)
	records, err := openRecords(a, cfg, log, working)
	if _, used := errors.AsType[*store.InUseError](err); used && file != nil {
		records, err = store.Memory(), nil
		a.Say("another process has the records: this run is not kept")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	g, err := a.OpenGateway(cfg, log, gateway.Options{Records: records, NoPool: true, Purpose: "workflow"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	tasks, err := a.OpenTasks(g, cfg, records, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tasks.Close()) }()
	m, err := open(a, cfg, g, records, tasks, log, true, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	api := httpapi.New(g.Service(), &httpapi.Options{Version: cli.BuildVersion(), Kept: true, Workflows: m, Logger: log})
	if working { // so that other processes find the runs here
		defer a.OpenControl(log, api)()
	}
	return use(ctx, &Client{Client: &http.Client{Transport: cli.InProcess(cli.AsOperator(api))}, InProcess: true})
}

// loadSettings returns the settings for an engine in this process. Unless working is set, it works without a settings file.
func loadSettings(a *cli.App, working bool) (*config.Config, error) {
	cfg, err := a.Load()
	switch {
	case working:
		return cfg, err
	case err != nil:
		standard := config.Default()
		cfg = &standard
	}
	cfg.Upstreams, cfg.Environments = nil, nil
	return cfg, nil
}

// openRecords opens the records of the data directory. It creates them only if working is set.
func openRecords(a *cli.App, cfg *config.Config, log *slog.Logger, working bool) (*store.Store, error) {
	if cfg.Store.IsRemote() {
		return cli.ConnectStore(cfg, log)
	}
	dir := filepath.Join(a.DataDir(), cli.RecordsFolder)
	if _, err := os.Stat(dir); err != nil && !working {
		return store.Memory(), nil
	}
	records, err := store.Open(dir, &store.Options{Logger: log, LockTimeout: cli.RecordsTimeout})
	if used, ok := errors.AsType[*store.InUseError](err); ok {
		return nil, cli.UnresponsiveError(used, a.DataDir())
	}
	return records, err
}
