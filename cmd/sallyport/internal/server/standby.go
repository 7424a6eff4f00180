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
	// standbyEvery is how often a standby looks whether the records are free, standbyGrace how long they have to be: who serves
	// without --share and is restarted comes first.
	standbyEvery = 2 * time.Second
	standbyGrace = 10 * time.Second
)

// standby is what a process of serve --share does while another has the records: once that one has ended, however, it takes over the
// records, and with them schedules, runs and what waits for people. It gives them back to a serve without --share that starts.
type standby struct {
	app  *app
	load func() (*config.Config, error)
	log  *slog.Logger
}

// run stands by until ctx ends.
func (b *standby) run(ctx context.Context) {
	dir := filepath.Join(b.app.DataDir(), cli.RecordsFolder)
	for b.await(ctx, dir) {
		records, err := store.Open(dir, &store.Options{Logger: b.log})
		if errors.Is(err, store.ErrInUse) {
			continue
		}
		if err != nil {
			b.log.Error("records are not taken over", "error", err)
			return
		}
		b.log.Info("the records are taken over: the process that had them is gone", "directory", dir)
		if err := b.lead(ctx, records); err != nil && ctx.Err() == nil {
			b.log.Error("schedules are not taken over", "error", err)
			return
		}
	}
}

// await returns once no process has held the records for a while, or reports that ctx has ended.
func (b *standby) await(ctx context.Context, dir string) bool {
	tick := time.NewTicker(standbyEvery)
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

// lead does with the records what a gateway that has them does, in a gateway of its own, until ctx ends or another process wants them.
func (b *standby) lead(ctx context.Context, records *store.Store) (err error) {
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
	f, err := b.app.openFlows(&service{cfg: cfg, gateway: g, log: b.log}, records)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ctx, release := context.WithCancel(ctx)
	defer release()
	api := httpapi.New(g.Verbs(), &httpapi.Options{Version: cli.BuildVersion(), Kept: true, Workflows: f.Engine, Logger: b.log})
	defer b.app.OpenControl(b.log, releasing(api, release))()
	var work sync.WaitGroup
	work.Go(func() { g.Follow(ctx, b.load) })
	work.Go(func() { g.Auditor.KeepAudit(ctx) })
	work.Go(func() { f.run(ctx) })
	work.Wait()
	return nil
}

// releasing adds to what a control socket serves how the records are asked for.
func releasing(api http.Handler, release func()) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}\n"))
		release()
	})
	return mux
}
