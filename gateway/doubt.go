package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/approval"
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// doubt is why a call may have been done already. Only a person's answer about this call ends it, and that answer is on
// record before anything is done about it.
type doubt struct {
	why string
	// calls are those of before that it may repeat. The first is the same call, or all are calls of the same tool with
	// other arguments, which it may be another spelling of.
	calls []*past
	exact bool
}

// repeatable reports whether a tool says now that a second call does no more than the first.
func (g *Gateway) repeatable(id tool.ID) bool {
	if g.readOnly(id) {
		return true
	}
	e, known := g.catalog.known(id)
	return known && e.Annotations.Idempotent != nil && *e.Annotations.Idempotent
}

// harmless reports whether a call of before can be made once more, by the tool's word then and now.
func (g *Gateway) harmless(c journal.Call) bool {
	if g.readOnly(c.Tool) {
		return true
	}
	e, known := g.catalog.known(c.Tool)
	return known && e.digest() == c.Definition && g.repeatable(c.Tool)
}

// uncertain reports whether a call may have been done, though no result of it is known: its end is not on record, its result was
// not kept, or it failed otherwise than by the upstream's own word.
func uncertain(c journal.Call) bool {
	switch {
	case c.Decision == journal.Left:
		return true
	case c.Decision == journal.Done, c.State == journal.Refused:
		return false
	case c.State == journal.Begun, c.Lost:
		return true
	case c.Err == nil:
		return false
	}
	return !c.Err.Retryable && !slices.Contains([]tool.Kind{tool.Failed, tool.Invalid, tool.NotFound}, c.Err.Kind)
}

// doubtOf says why a call may have been done already: found is the same call of before, kin are those that it may be another
// spelling of. It is nil where it cannot have been, or does no harm.
func (g *Gateway) doubtOf(found *past, kin []*past, r *replay) *doubt {
	switch {
	case found != nil && found.fate == doubtful && !g.harmless(found.Call):
		return &doubt{why: doubtText(found.Call, "it", r.resumes), calls: []*past{found}, exact: true}
	case found == nil && len(kin) > 0:
		why := doubtText(kin[0].Call, "a call with other arguments", r.resumes) + "; this may be the same call"
		return &doubt{why: why, calls: kin}
	}
	return nil
}

// doubtText says why a call, which is named by what, may have been done.
func doubtText(c journal.Call, what, resumes string) string {
	switch {
	case c.Decision == journal.Left:
		return fmt.Sprintf("%s was left in doubt in %s", what, resumes)
	case c.Lost:
		return fmt.Sprintf("%s was done in %s, and its result was too large to be kept", what, resumes)
	case c.State == journal.Begun:
		return fmt.Sprintf("%s ended while %s was in flight: it may have been done", resumes, what)
	}
	return fmt.Sprintf("%s failed in %s in a way in which it may have been done", what, resumes)
}

// doubtRule is the rule of a verdict about a call that may have been done already.
const doubtRule = "resume"

// doubted has a person decide about a call that may have been done already, whatever the rules say but no.
func doubted(ctx context.Context, v verdict) verdict {
	made := madeBy(ctx)
	if made == nil || made.doubt == nil || v.action == policy.Deny {
		return v
	}
	v.action, v.rule, v.doubt = policy.Ask, strings.TrimPrefix(v.rule+", "+doubtRule, ", "), true
	v.reason = strings.TrimSuffix(made.doubt.why+"; "+v.reason, "; ")
	return v
}

// recordDecision puts on record what a person has said about a call that may have been done already, before the program learns it.
// It is for an answer that does not have the call made.
func (g *Gateway) recordDecision(ctx context.Context, v verdict) error {
	run, made := runningOf(ctx), madeBy(ctx)
	if v.decision == "" || made == nil || made.doubt == nil {
		return nil
	}
	var failed *tool.Error
	if v.decision == journal.Left {
		failed = tool.AsError(v.denied())
	}
	if err := run.replay.decide(run.journal, made, v.decision, v.result, failed); err != nil {
		g.unjournaled(ctx, run, err)
		return &tool.Error{Kind: tool.Internal, Message: "the journal cannot be written", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

// answeredDoubt is a verdict by what a person has said about a call that may have been done already.
func answeredDoubt(v verdict, a Approval) verdict {
	switch a.State {
	case approval.Done:
		v.decision, v.result = journal.Done, tool.Result{Structured: a.Result}
		if a.Result == nil {
			v.result = tool.Result{Content: []tool.Content{{Type: "text", Text: "done: no result was given"}}}
		}
		v.action = policy.Allow
	case approval.Denied:
		v.decision, v.action = journal.Left, policy.Deny
		v.message = refusal(a) + ": it may have been done, and is not made again"
	default:
		v.action = policy.Allow
	}
	return v
}

// doubtOrigins are the calls of before that a call may repeat: what a person says is about these, and no others that are the same.
func doubtOrigins(ctx context.Context) (origins []string) {
	made := madeBy(ctx)
	if made == nil || made.doubt == nil {
		return nil
	}
	for _, p := range made.doubt.calls {
		origins = append(origins, p.Origin)
	}
	return origins
}
