package gateway

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"

	"sallyport/gateway/shapes"
	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// observed learns from good results what the results of a tool look like, where
// its upstream does not say. The call does not wait for that.
func (g *Gateway) observed(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Tool.Method() != "tools/call" || g.catalog.shapes.Store == nil {
			return next(ctx, c)
		}
		before, _ := g.catalog.known(c.Tool)
		result, err := next(ctx, c)
		if err != nil || result.IsError || asks(c, result) {
			return result, err
		}
		e, known := g.catalog.known(c.Tool)
		if known && e == before && !e.declares() { // else it is not known which definition the result is of
			g.catalog.shapes.Learn(c.Tool.Upstream, e.digest(), result)
		}
		return result, nil
	}
}

// asks reports whether the result is a question (MCP 2026-07-28) that the caller answers itself.
func asks(c tool.Call, result tool.Result) bool {
	return c.Rounds && bytes.Contains(result.Raw, []byte(`input_required`))
}

// learning is the store of observed shapes, and where it keeps them. The zero
// value learns nothing and shows nothing.
type learning struct {
	*shapes.Store
	files *shapes.Files // nil: in memory only
}

// openShapes begins to learn. What is learned is kept where the cache is.
func (c *catalog) openShapes() {
	opts := &shapes.Options{Logger: c.log, OnChange: c.reshape}
	if c.opts.CacheDir == "" {
		c.shapes = learning{Store: shapes.New(nil, opts)}
		return
	}
	files, err := shapes.OpenFiles(filepath.Join(c.opts.CacheDir, "shapes"))
	if err != nil {
		c.log.Warn("observed shapes are not kept", "error", err)
		c.shapes = learning{Store: shapes.New(nil, opts)}
		return
	}
	c.shapes = learning{shapes.New(files, opts), files}
}

// close keeps what was learned.
func (l learning) close() error {
	if l.Store != nil {
		l.Close()
	}
	if l.files == nil {
		return nil
	}
	return l.files.Close()
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
	if c.shapes.Store != nil && c.shapes.Has(t.ID.Upstream) && !e.declares() {
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
