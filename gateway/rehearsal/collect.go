package rehearsal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// recorded is a call on record.
type recorded struct {
	policy.Call
	was policy.Action
	// digest is that of the arguments, journal the journal that may have them; nil for none.
	digest  string
	journal *journal
}

// args returns the arguments, false if they are not kept.
func (c recorded) args(ctx context.Context, from Records) (json.RawMessage, bool) {
	if c.journal == nil {
		return nil, false
	}
	args, ok := c.journal.read(ctx, from)[c.digest]
	return args, ok
}

// journal has the arguments of the calls of an execution.
type journal struct {
	execution string
	kept      map[string]json.RawMessage // by digest; nil before the first use
}

// read reads the journal once.
func (j *journal) read(ctx context.Context, from Records) map[string]json.RawMessage {
	if j.kept != nil {
		return j.kept
	}
	j.kept = map[string]json.RawMessage{}
	for at := 0; ; {
		page, err := from.JournalCalls(ctx, j.execution, at, 0)
		if err != nil || len(page.Calls) == 0 {
			return j.kept
		}
		for _, c := range page.Calls {
			if c.Arguments != "" && len(c.Arguments) == c.ArgumentsSize {
				j.kept[c.Digest] = json.RawMessage(c.Arguments)
			}
		}
		at += len(page.Calls)
	}
}

// collect returns the calls since the beginning of the span, the oldest first.
func (r *run) collect(ctx context.Context) (all []recorded, err error) {
	programs := map[string]bool{}
	for record, err := range r.Records.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if record.Started.Add(record.Duration).Before(r.Since) {
			continue
		}
		programs[record.ID] = true
		all = append(all, callsOf(record, r.Since)...)
		if more := record.Made - len(record.Calls); more > 0 {
			r.note(fmt.Sprintf("%d calls of the program %s are not on record.", more, record.ID))
		}
	}
	others, err := r.audited(ctx, programs)
	if err != nil {
		return nil, err
	}
	all = append(all, others...)
	slices.SortStableFunc(all, func(a, b recorded) int { return a.Time.Compare(b.Time) })
	if over := len(all) - maxCalls; over > 0 {
		r.note(fmt.Sprintf("Only the last %d calls were decided again.", maxCalls))
		all = all[over:]
	}
	return all, nil
}

// callsOf returns the calls of a program.
func callsOf(p history.Record, since time.Time) (all []recorded) {
	j, before := &journal{execution: p.ID}, map[string]int64{}
	for _, c := range p.Calls {
		if c.Replayed || c.Tool.Upstream == toolcall.GatewayID {
			continue
		}
		counts := maps.Clone(before)
		before[c.Tool.String()]++
		before[c.Tool.Upstream]++
		if c.Begun.Before(since) {
			continue
		}
		call := policy.Call{
			Tool: c.Tool, Principal: p.Principal, Session: p.Session, Execution: p.ID, Remote: p.Remote, Time: c.Begun,
			Calls: func() map[string]int64 { return counts }, Read: readBefore(p.Read, c.Begun),
		}
		all = append(all, recorded{call, was(c.Decision, c.Approval), c.Arguments, j})
	}
	return all
}

// readBefore returns the labels that were read before a time.
func readBefore(origins []toolcall.Origin, at time.Time) (labels []string) {
	for _, o := range origins {
		if o.Time.Before(at) {
			labels = append(labels, o.Label)
		}
	}
	return labels
}

// was returns the action of a decision on record.
func was(decision, approval string) policy.Action {
	if approval != "" && decision != string(policy.Deny) {
		return policy.Ask
	}
	return cmp.Or(policy.Action(decision), policy.Allow)
}

// withoutLog notes that there is no audit log, if that is the error.
func (r *run) withoutLog(err error) error {
	if tool.AsError(err).Kind != tool.NotFound {
		return err
	}
	r.note("There is no audit log, so only calls of programs were decided again.")
	return nil
}

// callOf returns the call of an event, false if it is no call of an upstream.
func callOf(e audit.Event) (recorded, bool) {
	id, err := tool.ParseID(e.Tool)
	call := policy.Call{Tool: id, Principal: e.Principal, Session: e.Session, Execution: e.Execution, Remote: e.Principal != "", Time: e.Time}
	return recorded{Call: call, was: was(e.Decision, e.Approval)}, err == nil && id.Upstream != toolcall.GatewayID
}

// maxPages bounds how much of the audit log is read.
const maxPages = 100

// audited returns the calls that the audit log has, without those of the programs.
func (r *run) audited(ctx context.Context, programs map[string]bool) (all []recorded, err error) {
	filter := auditor.Filter{Kind: string(audit.Call), Since: r.Since, Limit: 1000}
	for range maxPages {
		page, err := r.Records.AuditLog(ctx, filter)
		if err != nil {
			return nil, r.withoutLog(err)
		}
		for _, e := range page.Events {
			if c, ok := callOf(e); ok && !programs[e.Execution] {
				all = append(all, c)
			}
		}
		if filter.Before = page.Next; page.Next == 0 || len(all) > maxCalls {
			return all, nil
		}
	}
	r.note("The audit log has more records of that time than were read.")
	return all, nil
}
