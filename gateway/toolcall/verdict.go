package toolcall

import (
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// Verdict says what becomes of a call, and why.
type Verdict struct {
	Action policy.Action
	// Judged says that there are rules, which decided about it; labels are those that it brings.
	Judged bool
	Labels []string
	// Rule names what decided: a rule of the settings, "default", "flow" for a data-flow
	// rule, "approval" with By for a person's answer; "" where nothing had to.
	Rule string
	// Reason is for people who are asked or look later, message for the model that is refused.
	Reason, Message string
	// Approval is the id of the approval that was requested, "" for none.
	Approval string
	// Doubt says that a person is asked since the call may have been done already; decision is the answer where it does not
	// have the call made, and result what the call returned by a person's word.
	Doubt    bool
	Decision journal.Decision
	Result   tool.Result
	// Limited says that it is denied as a limit is used up.
	Limited bool
}

// Denied is the error for a call that the rules or a person refuse.
func (v Verdict) Denied() error {
	if v.Limited {
		return &tool.Error{Kind: tool.Limit, Message: v.Message}
	}
	return &tool.Error{Kind: tool.Denied, Message: v.Message}
}
