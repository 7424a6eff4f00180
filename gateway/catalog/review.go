package catalog

import (
	"context"
	"errors"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/trust"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// HeldTool is a definition that is pending approval by a person, or that a person rejected; until it is approved the tool cannot
// be called. All its text is untrusted text of the upstream; invisible characters are written as <U+200B>.
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
	// Rejected says who rejected it, when and why; omitted while it waits.
	Rejected *Rejection `json:"rejected,omitempty"`
}

// Rejection is [trust.Rejection].
type Rejection = trust.Rejection

// HeldFinding is one thing that looks wrong with a definition.
type HeldFinding struct {
	// Rule names it in a word or two, Where is the path of the text in the definition, Text an excerpt.
	Rule  string `json:"rule"`
	Where string `json:"where"`
	Text  string `json:"text"`
}

// HeldReview is what an operator decides about a held definition.
type HeldReview struct {
	// Digest is that of the definition that the operator has seen.
	Digest string
	// Reject says that it must not be used, for the Reason or "". Otherwise it is approved, also if it was rejected before.
	Reject bool
	Reason string
}

// HeldTools returns the pending and the rejected definitions, by upstream and name. Errors are *tool.Error.
func (c *Catalog) HeldTools(ctx context.Context) ([]HeldTool, error) {
	held, err := reviews{c}.held(ctx)
	list := make([]HeldTool, len(held))
	for i, h := range held {
		list[i] = HeldTool{
			ID: h.ID(c.opts.Settings.Load()), Upstream: h.Upstream, Name: trust.Visible(h.Name[:min(len(h.Name), toolcall.MaxName)]), Digest: h.Digest, Reason: h.Reason, Why: h.Why(),
			Findings: make([]HeldFinding, len(h.Findings)), Diff: h.Diff(), Whole: h.Old == nil,
		}
		for j, f := range h.Findings {
			list[i].Findings[j] = HeldFinding{f.Rule, trust.Visible(f.Where), f.Text}
		}
		if h.IsRejected() {
			list[i].Rejected = &h.Rejection
		}
	}
	return list, err
}

// ReviewHeld approves or rejects the definition of a tool that has a digest; only operators may. It fails if another definition
// has arrived since. The decision is audited before it takes effect. Errors are *tool.Error.
func (c *Catalog) ReviewHeld(ctx context.Context, id tool.ID, r HeldReview) error {
	by := tool.Operator(ctx)
	if by == "" {
		return &tool.Error{Kind: tool.Denied, Message: "only an operator approves or rejects definitions"}
	}
	all, err := reviews{c}.held(ctx)
	if err != nil {
		return err
	}
	h, err := reviews{c}.selectHeld(all, id, r.Digest)
	if err != nil {
		return err
	}
	event, decide := ApprovalEvent(id, h), c.trustStore.Approve
	if r.Reject {
		event, decide = RejectionEvent(id, h, r.Reason), func(h ...trust.Held) error { return c.trustStore.Reject(by, r.Reason, h...) }
	}
	if err := c.opts.Audit(ctx, event); err != nil {
		return err
	}
	switch err := decide(h); {
	case errors.Is(err, trust.ErrNotHeld):
		return definitionChangedError(id)
	case err != nil:
		c.log.ErrorContext(ctx, "the review of a definition is not kept", "tool", id.String(), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the decision cannot be kept", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

// ApprovalEvent returns the audit event of the approval of a definition.
func ApprovalEvent(id tool.ID, h trust.Held) audit.Event {
	return audit.Event{Kind: audit.DefinitionApproved, Tool: id.String(), Definition: h.Digest, Note: h.Reason}
}

// RejectionEvent returns the audit event of the rejection of a definition.
func RejectionEvent(id tool.ID, h trust.Held, reason string) audit.Event {
	note := strings.TrimSuffix(h.Reason+": "+sanitize.Line(reason, trust.MaxReason), ": ")
	return audit.Event{Kind: audit.DefinitionRejected, Tool: id.String(), Definition: h.Digest, Note: note}
}

// reviews compares definitions with those that were approved.
type reviews struct{ *Catalog }

// held returns the definitions that are pending approval or rejected.
func (c reviews) held(ctx context.Context) ([]trust.Held, error) {
	if c.trustStore == nil {
		return nil, nil
	}
	held, err := c.trustStore.Held()
	if err != nil {
		c.log.ErrorContext(ctx, "cannot read held definitions", "error", err)
		return held, &tool.Error{Kind: tool.Internal, Message: "cannot read the held definitions", Hint: "the operator's log says why", Err: err}
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
	return &tool.Error{Kind: tool.Failed, Message: "the pending definition of " + sanitize.Line(id.String(), 100) + " is not the one that you saw", Hint: "review it again, then decide"}
}
