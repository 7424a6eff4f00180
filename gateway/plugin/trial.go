package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/internal/redact"
)

// Inspect returns the plugins next to settings, without running them.
func Inspect(cfg *config.Config) ([]Plugin, error) {
	p := idle(cfg, nil, "")
	s, err := p.read(&state{})
	if err != nil {
		return nil, err
	}
	p.state.Store(s)
	return p.List(), nil
}

// idle returns plugins that nothing watches.
func idle(cfg *config.Config, serve Serve, cacheDir string) *Plugins {
	settings := &atomic.Pointer[config.Config]{}
	settings.Store(cfg)
	p := &Plugins{opts: Options{Settings: settings, Serve: serve, Secrets: &redact.Book{}, Logger: slog.New(slog.DiscardHandler)}}
	if cacheDir != "" {
		p.offers.dir = filepath.Join(cacheDir, folder.DirName)
	}
	return p
}

// Trial runs one plugin that need not be reviewed: for its review, and for its tests.
type Trial struct{ e *entry }

// NewTrial returns a trial of a plugin with what the settings grant it. What it says about its functions is cached in
// cacheDir, "" for nowhere. The caller must close it.
func NewTrial(cfg *config.Config, one folder.Plugin, serve Serve, cacheDir string) *Trial {
	e := &entry{name: one.Name, plugin: one, grants: cfg.Plugins[one.Name], offer: &atomic.Pointer[offer]{}}
	e.runner = idle(cfg, serve, cacheDir).newRunner(e, "")
	return &Trial{e}
}

// Offer starts the plugin and returns the digest of what it says about its functions.
func (t *Trial) Offer(ctx context.Context) (digest string, err error) {
	if _, err := t.e.runner.acquire(ctx); err != nil {
		return "", err
	}
	return t.e.offer.Load().digest(), nil
}

// Call calls a function: with an object tools and steps, with a list all others. An exception is a *[Fault].
func (t *Trial) Call(ctx context.Context, function string, with json.RawMessage) (json.RawMessage, error) {
	if slices.Contains(t.e.plugin.Tools, function) || slices.Contains(t.e.plugin.Steps, function) {
		value, _, err := t.e.named(ctx, function, with)
		return value, err
	}
	var args []any
	if json.Unmarshal(with, &args) != nil {
		return nil, errors.New("the arguments of " + function + " are a list")
	}
	value, err := t.e.runner.call(ctx, t.e.plugin.Timeout, request{Run: function, Args: args})
	return t.e.hide(value), err
}

// Close stops the plugin.
func (t *Trial) Close() { t.e.runner.close() }
