package gateway

import (
	"context"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// noteDecision has the record of a program's call say what becomes of it.
func noteDecision(ctx context.Context, v toolcall.Verdict) {
	if made := toolcall.AttemptOf(ctx); made != nil && (v.Judged || v.Rule != "") {
		made.Decide(v)
	}
}

// guarded decides about each call before it goes anywhere, and keeps what was decided and how it went:
// the upstream is connected first, judge says what the rules say, approve asks a person where they do, and what cannot be put on record is not done.
func (g *Gateway) guarded(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		at, err := g.arrive(ctx, c.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		v := doubted(ctx, g.judge(ctx, c))
		noteDecision(ctx, v)
		if v.Judged {
			g.opts.Telemetry.Decided(ctx, string(v.Action))
		}
		var held error
		if v.Action == policy.Ask {
			v, held = g.Approver.Approve(ctx, c, v)
			noteDecision(ctx, v)
		}
		if err := g.Auditor.RecordCall(ctx, c, v); err != nil {
			return tool.Result{}, err
		}
		if held != nil {
			return tool.Result{}, held
		}
		if err := recordDecision(ctx, v); err != nil {
			return tool.Result{}, err
		}
		if v.Action == policy.Deny {
			return tool.Result{}, v.Denied()
		}
		if v.Decision == journal.Done {
			return v.Result, nil
		}
		start := time.Now()
		if at.down != nil {
			g.Auditor.RecordResult(ctx, c, tool.Result{}, at.down, time.Since(start))
			return tool.Result{}, at.down
		}
		g.taint(ctx, c, v.Labels) // before the upstream says anything
		c.Leaving = g.leaving(ctx, c, at)
		result, err := next(ctx, c)
		g.Approver.Renew(ctx, v, result)
		g.Auditor.RecordResult(ctx, c, result, err, time.Since(start))
		return result, err
	}
}

// mayName refuses to send names of packages to an index for a session that may send nothing outside: a name can carry data.
func (g *Gateway) mayName(ctx context.Context) error {
	set := g.cfg.Load().Policy
	if !g.policies.rules.Load().on || set.Flow == policy.FlowOff || !policy.Trifecta([]string{policy.External}, g.flows.readSoFar(ctx)) {
		return nil
	}
	return &tool.Error{Kind: tool.Denied, Message: "policy refuses install_dependencies (flow): this session has read untrusted and private data, and names of packages go to an index outside",
		Hint: "install them in another session, before such data is read"}
}
