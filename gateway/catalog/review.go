package catalog

import (
	"context"
	"errors"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/trust"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// HeldTool is a definition that is pending approval by a person; until then the tool cannot be called. All its text is
// untrusted text of the upstream; invisible characters are written as <U+200B>.
type HeldTool struct {
	ID tool.ID `json:"id"`
	// Upstream is its name in the settings, Name what the upstream calls the tool.
	Upstream string `json:"upstream"`
	Name     string `json:"name"`
	// Digest identifies the definition that is approved.
	Digest string `json:"digest"`
	// Reason is "new", "changed" or "suspicious", Why the same in words.
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Findings say what looks wrong with its text.
	Findings []HeldFinding `json:"findings"`
	// Diff is a unified diff of the readable definitions; the whole new definition where Whole.
	Diff  string `json:"diff"`
	Whole bool   `json:"whole,omitempty"`
}

// HeldFinding is one thing that looks wrong with a definition.
type HeldFinding struct {
	// Rule names it in a word or two, Where is the path of the text in the definition, Text an excerpt.
	Rule  string `json:"rule"`
	Where string `json:"where"`
	Text  string `json:"text"`
}

// HeldTools returns the pending definitions, by upstream and name. Errors are *tool.Error.
func (c *Catalog) HeldTools(ctx context.Context) ([]HeldTool, error) {
	held, err := reviews{c}.pending(ctx)
	list := make([]HeldTool, len(held))
	for i, h := range held {
		list[i] = HeldTool{
			ID: h.ID(c.opts.Settings.Load()), Upstream: h.Upstream, Name: trust.Visible(h.Name[:min(len(h.Name), toolcall.MaxName)]), Digest: h.Digest, Reason: h.Reason, Why: h.Why(),
			Findings: make([]HeldFinding, len(h.Findings)), Diff: h.Diff(), Whole: h.Old == nil,
		}
		for j, f := range h.Findings {
			list[i].Findings[j] = HeldFinding{f.Rule, trust.Visible(f.Where), f.Text}
		}
	}
	return list, err
}

// ApproveHeld approves the definition of a tool that has a digest; only operators may. It fails if another definition has
// arrived since. The approval is audited before it takes effect. Errors are *tool.Error.
func (c *Catalog) ApproveHeld(ctx context.Context, id tool.ID, digest string) error {
	if tool.Operator(ctx) == "" {
		return &tool.Error{Kind: tool.Denied, Message: "only an operator approves definitions"}
	}
	all, err := reviews{c}.pending(ctx)
	if err != nil {
		return err
	}
	h, err := reviews{c}.selectHeld(all, id, digest)
	if err != nil {
		return err
	}
	if err := c.opts.Audit(ctx, audit.Event{Kind: audit.DefinitionApproved, Tool: id.String(), Definition: h.Digest, Note: h.Reason}); err != nil {
		return err
	}
	switch err := c.trustStore.Approve(h); {
	case errors.Is(err, trust.ErrNotHeld):
		return definitionChangedError(id)
	case err != nil:
		c.log.ErrorContext(ctx, "definition is not approved", "tool", id.String(), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the approval cannot be kept", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

// reviews compares definitions with those that were approved.
type reviews struct{ *Catalog }

// pending returns the definitions that are pending approval.
func (c reviews) pending(ctx context.Context) ([]trust.Held, error) {
	if c.trustStore == nil {
		return nil, nil
	}
	held, err := c.trustStore.Pending()
	if err != nil {
		c.log.ErrorContext(ctx, "cannot read pending definitions", "error", err)
		return held, &tool.Error{Kind: tool.Internal, Message: "cannot read the pending definitions", Hint: "the operator's log says why", Err: err}
	}
	return held, nil
}

// selectHeld returns the definition with the tool's id and the digest that the operator has seen.
func (c reviews) selectHeld(all []trust.Held, id tool.ID, digest string) (trust.Held, error) {
	waits := false
	for _, h := range all {
		if h.ID(c.opts.Settings.Load()) != id {
			continue
		}
		if h.Digest == digest {
			return h, nil
		}
		waits = true
	}
	if waits {
		return trust.Held{}, definitionChangedError(id)
	}
	return trust.Held{}, &tool.Error{Kind: tool.NotFound, Message: "no definition of " + sanitize.Line(id.String(), 100) + " is pending approval"}
}

func definitionChangedError(id tool.ID) *tool.Error {
	return &tool.Error{Kind: tool.Failed, Message: "the pending definition of " + sanitize.Line(id.String(), 100) + " is not the one that you saw", Hint: "review it again, then approve it"}
}
