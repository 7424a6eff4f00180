package guard

import (
	"bytes"
	"context"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// resolution is the state of an upstream when a call to it is decided.
type resolution struct {
	tool        *catalog.Entry // nil for a method that is not a tool call, and if it was not looked up
	unreachable error          // why the upstream cannot be connected
}

// resolve connects the upstream of a call before the call is decided, so that policy and approvals see the tool's current
// definition. A call that is always denied does not connect it. An error says that the tool is quarantined or gone.
func (g *Guard) resolve(ctx context.Context, id tool.ID) (resolution, error) {
	isTool := id.Method() == "tools/call"
	_, known := g.Catalog.Lookup(id)
	if isTool && g.ExpectedAction(ctx, id, known) == policy.Deny {
		return resolution{}, nil
	}
	at := resolution{unreachable: g.Catalog.Connect(ctx, id.Upstream)}
	if at.unreachable != nil || !isTool {
		return at, nil //nolint:nilerr // at has the error: the call is decided in any case
	}
	var err error
	at.tool, err = g.Catalog.Find(ctx, id) // it may connect a replacement from reloaded settings
	return at, err
}

// beforeSend returns a check to run just before the call is sent. It stops a call whose tool definition has changed since the
// decision, unless the rules also allow the call with the new definition.
func (g *Guard) beforeSend(ctx context.Context, c tool.Call, at resolution) func(tool.Tool) error {
	if at.tool == nil {
		return nil
	}
	return func(now tool.Tool) error {
		if sameDefinition(now, at.tool) {
			return nil
		}
		latest, err := g.Catalog.Current(c.Tool)
		switch {
		case err != nil:
			return err
		case !sameDefinition(now, latest): // its definition is about to be checked, or the settings have changed
			return definitionChanged(c.Tool)
		}
		return g.recheck(ctx, c)
	}
}

// sameDefinition reports whether two definitions are equal except for white space, which a cached
// one may differ in. The catalog compares views in the same way.
func sameDefinition(a tool.Tool, b *catalog.Entry) bool {
	return bytes.Equal(a.Raw, b.Raw) || a.Digest() == b.Digest()
}

// recheck decides again on a call that was allowed or approved with an earlier definition.
func (g *Guard) recheck(ctx context.Context, c tool.Call) error {
	r := g.policies.rules.Load()
	if !r.on {
		return nil
	}
	d := r.WithFreshCounts().Decide(ctx, g.facts(ctx, r, c))
	switch d.Action {
	case policy.Allow:
		return nil
	case policy.Deny:
		return toolcall.Verdict{Message: refusalMessage(c.Tool, d)}.DenyError()
	}
	return definitionChanged(c.Tool)
}

func definitionChanged(id tool.ID) error {
	return &tool.Error{
		Kind: tool.Upstream, Message: "the definition of " + id.String() + " changed before the call was sent", Retryable: true,
		Hint: "nothing was done: retry the call",
	}
}
