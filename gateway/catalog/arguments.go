package catalog

import (
	"bytes"
	"context"
	"encoding/json"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// Validate is middleware that rejects calls that cannot succeed: unknown tools, and
// arguments that do not match the input schema. The error says what would be valid.
// A call of a tool with an unusable schema is passed on: the upstream checks it.
func (c *Catalog) Validate(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		if args := bytes.TrimSpace(call.Args); len(args) == 0 || string(args) == "null" {
			call.Args = json.RawMessage("{}")
		}
		if call.Tool.Method() != "tools/call" {
			return methods{c}.handle(ctx, call, next)
		}
		entry, err := c.Find(ctx, call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		call.Args = entry.Schema().Rename(call.Args)
		if err = entry.Schema().Check(call.Args); err != nil {
			err = methods{c}.recheck(ctx, entry, call, err)
		}
		if err != nil && (methods{c}).fitsRestored(ctx, entry, call) {
			err = nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		result, err := next(ctx, call)
		result.Form = formOf(c, entry, result)
		return result, err
	}
}

// fitsRestored reports whether rejected arguments match once tokens are replaced by values.
func (c methods) fitsRestored(ctx context.Context, judged *Entry, call tool.Call) bool {
	args, err := c.opts.Restore(ctx, call)
	return err == nil && judged.Schema().Check(args) == nil
}

// recheck checks arguments against the current definition before one of an earlier
// run rejects them. The current one may have arrived after judged was looked up.
func (c methods) recheck(ctx context.Context, judged *Entry, call tool.Call, refused error) error {
	m, err := membership(c).ensureConnected(ctx, call.Tool.Upstream)
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
