package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"sallyport/gateway/approvals"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Approvals are the approvals of the caller, or of all principals for an operator. Only an operator can answer.
type Approvals interface {
	Approvals(ctx context.Context) ([]approvals.Approval, error)
	Answer(ctx context.Context, id string, answer approvals.Answer) (approvals.Approval, error)
}

// ApprovalList is what GET /approvals gives.
type ApprovalList struct {
	// Approvals are the pending and recently answered ones, the newest first.
	Approvals []approvals.Approval `json:"approvals"`
}

// Decision is what POST /approvals/{id} takes.
type Decision struct {
	// Decision is allow, deny, or, for a call that may already have been done, done.
	Decision string `json:"decision" enum:"allow,deny,done"`
	// Scope of an approval is once (the default: this call), execution or session (any call of the tool).
	Scope approval.Scope `json:"scope,omitempty"`
	// Reason is shown to the denied program, at most 300 bytes.
	Reason string `json:"reason,omitempty"`
	// Result is the result of a call that was done, in JSON; omitted if unknown.
	Result json.RawMessage `json:"result,omitempty"`
}

// The decisions.
const (
	Allow = "allow"
	Deny  = "deny"
	Done  = "done"
)

// maxReason is the maximum length of a reason, in bytes.
const maxReason = 300

func (a *api) approvals(r *http.Request) (ApprovalList, error) {
	all, err := a.service.Approvals(r.Context())
	if all == nil {
		all = []approvals.Approval{}
	}
	return ApprovalList{Approvals: all}, err
}

func (a *api) approval(r *http.Request) (approvals.Approval, error) {
	id := r.PathValue("id")
	all, err := a.service.Approvals(r.Context())
	if err != nil {
		return approvals.Approval{}, err
	}
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return approvals.Approval{}, &tool.Error{Kind: tool.NotFound, Message: "there is no approval " + sanitize.Line(id, 60), Hint: "GET /approvals lists them"}
}

func (a *api) decide(r *http.Request, d Decision) (approvals.Approval, error) {
	answer := approvals.Answer{Scope: d.Scope, By: tool.Operator(r.Context()), Note: sanitize.Line(d.Reason, maxReason)}
	switch {
	case d.Decision == Allow:
		answer.Allow = true
	case d.Decision == Done:
		answer.Done, answer.Result = true, d.Result
	case d.Scope != "":
		return approvals.Approval{}, invalid("a denial has no scope")
	}
	return a.service.Answer(r.Context(), r.PathValue("id"), answer)
}
