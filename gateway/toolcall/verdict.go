package toolcall

import (
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// Verdict is the decision on a call.
type Verdict struct {
	Action policy.Action
	// Judged says that rules decided on it; Labels are the labels of its result.
	Judged bool
	Labels []string
	// Rule names the rule that decided: one of the settings, "default", or "flow" for a
	// data-flow rule; "" for none.
	Rule string
	// Reason is for people, Message for the model that made the refused call.
	Reason, Message string
	// Approval is the id of the approval that was requested, "" for none.
	Approval string
	// Doubt says that a person is asked because the call may already have been done. Decision is the answer if it does not
	// make the call, and Result the result that the person entered.
	Doubt    bool
	Decision journal.Decision
	Result   tool.Result
	// Limited says that it is denied because a limit is exhausted.
	Limited bool
}

// DenyError returns the error for a call that the rules or a person refuse.
func (v Verdict) DenyError() error {
	if v.Limited {
		return &tool.Error{Kind: tool.Limit, Message: v.Message}
	}
	return &tool.Error{Kind: tool.Denied, Message: v.Message}
}
