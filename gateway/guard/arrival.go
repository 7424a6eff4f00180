package guard

import (
	"bytes"
	"context"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// arrival is what there is at an upstream when a call of it is decided about.
type arrival struct {
	tool *catalog.Entry // nil for a method that is no tool, and where nobody has looked
	down error          // why it cannot be connected
}

// arrive connects the upstream of a call before it is decided about, so that policy and approvals see the definition that
// the call will meet. A call that is denied in any case connects nothing. An error says that the tool is held or gone.
func (g *Guard) arrive(ctx context.Context, id tool.ID) (arrival, error) {
	isTool := id.Method() == "tools/call"
	_, known := g.Catalog.Known(id)
	if isTool && g.Expected(ctx, id, known) == policy.Deny {
		return arrival{}, nil
	}
	at := arrival{down: g.Catalog.Reach(ctx, id.Upstream)}
	if at.down != nil || !isTool {
		return at, nil //nolint:nilerr // at says it: the call is decided about all the same
	}
	var err error
	at.tool, err = g.Catalog.Find(ctx, id) // which connects another that the settings have put in its place
	return at, err
}

// leaving returns what is asked before the call is sent: it keeps here what was decided about by another definition than
// the upstream has when the call would leave, unless the rules allow it by that one too.
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
		case !sameDefinition(now, latest): // it is about to be judged, or the settings have changed
			return changedMeanwhile(c.Tool)
		}
		return g.allowsStill(ctx, c)
	}
}

// sameDefinition reports whether two definitions differ in white space at most, as one that was
// kept in the cache does. The catalog compares views in the same way.
func sameDefinition(a tool.Tool, b *catalog.Entry) bool {
	return bytes.Equal(a.Raw, b.Raw) || a.Digest() == b.Digest()
}

// allowsStill decides again about a call that was allowed, or approved, by an earlier definition.
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
		Hint: "nothing was done: make the call again",
	}
}
