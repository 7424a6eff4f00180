package toolcall

import (
	"context"

	"sallyport/internal/policy"
)

// Demand is what a hook demands of a call: that it is refused, or that a person is asked. It takes effect unless the
// policy is stricter.
type Demand struct {
	Action policy.Action
	// Rule names the hook, Reason is for people, Message for the model that made the refused call.
	Rule, Reason, Message string
	// Limited says that it is refused because a limit is used up.
	Limited bool
}

// WithDemand returns a context for a call of which a hook demands something. A stricter demand stays in force.
func WithDemand(ctx context.Context, d Demand) context.Context {
	s := ScopeOf(ctx)
	if s.Demand != nil && s.Demand.Action == policy.Deny {
		return ctx
	}
	s.Demand = &d
	return s.In(ctx)
}

// Demanded returns the verdict with the demand of the hooks of the call in ctx, and a context without it, for the calls
// that this one makes.
func Demanded(ctx context.Context, v Verdict) (context.Context, Verdict) {
	s := ScopeOf(ctx)
	d := s.Demand
	if d == nil {
		return ctx, v
	}
	s.Demand = nil
	if v.Action != policy.Deny && (v.Action != policy.Ask || d.Action != policy.Ask) {
		v.Action, v.Rule, v.Reason, v.Message, v.Limited = d.Action, d.Rule, d.Reason, d.Message, d.Limited
	}
	return s.In(ctx), v
}
