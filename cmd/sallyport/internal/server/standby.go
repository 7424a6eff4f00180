package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/internal/config"
	"sallyport/internal/filelock"
	"sallyport/internal/store"
)

const (
	// standbyInterval is how often a standby checks whether the records are free. It takes them over after standbyGrace, so that
	// a restarted serve without --share gets them first.
	standbyInterval = 2 * time.Second
	standbyGrace    = 10 * time.Second
)

// standby waits in a process of serve --share while another process has the records. When that process has ended, it takes over the
// records, with schedules, runs and pending approvals. It releases them to a serve without --share that starts.
type standby struct {
	app  *app
	load func() (*config.Config, error)
	log  *slog.Logger
}

// run waits for the records and takes them over, until ctx ends.
func (b *standby) run(ctx context.Context) {
	dir := filepath.Join(b.app.DataDir(), cli.RecordsFolder)
	for b.waitFree(ctx, dir) {
		records, err := store.Open(dir, &store.Options{Logger: b.log})
		if errors.Is(err, store.ErrInUse) {
			continue
		}
		if err != nil {
			b.log.Error("cannot take over the records", "error", err)
			return
		}
		b.log.Info("took over the records: the process that had them has ended", "directory", dir)
		if err := b.takeOver(ctx, records); err != nil && ctx.Err() == nil {
			b.log.Error("cannot take over the schedules", "error", err)
			return
		}
	}
}

// waitFree returns true when no process has held the records for standbyGrace, or false when ctx ends.
func (b *standby) waitFree(ctx context.Context, dir string) bool {
	tick := time.NewTicker(standbyInterval)
	defer tick.Stop()
	free := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		unlock, err := filelock.Dir(dir, 0)
		if err != nil {
			free = time.Time{}
			continue
		}
		unlock()
		if free.IsZero() {
			free = time.Now()
		}
		if time.Since(free) >= standbyGrace {
			return true
		}
	}
}

// takeOver runs workflows and the control socket on the records, in a separate gateway, until ctx ends or another process requests them.
func (b *standby) takeOver(ctx context.Context, records *store.Store) (err error) {
	defer func() { err = errors.Join(err, records.Close()) }()
	cfg, err := b.load()
	if err != nil {
		return err
	}
	g, err := b.app.OpenGateway(cfg, b.log, gateway.Options{Records: records, NoPool: true, Purpose: "serve"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	tasks, err := b.app.OpenTasks(g, cfg, records, b.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tasks.Close()) }()
	f, err := b.app.openWorkflows(&service{cfg: cfg, gateway: g, tasks: tasks, log: b.log}, records)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ctx, release := context.WithCancel(ctx)
	defer release()
	api := httpapi.New(g.Service(), &httpapi.Options{Version: cli.BuildVersion(), Kept: true, Workflows: f.Engine, Tasks: tasks, Logger: b.log})
	defer b.app.OpenControl(b.log, withRelease(api, release))()
	var work sync.WaitGroup
	work.Go(func() { g.WatchSettings(ctx, b.load) })
	work.Go(func() { g.Auditor.MaintainAudit(ctx) })
	work.Go(func() { f.run(ctx) })
	work.Wait()
	return nil
}

// withRelease adds the endpoint to api by which another process requests the records.
func withRelease(api http.Handler, release func()) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}\n"))
		release()
	})
	return mux
}
