package gateway

import (
	"context"
	"sync"

	"sallyport/internal/config"
	"sallyport/internal/secretstore"
	"sallyport/internal/tool"
)

// ManagedSecrets renews secrets that the settings refer to in secret managers. A *[secretstore.Store] implements it.
type ManagedSecrets interface {
	// Refresh reads secrets again, and reports whether one has another value than the one in use, or none.
	Refresh(ctx context.Context, used map[string]string) (changed bool)
	// Changed reports whether reading the settings gives other secrets, since the last call.
	Changed() bool
	// Run renews them until ctx ends.
	Run(ctx context.Context)
}

// startRenewal renews secrets until stop is called; load reads the settings with them.
func (g *Gateway) startRenewal(ctx context.Context, load func() (*config.Config, error)) (stop func()) {
	g.load.Store(&load)
	if g.opts.ManagedSecrets == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { g.opts.ManagedSecrets.Run(ctx) })
	return func() {
		cancel()
		work.Wait()
	}
}

func (g *Gateway) secretsChanged() bool {
	return g.opts.ManagedSecrets != nil && g.opts.ManagedSecrets.Changed()
}

// managedIn returns the values of references to secret managers.
func managedIn(references map[string]string) map[string]string {
	used := map[string]string{}
	for name, value := range references {
		if secretstore.Owns(name) {
			used[name] = value
		}
	}
	return used
}

// renewSecrets returns the settings of an upstream that is about to connect with the secrets that its managers have now.
// Settings that cannot be loaded now change nothing.
func (g *Gateway) renewSecrets(ctx context.Context, up config.Upstream) (config.Upstream, error) {
	cfg, load := g.cfg.Load(), g.load.Load()
	if cfg == nil || load == nil || g.opts.ManagedSecrets == nil {
		return up, nil
	}
	used := managedIn(cfg.References[up.ID])
	if len(used) == 0 || !g.opts.ManagedSecrets.Refresh(ctx, used) {
		return up, nil
	}
	now, err := (*load)()
	if err != nil {
		return up, nil //nolint:nilerr // the watcher reports it
	}
	g.learnSecrets(now)
	for _, other := range now.Upstreams {
		switch {
		case other.ID != up.ID:
		case other.Problem != "":
			return up, &tool.Error{Kind: tool.Upstream, Message: other.Problem}
		default:
			return other, nil
		}
	}
	return up, nil
}

// learnSecrets has the secrets of managers hidden, in addition to those of the settings in force.
func (g *Gateway) learnSecrets(cfg *config.Config) {
	for owner, references := range cfg.References {
		for _, value := range managedIn(references) {
			g.opts.secrets.Learn(owner, value)
		}
	}
}
