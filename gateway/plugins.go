package gateway

import (
	"context"
	"encoding/json"

	"sallyport/gateway/plugin"
	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// openPlugins opens the plugins, which need the sandboxes and the catalog.
func (g *Gateway) openPlugins() (err error) {
	g.Plugins, err = plugin.Open(plugin.Options{
		Settings: g.Reloader.Current(), Logger: g.log, CacheDir: g.opts.CacheDir, Secrets: g.opts.secrets,
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
	g.private = g.Privacy.Middleware(func(id string) bool { // results of this process itself need no search
		return g.Catalog.Attached(id) && !g.Plugins.Has(id)
	})
	return nil
}

// Step calls a step of a plugin for a workflow, and returns its value. As the call of a tool it passes policy, labels, approval
// and the search for personal data, and is recorded; a step of a plugin that reaches no host counts as one that only reads.
// Errors are *tool.Error.
func (g *Gateway) Step(ctx context.Context, c tool.Call) (value json.RawMessage, err error) {
	defer toolcall.Recover(ctx, g.log, c, new(tool.Result), &err)
	if !g.Endpoints.Of(ctx).Has(c.Tool) {
		return nil, toolcall.Unknown("step", c.Tool.String(), "")
	}
	result, err := g.Guard.Step(ctx, c, !g.Plugins.Reaches(c.Tool.Upstream), g.private(func(ctx context.Context, c tool.Call) (tool.Result, error) {
		output, err := g.Plugins.Step(ctx, c.Tool.Upstream, c.Tool.Name, c.Args)
		return tool.Result{Structured: output}, err
	}))
	return result.Structured, err
}
