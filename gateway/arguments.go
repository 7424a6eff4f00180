package gateway

import (
	"bytes"
	"context"
	"encoding/json"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// checked refuses what cannot succeed before the upstream sees it, with an error
// that tells what would: tools that are not there, and arguments that do not fit
// the input schema. A schema that is of no use for that is no reason to refuse a
// call: the upstream then judges for itself.
func (g *Gateway) checked(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if args := bytes.TrimSpace(c.Args); len(args) == 0 || string(args) == "null" {
			c.Args = json.RawMessage("{}")
		}
		if c.Tool.Method() != "tools/call" {
			return g.method(ctx, c, next)
		}
		_, entry, err := g.catalog.find(ctx, c.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		if err = entry.input().Check(c.Args); err != nil {
			err = g.recheck(ctx, entry, c, err)
		}
		if err != nil && g.fitsRestored(ctx, entry, c) {
			err = nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, c)
	}
}

// fitsRestored reports whether arguments that were refused fit once tokens have become values.
func (g *Gateway) fitsRestored(ctx context.Context, judged *entry, c tool.Call) bool {
	args, err := g.Privacy.Arguments(ctx, c)
	return err == nil && judged.input().Check(args) == nil
}

// recheck looks at the definition of today before arguments are refused by one of
// an earlier run. It may have come since judged was looked up.
func (g *Gateway) recheck(ctx context.Context, judged *entry, c tool.Call, refused error) error {
	m, err := g.catalog.wake(ctx, c.Tool.Upstream)
	if err != nil {
		return refused
	}
	entry, err := m.find(c.Tool)
	switch {
	case err != nil:
		return err
	case entry == judged:
		return refused
	}
	return entry.input().Check(c.Args)
}
