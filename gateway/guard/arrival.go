package guard

import (
	"bytes"
	"context"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// arrival is the state of an upstream when a call to it is decided.
type arrival struct {
	tool *catalog.Entry // nil for a method that is not a tool call, and if it was not looked up
	down error          // why the upstream cannot be connected
}

// arrive connects the upstream of a call before the call is decided, so that policy and approvals see the tool's current
// definition. A call that is always denied does not connect it. An error says that the tool is quarantined or gone.
func (g *Guard) arrive(ctx context.Context, id tool.ID) (arrival, error) {
	isTool := id.Method() == "tools/call"
	_, known := g.Catalog.Known(id)
	if isTool && g.Expected(ctx, id, known) == policy.Deny {
		return arrival{}, nil
	}
	at := arrival{down: g.Catalog.Reach(ctx, id.Upstream)}
	if at.down != nil || !isTool {
		return at, nil //nolint:nilerr // at has the error: the call is decided in any case
	}
	var err error
	at.tool, err = g.Catalog.Find(ctx, id) // it may connect a replacement from reloaded settings
	return at, err
}

// leaving returns a check to run just before the call is sent. It stops a call whose tool definition has changed since the
// decision, unless the rules also allow the call with the new definition.
func (g *Guard) leaving(ctx context.Context, c tool.Call, at arrival) func(tool.Tool) error {
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
			return changedMeanwhile(c.Tool)
		}
		return g.allowsStill(ctx, c)
	}
}

// sameDefinition reports whether two definitions are equal except for white space, which a cached
// one may differ in. The catalog compares views in the same way.
func sameDefinition(a tool.Tool, b *catalog.Entry) bool {
	return bytes.Equal(a.Raw, b.Raw) || a.Digest() == b.Digest()
}

// allowsStill decides again on a call that was allowed or approved with an earlier definition.
func (g *Guard) allowsStill(ctx context.Context, c tool.Call) error {
	r := g.policies.rules.Load()
	if !r.on {
		return nil
	}
	d := r.Uncounted().Decide(ctx, g.facts(ctx, r, c))
	switch d.Action {
	case policy.Allow:
		return nil
	case policy.Deny:
		return toolcall.Verdict{Message: refusedBy(c.Tool, d)}.Denied()
	}
	return changedMeanwhile(c.Tool)
}

func changedMeanwhile(id tool.ID) error {
	return &tool.Error{
		Kind: tool.Upstream, Message: "the definition of " + id.String() + " changed before the call was sent", Retryable: true,
		Hint: "nothing was done: retry the call",
	}
}
