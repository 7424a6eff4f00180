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

// workflowService is the workflow engine of serve, with webhooks and schedules.
type workflowService struct {
	*engine.Engine
	hooks http.Handler
	clock *trigger.Scheduler
	log   *slog.Logger
}

// openWorkflows opens the engine, which resumes earlier runs, and its triggers.
func (a *app) openWorkflows(s *service, records *store.Store) (*workflowService, error) {
	m, err := engine.Open(a.App, s.cfg, s.gateway, records, s.tasks, s.log, false)
	if err != nil {
		return nil, err
	}
	opts := trigger.Options{Definitions: m.Library.Definitions, Starter: m.Engine, Secrets: s.cfg.Workflows.Secrets, Env: a.Env, Logger: s.log}
	f := &workflowService{Engine: m, hooks: trigger.NewHooks(opts), log: s.log}
	if f.clock, err = trigger.NewScheduler(records, opts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if problem := s.cfg.Workflows.Problem; problem != "" {
		s.log.Warn("webhooks that are signed with a secret without a value are refused", "problem", problem)
	}
	return f, nil
}

// run watches the definition files and starts scheduled runs, until ctx ends.
func (f *workflowService) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { f.Library.Follow(ctx, f.NotifyChanged) })
	if err := f.clock.Run(ctx); err != nil && ctx.Err() == nil {
		f.log.Error("schedules stopped: no more workflows are started", "error", err)
	}
}
