package gateway

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/watch"
)

const (
	// pollEvery is the interval at which files are checked. Polling works on every kind of mount.
	pollEvery = time.Second
)

// Settings describes the settings in force.
type Settings struct {
	// Path is the file that they were read from.
	Path string
	// Loaded is when they took effect.
	Loaded time.Time
	// Problem says why the current content of the file is not in force, "" if it is.
	Problem string
	// Restart lists the keys with new values that take effect only after a restart.
	Restart []string
}

// Settings returns a description of the settings in force.
func (g *Gateway) Settings() Settings { return *g.settings.Load() }

// Current returns the source of the settings in force.
func (g *Gateway) Current() config.Source { return &g.cfg }

// summary returns the problem in one line, without local paths, for clients.
func (s Settings) summary() string {
	line, _, _ := strings.Cut(s.Problem, "\n")
	return strings.ReplaceAll(line, filepath.Dir(s.Path)+string(filepath.Separator), "")
}

// adopt puts settings into force, except those of the upstreams.
func (g *Gateway) adopt(cfg *config.Config) {
	now := Settings{Path: cfg.Path, Loaded: time.Now(), Restart: needRestart(g.started, cfg)}
	g.cfg.Store(cfg)
	g.settings.Store(&now)
	for _, w := range cfg.Warnings { // without the line of the file, which may hold a secret
		g.log.Warn("the settings have a text that is probably a mistake", "at", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column), "warning", w.Message)
	}
}

// needRestart returns the keys that are read only at start and differ.
func needRestart(old, cfg *config.Config) (keys []string) {
	if o, n := old.Sandbox, cfg.Sandbox; o.Runsc != n.Runsc || o.Python != n.Python || o.Node != n.Node {
		keys = append(keys, "sandbox.runsc, python, node")
	}
	if old.Sandbox.Remote != cfg.Sandbox.Remote {
		keys = append(keys, "sandbox.remote")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pyright != n.Pyright || o.Tsc != n.Tsc {
		keys = append(keys, "sandbox.pyright, tsc")
	}
	if o, n := old.Sandbox, cfg.Sandbox; o.Pool != n.Pool || o.Reuse != n.Reuse || o.SessionIdle != n.SessionIdle || !slices.Equal(o.Masked, n.Masked) {
		keys = append(keys, "sandbox.pool, reuse, session_idle, masked")
	}
	if old.Sandbox.Parallel != cfg.Sandbox.Parallel {
		keys = append(keys, "sandbox.parallel")
	}
	for _, of := range []struct {
		key      string
		old, now any
	}{
		{"environments", old.Environments, cfg.Environments},
		{"observe", old.Observe, cfg.Observe},
		{"workspaces (in the definition of execute_code)", old.Workspaces, cfg.Workspaces},
		{"audit", auditWithoutCode(old.Audit), auditWithoutCode(cfg.Audit)},
		{"profiles", append(config.Profiles{}, old.Profiles...), append(config.Profiles{}, cfg.Profiles...)},
		{"compat", old.Compat, cfg.Compat},
		{"http", old.HTTP, cfg.HTTP},
		{"workflows", old.Workflows, cfg.Workflows},
		{"store", old.Store, cfg.Store},
	} {
		if !reflect.DeepEqual(of.old, of.now) {
			keys = append(keys, of.key)
		}
	}
	return keys
}

// auditWithoutCode returns the audit settings without those that take effect immediately.
func auditWithoutCode(a config.Audit) config.Audit {
	a.Code = ""
	return a
}

// Reload puts other settings into force. Unchanged upstreams are not affected. A
// changed upstream gets a new session. Calls in flight to a changed or removed
// upstream have 10 s to finish. Limits of executions apply from the next
// execution on.
func (g *Gateway) Reload(cfg *config.Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if err := g.Catalog.Check(cfg); err != nil {
		return err
	}
	rules, err := g.Guard.Compile(cfg)
	if err != nil {
		return err
	}
	if err := g.Auditor.RecordReload(cfg); err != nil {
		return err
	}
	if err := g.Privacy.Apply(cfg); err != nil { // before a new upstream is called
		return err
	}
	g.Guard.Apply(rules)
	g.Endpoints.Apply(cfg)       // before clients hear of new lists
	g.learnSecrets(g.cfg.Load()) // what was replaced may still be seen
	g.opts.secrets.Set(cfg.SecretValues())
	counts, err := g.Catalog.Apply(cfg)
	if err != nil {
		return err
	}
	g.adopt(cfg)
	g.Plugins.Reload()
	g.Searcher.Apply(cfg.Search)
	if keys := g.Settings().Restart; len(keys) > 0 {
		g.log.Warn("some settings take effect only after a restart", "keys", keys)
	}
	g.log.Info("settings reloaded", "config", cfg.Path, "added", counts.Added, "changed", counts.Changed, "removed", counts.Removed, "kept", counts.Kept)
	return nil
}

// WatchSettings reloads the settings whenever their files, or secrets of a secret manager, change, until ctx ends. load
// reads the settings; Config.Path and Config.Files are watched. Settings that
// cannot be loaded change nothing; [Gateway.Settings] and the log say why.
func (g *Gateway) WatchSettings(ctx context.Context, load func() (*config.Config, error)) {
	paths := func() []string {
		cfg := g.cfg.Load()
		return append([]string{cfg.Path}, cfg.Files...)
	}
	failed := func() bool { return g.Settings().Problem != "" || g.secretsChanged() }
	defer g.startRenewal(ctx, load)()
	watch.Files(ctx, pollEvery, paths, failed, func() { g.reloadOnce(load) })
}

// ReloadNow loads the settings without waiting until [Gateway.WatchSettings] finds that their file has changed. It returns why
// they are not in force, "" if they are.
func (g *Gateway) ReloadNow() string {
	if load := g.load.Load(); load != nil {
		g.reloadOnce(*load)
	}
	return g.Settings().Problem
}

// reloadOnce loads the settings once. Each problem is logged once.
func (g *Gateway) reloadOnce(load func() (*config.Config, error)) {
	g.rereading.Lock()
	defer g.rereading.Unlock()
	cfg, err := load()
	now := g.Settings()
	switch {
	case err == nil && reflect.DeepEqual(cfg, g.cfg.Load()): // the file has the settings in force again
		if now.Problem != "" {
			now.Problem = ""
			g.settings.Store(&now)
			g.log.Info("settings are valid again", "config", cfg.Path)
		}
		return
	case err == nil:
		if err = g.Reload(cfg); err == nil {
			return
		}
	}
	if problem := sanitize.Text(err.Error(), 1000); problem != now.Problem {
		now.Problem = problem
		g.settings.Store(&now)
		line, _, _ := strings.Cut(problem, "\n") // the following lines quote the file, which may hold a secret
		g.log.Error("settings are not reloaded, the last good ones stay in force", "config", now.Path, "error", line)
	}
}
