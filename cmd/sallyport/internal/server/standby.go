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
	for {
		records, err := b.open(ctx, dir)
		if ctx.Err() != nil {
			return
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

// open opens the records when no serve has held them for standbyGrace, or returns an error when ctx ends.
func (b *standby) open(ctx context.Context, dir string) (*store.Store, error) {
	tick := time.NewTicker(standbyInterval)
	defer tick.Stop()
	var seen observer
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		used := store.InUse(dir)
		if !seen.observe(used, time.Now()) {
			continue
		}
		records, err := store.Open(dir, &store.Options{Logger: b.log, LockTimeout: standbyInterval})
		if !errors.Is(err, store.ErrInUse) {
			return records, err
		}
	}
}

// observer decides from what a standby sees of the records whether they are without a serve. Other verbs hold the records too while they
// read them, for a moment: they must not keep a standby from its work, however often they are used.
type observer struct {
	// since is when a serve was seen to have left the records, zero while one has them.
	since time.Time
	// holder is the process that held them last, since held.
	holder int
	held   time.Time
}

// observe takes which process uses the records now, nil for none, and reports whether no serve has had them for standbyGrace.
func (o *observer) observe(used *store.InUseError, now time.Time) bool {
	switch {
	case used == nil:
		o.held = time.Time{}
	case o.held.IsZero() || used.PID != o.holder:
		o.holder, o.held = used.PID, now
	case now.Sub(o.held) >= standbyGrace: // too long for another verb
		o.since = time.Time{}
		return false
	}
	if o.since.IsZero() {
		o.since = now
	}
	return now.Sub(o.since) >= standbyGrace
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
	work.Go(func() { g.Reloader.WatchSettings(ctx, b.load) })
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
