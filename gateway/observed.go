package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"

	"sallyport/gateway/shapes"
	"sallyport/internal/tool"
)

// observed learns from good results what the results of a tool look like, where
// its upstream does not say. The call does not wait for that.
func (g *Gateway) observed(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if call.Tool.Method() != "tools/call" {
			return next(ctx, call)
		}
		before, _ := g.catalog.known(call.Tool)
		result, err := next(ctx, call)
		if err != nil || result.IsError || asks(call, result) {
			return result, err
		}
		e, known := g.catalog.known(call.Tool)
		if known && e == before && !e.declares() { // else it is not known which definition the result is of
			g.catalog.shapes.Learn(call.Tool.Upstream, e.digest(), result)
		}
		return result, nil
	}
}

// asks reports whether the result is a question (MCP 2026-07-28) that the caller answers itself.
func asks(call tool.Call, result tool.Result) bool {
	return call.Rounds && bytes.Contains(result.Raw, []byte(`input_required`))
}

// openShapes starts the store of observed shapes; it keeps them where the cache is.
func (c *catalog) openShapes(dir string, log *slog.Logger) {
	opts := &shapes.Options{Logger: log, OnChange: c.reshape}
	if dir != "" {
		files, err := shapes.OpenFiles(filepath.Join(dir, "shapes"))
		if err == nil {
			c.shapes = shapes.New(files, opts)
			c.closeShapes = func() error { c.shapes.Close(); return files.Close() }
			return
		}
		log.Warn("observed shapes are not kept", "error", err)
	}
	c.shapes = shapes.New(nil, opts)
	c.closeShapes = func() error { c.shapes.Close(); return nil }
}

// reshape asks for a snapshot in which the upstream's tools show what was observed by now.
func (c *catalog) reshape(upstream string) {
	if m := c.roster.Load().byID[upstream]; m != nil {
		c.show(m)
	}
}

// withObserved returns the tool of an entry with what its results looked like.
func (c *catalog) withObserved(e *entry) tool.Tool {
	t := e.Tool
	if c.shapes.Has(t.ID.Upstream) && !e.declares() {
		t.Observed = c.shapes.Observed(t.ID.Upstream, e.digest())
	}
	return t
}

// observedTools returns a view's tools with what their results looked like.
func (c *catalog) observedTools(v *view) []tool.Tool {
	tools := slices.Clone(v.offer.Tools)
	for i, t := range tools {
		if e := v.entries[t.ID.Name]; e != nil {
			tools[i].Observed = c.withObserved(e).Observed
		}
	}
	return tools
}
