package catalog

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"

	"sallyport/gateway/resultschema"
	"sallyport/gateway/toolcall"
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// Learn is middleware that learns the shape of a tool's results from successful ones,
// if its definition does not declare it. The call does not wait for that.
func (c *Catalog) Learn(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if call.Tool.Method() != "tools/call" || c.shapes.Store == nil || perPrincipal(c, call.Tool.Upstream) {
			return next(ctx, call)
		}
		before, _ := c.Lookup(call.Tool)
		result, err := next(ctx, call)
		if err != nil || result.IsError || NeedsInput(call, result) {
			return result, err
		}
		e, known := c.Lookup(call.Tool)
		if known && e == before && !e.Declares() { // else the result may be of another definition
			result.Form = formOf(c, e, result)
			c.shapes.Learn(call.Tool.Upstream, e.Digest(), result)
		}
		return result, nil
	}
}

// formOf returns how a result of a tool is read: by the definition, else by earlier results. A tool that has given only
// texts gives texts.
func formOf(c *Catalog, e *Entry, result tool.Result) tool.Form {
	form := e.Form()
	if e.Declares() || c.shapes.Store == nil || len(result.Content) != 1 || len(result.Content[0].Text) > 10 {
		return form
	}
	if seen := c.shapes.Lookup(e.ID.Upstream, e.Digest()); seen != nil {
		form.Texts = seen.Shape.Kinds&^jsontype.Null == jsontype.String
	}
	return form
}

// NeedsInput reports whether the result is a request for input, or a task (MCP 2026-07-28), that the caller handles itself.
func NeedsInput(call tool.Call, result tool.Result) bool {
	return call.Rounds && bytes.Contains(result.Raw, []byte(`input_required`)) || call.KeepsTasks && bytes.Contains(result.Raw, []byte(`"task"`))
}

// shapeStore is the store of observed shapes. The zero value is disabled.
type shapeStore struct {
	*resultschema.Store
	end func() error // closes what it is stored in
}

// observations adds observed result shapes to tools.
type observations struct{ *Catalog }

// openShapes opens the store of observed shapes: in the records that gateways share, else in files in the cache folder, else in
// memory.
func (c observations) openShapes() {
	opts := &resultschema.Options{Logger: c.log, OnChange: c.onShapesChanged}
	keeper, end, err := c.shapeStorage()
	if err != nil {
		c.log.Warn("observed shapes are kept in memory only", "error", err)
	}
	c.shapes = shapeStore{resultschema.New(keeper, opts), end}
	if shared, ok := keeper.(*resultschema.Shared); ok {
		unsubscribe := shared.Subscribe(c.log, c.shapes.Refresh)
		c.shapes.end = func() error { unsubscribe(); return nil }
	}
}

// shapeStorage returns where shapes are stored, nil for nowhere, and what closes it.
func (c observations) shapeStorage() (resultschema.Storage, func() error, error) {
	none := func() error { return nil }
	switch {
	case c.opts.Records.Shared():
		shared, err := resultschema.NewShared(c.opts.Records)
		if err != nil {
			return nil, none, err
		}
		return shared, none, nil
	case c.opts.CacheDir == "":
		return nil, none, nil
	}
	files, err := resultschema.OpenFiles(filepath.Join(c.opts.CacheDir, "shapes"))
	if err != nil {
		return nil, none, err
	}
	return files, files.Close, nil
}

// close saves what was learned.
func (l shapeStore) close() error {
	if l.Store == nil {
		return nil
	}
	l.Close()
	return l.end()
}

// onShapesChanged requests a snapshot with the shapes observed so far for the upstream's tools.
func (c observations) onShapesChanged(upstream string) {
	if m := c.roster.Load().byID[upstream]; m != nil {
		membership(c).markStale(m)
	}
}

// WithObserved returns the tool of an entry with the observed shape of its results.
func (c *Catalog) WithObserved(e *Entry) tool.Tool {
	t := e.Tool
	if c.shapes.Store != nil && c.shapes.Has(t.ID.Upstream) && !e.Declares() {
		t.Observed = c.shapes.Lookup(t.ID.Upstream, e.Digest())
	}
	return t
}

// observedTools returns a view's tools with the observed shapes of their results.
func (c observations) observedTools(v *view) []tool.Tool {
	tools := slices.Clone(v.offer.Tools)
	for i, t := range tools {
		if e := v.entries[t.ID.Name]; e != nil {
			tools[i].Observed = c.WithObserved(e).Observed
		}
	}
	return tools
}
