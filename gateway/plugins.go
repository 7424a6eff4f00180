package gateway

import (
	"context"

	"sallyport/gateway/plugin"
	"sallyport/sandbox"
)

// openPlugins opens the plugins, which need the sandboxes and the catalog.
func (g *Gateway) openPlugins() (err error) {
	g.Plugins, err = plugin.Open(plugin.Options{
		Settings: &g.cfg, Logger: g.log, CacheDir: g.opts.CacheDir, Secrets: g.opts.secrets,
		Serve: func(service sandbox.Service) (plugin.Conn, error) { return g.Sandboxes.Serve(service) },
		Attach: func(id, description string, up *plugin.Upstream) (func(), error) {
			return g.Catalog.Attach(id, description, up)
		},
		OnKinds: func(kinds []string) {
			if err := g.Privacy.SetKinds(kinds); err != nil {
				g.log.Error("recognizers of plugins are not used", "error", err)
			}
		},
	})
	if err != nil {
		return err
	}
	g.Privacy.Plugins = g.Plugins
	return nil
}

// trusted reports whether an upstream is a part of this process whose results need no search for personal data.
func (g *Gateway) trusted(id string) bool { return g.Catalog.Attached(id) && !g.Plugins.Has(id) }

// checkProgram has the checks of plugins judge a program.
func (g *Gateway) checkProgram(ctx context.Context, code, language string) error {
	return g.Plugins.Check(ctx, code, language)
}
