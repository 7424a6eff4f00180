package gateway

import (
	"bytes"
	"context"
	"encoding/json"

	"sallyport/gateway/call"
	"sallyport/internal/tool"
)

// checked refuses what cannot succeed before the upstream sees it, with an error
// that tells what would: tools that are not there, and arguments that do not fit
// the input schema. A schema that is of no use for that is no reason to refuse a
// call: the upstream then judges for itself.
func (g *Gateway) checked(next call.Handler) call.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if args := bytes.TrimSpace(call.Args); len(args) == 0 || string(args) == "null" {
			call.Args = json.RawMessage("{}")
		}
		if call.Tool.Method() != "tools/call" {
			return g.method(ctx, call, next)
		}
		_, entry, err := g.catalog.find(ctx, call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		if err = entry.input().Check(call.Args); err != nil {
			err = g.recheck(ctx, entry, call, err)
		}
		if err != nil && g.fitsRestored(ctx, entry, call) {
			err = nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
}

// fitsRestored reports whether arguments that were refused fit once tokens have become values.
func (g *Gateway) fitsRestored(ctx context.Context, judged *entry, call tool.Call) bool {
	args, err := g.Privacy.Arguments(ctx, call)
	return err == nil && judged.input().Check(args) == nil
}

// recheck looks at the definition of today before arguments are refused by one of
// an earlier run. It may have come since judged was looked up.
func (g *Gateway) recheck(ctx context.Context, judged *entry, call tool.Call, refused error) error {
	m, err := g.catalog.wake(ctx, call.Tool.Upstream)
	if err != nil {
		return refused
	}
	entry, err := m.find(call.Tool)
	switch {
	case err != nil:
		return err
	case entry == judged:
		return refused
	}
	return entry.input().Check(call.Args)
}
