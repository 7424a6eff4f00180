package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"sallyport/gateway"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
)

// openGateway opens a gateway with what all verbs give it besides opts.
func (a *app) openGateway(cfg *config.Config, log *slog.Logger, opts gateway.Options) (*gateway.Gateway, error) {
	opts.Logger, opts.Version, opts.CacheDir, opts.DataDir = log, buildVersion(), a.cacheDir(), a.dataDir()
	opts.LockFile = filepath.Join(cfg.Dir, trust.FileName)
	opts.Auth = func(up config.Upstream) upstream.Authorizer {
		if withoutLogin(up) != nil {
			return nil
		}
		return a.newAuthorizer(up)
	}
	return gateway.Open(cfg, &opts)
}

// withGateway opens a gateway for the time that use takes.
func (a *app) withGateway(ctx context.Context, opts gateway.Options, use func(ctx context.Context, g *gateway.Gateway) error) (err error) {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	g, err := a.openGateway(cfg, a.logger(slog.LevelError), opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return use(ctx, g)
}

// dataDir is where things are kept that people own, "" if there is no place for them.
func (a *app) dataDir() string {
	if dir, ok := a.env("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport")
	}
	if home, ok := a.env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "sallyport")
	}
	return ""
}

// cacheDir is where things are kept that can be had again, "" if there is no place for them.
func (a *app) cacheDir() string {
	if dir, ok := a.env("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport")
	}
	if home, ok := a.env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "sallyport")
	}
	return ""
}
