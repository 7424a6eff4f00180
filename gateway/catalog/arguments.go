package catalog

import (
	"bytes"
	"context"
	"encoding/json"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// Validate refuses what cannot succeed before the upstream sees it, with an error
// that tells what would: tools that are not there, and arguments that do not fit
// the input schema. A schema that is of no use for that is no reason to refuse a
// call: the upstream then judges for itself.
func (c *Catalog) Validate(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if args := bytes.TrimSpace(call.Args); len(args) == 0 || string(args) == "null" {
			call.Args = json.RawMessage("{}")
		}
		if call.Tool.Method() != "tools/call" {
			return c.method(ctx, call, next)
		}
		entry, err := c.Find(ctx, call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		if err = entry.Schema().Check(call.Args); err != nil {
			err = methods{c}.recheck(ctx, entry, call, err)
		}
		if err != nil && (methods{c}).fitsRestored(ctx, entry, call) {
			err = nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
}

// fitsRestored reports whether arguments that were refused fit once tokens have become values.
func (c methods) fitsRestored(ctx context.Context, judged *Entry, call tool.Call) bool {
	args, err := c.opts.Restore(ctx, call)
	return err == nil && judged.Schema().Check(args) == nil
}

// recheck looks at the definition of today before arguments are refused by one of
// an earlier run. It may have come since judged was looked up.
func (c methods) recheck(ctx context.Context, judged *Entry, call tool.Call, refused error) error {
	m, err := membership(c).wake(ctx, call.Tool.Upstream)
	if err != nil {
		return refused
	}
	entry, err := m.Find(call.Tool)
	switch {
	case err != nil:
		return err
	case entry == judged:
		return refused
	}
	return entry.Schema().Check(call.Args)
}
