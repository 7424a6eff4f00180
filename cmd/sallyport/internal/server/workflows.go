package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/workflow/trigger"
	"sallyport/internal/store"
)

// flows is the workflow engine of serve, with webhooks and schedules.
type flows struct {
	*engine.Engine
	hooks http.Handler
	clock *trigger.Clock
	log   *slog.Logger
}

// openFlows opens the engine, which resumes earlier runs, and its triggers.
func (a *app) openFlows(s *service, records *store.Store) (*flows, error) {
	m, err := engine.Open(a.App, s.cfg, s.gateway, records, s.log, false)
	if err != nil {
		return nil, err
	}
	opts := trigger.Options{Definitions: m.Library.Definitions, Starter: m.Engine, Secrets: s.cfg.Workflows.Secrets, Env: a.Env, Logger: s.log}
	f := &flows{Engine: m, hooks: trigger.NewHooks(opts), log: s.log}
	if f.clock, err = trigger.NewClock(records, opts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if problem := s.cfg.Workflows.Problem; problem != "" {
		s.log.Warn("webhooks that are signed with a secret without a value are refused", "problem", problem)
	}
	return f, nil
}

// run watches the definition files and starts scheduled runs, until ctx ends.
func (f *flows) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { f.Library.Follow(ctx, f.Changed) })
	if err := f.clock.Run(ctx); err != nil && ctx.Err() == nil {
		f.log.Error("schedules stopped: no more workflows are started", "error", err)
	}
}
