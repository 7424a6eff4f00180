package upstreamscmd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/addition"
	"sallyport/internal/config"
	"sallyport/internal/secret"
	"sallyport/internal/tool"
)

// maxInstall bounds the time of an installation of packages.
const maxInstall = 5 * time.Minute

// try starts the new upstream, alone, with the secrets that are not stored yet. Its definitions are pinned in sallyport.lock.
func (d *adding) try(ctx context.Context) (result testResult, err error) {
	cfg, err := d.settings()
	if err != nil {
		return result, unusable(err)
	}
	opts := gateway.Options{ConnectWait: cli.ConnectTimeout, NoPool: true, Purpose: "add"}
	g, err := d.OpenGateway(cfg, d.Logger(slog.LevelError), opts)
	if err != nil {
		return result, unusable(err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	ctx = tool.WithClient(ctx, "sallyport add")
	for start := time.Now(); ; {
		result = d.testAll(ctx, g, g.Catalog.Upstreams(), !d.flags.asJSON)[0]
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		if !addition.Installing(result.Problem) || time.Since(start) > maxInstall {
			break
		}
	}
	if result.OK {
		result.addTools(ctx, g)
	}
	return result, nil
}

// addTools adds the names of the tools, and how many are held for review. The catalog shows them shortly after the connection.
func (t *testResult) addTools(ctx context.Context, g *gateway.Gateway) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer g.Catalog.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		t.tools = nil
		for _, one := range g.Catalog.Tools() {
			t.tools = append(t.tools, one.ID.Name)
		}
		t.held = g.Catalog.Upstreams()[0].Held
		if len(t.tools)+t.held >= t.Tools {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// settings returns the edited settings with the new upstream alone.
func (d *adding) settings() (*config.Config, error) {
	secrets := d.Made.Secrets
	sources := config.Sources{
		Getenv: func(name string) (string, bool) {
			if value, ok := secrets[name]; ok && !d.Store.Keyring {
				return value, true
			}
			return d.Env(name)
		},
		Keyring: func(name string) (string, error) {
			if value, ok := secrets[name]; ok && d.Store.Keyring {
				return value, nil
			}
			return secret.Get(name)
		},
	}
	cfg, err := sources.Parse(d.file.Path, d.file.Data)
	if err != nil {
		return nil, err
	}
	for _, up := range cfg.Upstreams {
		if up.Name == d.Made.Entry.Name {
			cfg.Upstreams = []config.Upstream{up}
		}
	}
	return cfg, nil
}

// usable reports whether the upstream can be added: it answered, or it only lacks a login or a value that the user gives later.
func (t testResult) usable() bool {
	return t.OK || strings.Contains(t.Problem, "sallyport auth login") || strings.Contains(t.Problem, "the variable ") || strings.Contains(t.Problem, "the keyring has no ")
}
