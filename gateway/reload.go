package gateway

import "sallyport/internal/config"

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
	g.Endpoints.Apply(cfg)                               // before clients hear of new lists
	g.Reloader.LearnSecrets(g.Reloader.Current().Load()) // what was replaced may still be seen
	g.opts.secrets.Set(cfg.SecretValues())
	counts, err := g.Catalog.Apply(cfg)
	if err != nil {
		return err
	}
	g.Reloader.Adopt(cfg)
	g.Plugins.Reload()
	g.Searcher.Apply(cfg.Search)
	if keys := g.Reloader.Settings().Restart; len(keys) > 0 {
		g.log.Warn("some settings take effect only after a restart", "keys", keys)
	}
	g.log.Info("settings reloaded", "config", cfg.Path, "added", counts.Added, "changed", counts.Changed, "removed", counts.Removed, "kept", counts.Kept)
	return nil
}
