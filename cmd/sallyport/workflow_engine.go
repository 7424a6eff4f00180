package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/library"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/internal/expr"
	"sallyport/internal/plain"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// mill is an engine with its definitions, as the API and serve use it.
type mill struct {
	*workflow.Engine
	library *library.Library
	policy  lint.Policy
	env     func(string) (string, bool)
	// changed tells the gateway that the definitions have; programs call those that are exposed.
	changed func()
}

// Plan says what a run would do. Errors are *tool.Error.
func (m *mill) Plan(ctx context.Context, name string, inputs json.RawMessage) (lint.Planned, error) {
	all := byName(m.library.Definitions())
	d := all[name]
	if d == nil {
		return lint.Planned{}, &tool.Error{Kind: tool.NotFound, Message: "there is no workflow " + plain.Line(name, 64)}
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

// byName are definitions by their names.
func byName(all []*spec.Definition) map[string]*spec.Definition {
	names := map[string]*spec.Definition{}
	for _, d := range all {
		names[d.Name] = d
	}
	return names
}

// openMill opens an engine on a gateway. Alone, it goes on with no run by itself.
func (a *app) openMill(cfg *config.Config, g *gateway.Gateway, records *store.Store, log *slog.Logger, alone bool) (*mill, error) {
	m := &mill{library: library.Open(cfg.Workflows.Path, log), policy: g.Guard, env: a.env, changed: func() {}}
	var err error
	m.Engine, err = workflow.Open(g, &workflow.Options{Records: records, Definitions: m.library.Definitions, Logger: log, Env: a.env,
		People: g.Approver, Catalog: g, Labels: g.Guard, Telemetry: g.Telemetry(), Alone: alone, Runs: cfg.Workflows.Runs, Keep: cfg.Workflows.Keep,
		Limits: workflow.Limits{Items: cfg.Workflows.Limits.Items, Steps: cfg.Workflows.Limits.Steps, Bytes: int64(cfg.Workflows.Limits.Bytes), Time: cfg.Workflows.Limits.Time}})
	if err != nil || !cfg.Profiles.Has(config.ProfileWorkflows) {
		return m, err
	}
	if m.changed, err = g.Attach(toolcall.WorkflowsID, "workflows: reviewed programs made of steps", m.Own(g.Verbs())); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// gate is where the engine of the data directory is asked.
type gate struct {
	*http.Client
	// own says that it is this process, and ends with it.
	own bool
}

func (g *gate) get(ctx context.Context, path string, into any) error {
	return ask(ctx, g.Client, http.MethodGet, path, nil, into)
}

func (g *gate) post(ctx context.Context, path string, body, into any) error {
	return ask(ctx, g.Client, http.MethodPost, path, body, into)
}

// withEngine lets use ask the engine of the data directory: that of a gateway that runs, else one of our own for the time
// that use takes. It has upstreams and can make steps only where working says so.
func (a *app) withEngine(ctx context.Context, working bool, use func(ctx context.Context, g *gate) error) error {
	found := false
	err := a.withGateways(ctx, func(ctx context.Context, c *controls) error {
		for _, one := range c.all {
			var health httpapi.Health
			if ask(ctx, one, http.MethodGet, "/health", nil, &health) == nil && health.Workflows {
				found = true
				return use(ctx, &gate{Client: one})
			}
		}
		return nil
	})
	if found || err != nil {
		return err
	}
	return a.withOwnEngine(ctx, working, use)
}

func (a *app) withOwnEngine(ctx context.Context, working bool, use func(ctx context.Context, g *gate) error) (err error) {
	cfg, err := a.millSettings(working)
	if err != nil {
		return err
	}
	log := a.logger(slog.LevelError)
	records, err := a.millRecords(log, working)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	g, err := a.openGateway(cfg, log, gateway.Options{Records: records, NoPool: true, Purpose: "workflow"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	m, err := a.openMill(cfg, g, records, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	api := httpapi.New(g.Verbs(), &httpapi.Options{Version: buildVersion(), Kept: true, Workflows: m, Logger: log})
	if working { // so that others find the runs of this data directory here
		defer a.openControl(log, api)()
	}
	return use(ctx, &gate{Client: &http.Client{Transport: within{asOperator(api)}}, own: true})
}

// millSettings are those of an engine of our own. What is kept can be seen without settings.
func (a *app) millSettings(working bool) (*config.Config, error) {
	cfg, err := a.load()
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

// millRecords opens the records of the data directory. Who only looks makes none.
func (a *app) millRecords(log *slog.Logger, working bool) (*store.Store, error) {
	dir := filepath.Join(a.dataDir(), recordsFolder)
	if _, err := os.Stat(dir); err != nil && !working {
		return store.Memory(), nil
	}
	records, err := store.Open(dir, &store.Options{Logger: log, Patience: sharePatience})
	if used, ok := errors.AsType[*store.InUseError](err); ok {
		return nil, unanswering(used, a.dataDir())
	}
	return records, err
}
