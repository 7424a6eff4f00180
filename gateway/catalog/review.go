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

// HeldTool is a definition that waits for a person's approval: the tool cannot be called before that. All text in it is an
// upstream's and hostile; characters that do not show are written as <U+200B> in it.
type HeldTool struct {
	ID tool.ID `json:"id"`
	// Upstream is its name in the settings, Name what the upstream calls the tool.
	Upstream string `json:"upstream"`
	Name     string `json:"name"`
	// Digest is what is approved: this definition, and no other that may come.
	Digest string `json:"digest"`
	// Reason is "new", "changed" or "suspicious", Why the same in words.
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Findings say what looks wrong with its text.
	Findings []HeldFinding `json:"findings"`
	// Diff is what would change, as a unified diff of definitions laid out to be read; all of the new one where Whole.
	Diff  string `json:"diff"`
	Whole bool   `json:"whole,omitempty"`
}

// HeldFinding is one thing that looks wrong with a definition.
type HeldFinding struct {
	// Rule names it in a word or two, Where leads to the text in the definition, Text is a piece of it.
	Rule  string `json:"rule"`
	Where string `json:"where"`
	Text  string `json:"text"`
}

// HeldTools returns the definitions that wait, by upstream and name. Errors are *tool.Error.
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

// ApproveHeld has programs call a tool by the definition with a digest, for an operator: the one that they have seen, and
// no other that may have come since. It is put on record before it is done. Errors are *tool.Error.
func (c *Catalog) ApproveHeld(ctx context.Context, id tool.ID, digest string) error {
	if tool.Operator(ctx) == "" {
		return &tool.Error{Kind: tool.Denied, Message: "only an operator approves definitions"}
	}
	all, err := reviews{c}.pending(ctx)
	if err != nil {
		return err
	}
	h, err := reviews{c}.chosen(all, id, digest)
	if err != nil {
		return err
	}
	if err := c.opts.Audit(ctx, audit.Event{Kind: audit.DefinitionApproved, Tool: id.String(), Definition: h.Digest, Note: h.Reason}); err != nil {
		return err
	}
	switch err := c.book.Approve(h); {
	case errors.Is(err, trust.ErrNotHeld):
		return otherDefinition(id)
	case err != nil:
		c.log.ErrorContext(ctx, "definition is not approved", "tool", id.String(), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the approval cannot be kept", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

// reviews compares definitions with those that were approved.
type reviews struct{ *Catalog }

// pending returns the definitions that wait for approval.
func (c reviews) pending(ctx context.Context) ([]trust.Held, error) {
	if c.book == nil {
		return nil, nil
	}
	held, err := c.book.Held()
	if err != nil {
		c.log.ErrorContext(ctx, "definitions that wait cannot be read", "error", err)
		return held, &tool.Error{Kind: tool.Internal, Message: "the definitions that wait cannot be read", Hint: "the operator's log says why", Err: err}
	}
	return held, nil
}

// chosen returns the definition with the tool's id and the digest that the operator has seen.
func (c reviews) chosen(all []trust.Held, id tool.ID, digest string) (trust.Held, error) {
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
		return trust.Held{}, otherDefinition(id)
	}
	return trust.Held{}, &tool.Error{Kind: tool.NotFound, Message: "nothing of " + sanitize.Line(id.String(), 100) + " waits for approval"}
}

func otherDefinition(id tool.ID) *tool.Error {
	return &tool.Error{Kind: tool.Failed, Message: "the definition of " + sanitize.Line(id.String(), 100) + " that waits is not the one that you saw", Hint: "look at it again, and then approve it"}
}
