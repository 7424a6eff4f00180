package reload

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

// startRenewal renews secrets until stop is called.
func (r *Reloader) startRenewal(ctx context.Context) (stop func()) {
	if r.opts.Managed == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { r.opts.Managed.Run(ctx) })
	return func() {
		cancel()
		work.Wait()
	}
}

func (r *Reloader) secretsChanged() bool {
	return r.opts.Managed != nil && r.opts.Managed.Changed()
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

// RenewSecrets returns the settings of an upstream that is about to connect with the secrets that its managers have now.
// Settings that cannot be loaded now change nothing.
func (r *Reloader) RenewSecrets(ctx context.Context, up config.Upstream) (config.Upstream, error) {
	cfg, load := r.cfg.Load(), r.load.Load()
	if load == nil || r.opts.Managed == nil {
		return up, nil
	}
	used := managedIn(cfg.References[up.ID])
	if len(used) == 0 || !r.opts.Managed.Refresh(ctx, used) {
		return up, nil
	}
	now, err := (*load)()
	if err != nil {
		return up, nil //nolint:nilerr // the watcher reports it
	}
	r.LearnSecrets(now)
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

// LearnSecrets has the secrets of managers hidden, in addition to those of the settings in force.
func (r *Reloader) LearnSecrets(cfg *config.Config) {
	for owner, references := range cfg.References {
		for _, value := range managedIn(references) {
			r.opts.Secrets.Learn(owner, value)
		}
	}
}
