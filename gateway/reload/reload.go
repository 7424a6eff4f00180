// Package reload keeps the settings in force, and reloads them when their files or the secrets that they refer to change. Its
// main type is [Reloader].
package reload

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/sanitize"
	"sallyport/internal/watch"
)

// pollEvery is the interval at which files are checked. Polling works on every kind of mount.
const pollEvery = time.Second

// Status describes the settings in force.
type Status struct {
	// Path is the file that they were read from.
	Path string
	// Loaded is when they took effect.
	Loaded time.Time
	// Problem says why the current content of the file is not in force, "" if it is.
	Problem string
	// Restart lists the keys with new values that take effect only after a restart.
	Restart []string
}

// Summary returns the problem of settings in one line, without local paths, for clients.
func Summary(s Status) string {
	line, _, _ := strings.Cut(s.Problem, "\n")
	return strings.ReplaceAll(line, filepath.Dir(s.Path)+string(filepath.Separator), "")
}

// Options configure a reloader.
type Options struct {
	Logger *slog.Logger
	// Apply puts other settings into force, and calls [Reloader.Adopt] with them. If it fails, the last ones stay in force.
	Apply func(cfg *config.Config) error
	// Managed renews the secrets of secret managers; nil renews none.
	Managed ManagedSecrets
	// Secrets has the secrets that are hidden.
	Secrets *redact.Book
}

// Reloader holds the settings in force. It is safe for concurrent use.
type Reloader struct {
	opts    Options
	started *config.Config                // as the process started with them
	cfg     atomic.Pointer[config.Config] // in force
	status  atomic.Pointer[Status]
	load    atomic.Pointer[func() (*config.Config, error)] // reads the settings; nil before WatchSettings
	reading sync.Mutex                                     // held while the file is read and put into force, so that an older one is never the last
}

// New returns a reloader with the settings that the process starts with, in force.
func New(cfg *config.Config, opts Options) *Reloader {
	r := &Reloader{opts: opts, started: cfg}
	r.Adopt(cfg)
	return r
}

// Settings returns a description of the settings in force.
func (r *Reloader) Settings() Status { return *r.status.Load() }

// Current returns the source of the settings in force.
func (r *Reloader) Current() config.Source { return &r.cfg }

// Adopt makes settings those in force.
func (r *Reloader) Adopt(cfg *config.Config) {
	now := Status{Path: cfg.Path, Loaded: time.Now(), Restart: needRestart(r.started, cfg)}
	r.cfg.Store(cfg)
	r.status.Store(&now)
	for _, w := range cfg.Warnings { // without the line of the file, which may hold a secret
		r.opts.Logger.Warn("the settings have a text that is probably a mistake", "at", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column), "warning", w.Message)
	}
}

// WatchSettings reloads the settings whenever their files, or secrets of a secret manager, change, until ctx ends. load
// reads the settings; Config.Path and Config.Files are watched. Settings that
// cannot be loaded change nothing; [Reloader.Settings] and the log say why.
func (r *Reloader) WatchSettings(ctx context.Context, load func() (*config.Config, error)) {
	paths := func() []string {
		cfg := r.cfg.Load()
		return append([]string{cfg.Path}, cfg.Files...)
	}
	failed := func() bool { return r.Settings().Problem != "" || r.secretsChanged() }
	r.load.Store(&load)
	defer r.startRenewal(ctx)()
	watch.Files(ctx, pollEvery, paths, failed, func() { r.reloadOnce(load) })
}

// ReloadNow loads the settings without waiting until [Reloader.WatchSettings] finds that their file has changed. It returns
// why they are not in force, "" if they are.
func (r *Reloader) ReloadNow() string {
	if load := r.load.Load(); load != nil {
		r.reloadOnce(*load)
	}
	return r.Settings().Problem
}

// reloadOnce loads the settings once. Each problem is logged once.
func (r *Reloader) reloadOnce(load func() (*config.Config, error)) {
	r.reading.Lock()
	defer r.reading.Unlock()
	cfg, err := load()
	now := r.Settings()
	switch {
	case err == nil && reflect.DeepEqual(cfg, r.cfg.Load()): // the file has the settings in force again
		if now.Problem != "" {
			now.Problem = ""
			r.status.Store(&now)
			r.opts.Logger.Info("settings are valid again", "config", cfg.Path)
		}
		return
	case err == nil:
		if err = r.opts.Apply(cfg); err == nil {
			return
		}
	}
	if problem := sanitize.Text(err.Error(), 1000); problem != now.Problem {
		now.Problem = problem
		r.status.Store(&now)
		line, _, _ := strings.Cut(problem, "\n") // the following lines quote the file, which may hold a secret
		r.opts.Logger.Error("settings are not reloaded, the last good ones stay in force", "config", now.Path, "error", line)
	}
}
