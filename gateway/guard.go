package gateway

import (
	"context"
	"time"

	"sallyport/gateway/call"
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// verdict says what becomes of a call, and why.
type verdict struct {
	action policy.Action
	// judged says that there are rules, which decided about it; labels are those that it brings.
	judged bool
	labels []string
	// rule names what decided: a rule of the settings, "default", "flow" for a data-flow
	// rule, "approval" with By for a person's answer; "" where nothing had to.
	rule string
	// reason is for people who are asked or look later, message for the model that is refused.
	reason, message string
	// approval is the id of what a person was asked, "" if nobody was.
	approval string
	// doubt says that a person is asked since the call may have been done already; decision is the answer where it does not
	// have the call made, and result what the call returned by a person's word.
	doubt    bool
	decision journal.Decision
	result   tool.Result
	// limited says that it is denied as a limit is used up.
	limited bool
}

// noteDecision has the record of a program's call say what becomes of it.
func noteDecision(ctx context.Context, v verdict) {
	if made := madeBy(ctx); made != nil && (v.judged || v.rule != "") {
		made.decided(v)
	}
}

// denied is the error for a call that the rules or a person refuse.
func (v verdict) denied() error {
	if v.limited {
		return &tool.Error{Kind: tool.Limit, Message: v.message}
	}
	return &tool.Error{Kind: tool.Denied, Message: v.message}
}

// guarded decides about each call before it goes anywhere, and keeps what was decided and how it went:
// the upstream is connected first, judge says what the rules say, approve asks a person where they do, and what cannot be put on record is not done.
func (g *Gateway) guarded(next call.Handler) call.Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		at, err := g.arrive(ctx, call.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		v := doubted(ctx, g.judge(ctx, call))
		noteDecision(ctx, v)
		if v.judged {
			g.opts.Telemetry.Decided(ctx, string(v.action))
		}
		var held error
		if v.action == policy.Ask {
			v, held = g.approve(ctx, call, v)
			noteDecision(ctx, v)
		}
		if err := g.auditCall(ctx, call, v); err != nil {
			return tool.Result{}, err
		}
		if held != nil {
			return tool.Result{}, held
		}
		if err := g.recordDecision(ctx, v); err != nil {
			return tool.Result{}, err
		}
		if v.action == policy.Deny {
			return tool.Result{}, v.denied()
		}
		if v.decision == journal.Done {
			return v.result, nil
		}
		start := time.Now()
		if at.down != nil {
			g.auditResult(ctx, call, tool.Result{}, at.down, time.Since(start))
			return tool.Result{}, at.down
		}
		g.taint(ctx, call, v.labels) // before the upstream says anything
		call.Leaving = g.leaving(ctx, call, at)
		result, err := next(ctx, call)
		g.renew(ctx, v, result)
		g.auditResult(ctx, call, result, err, time.Since(start))
		return result, err
	}
}
