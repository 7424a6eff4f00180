package auditor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Audit records an event on behalf of the caller in ctx. If it returns an error, a *tool.Error, the event must not take
// effect. e must not contain arguments, results or secrets.
func (a *Auditor) Audit(ctx context.Context, e audit.Event) error {
	return a.append(a.withCaller(ctx, e))
}

// withCaller adds the caller to an event.
func (a *Auditor) withCaller(ctx context.Context, e audit.Event) audit.Event {
	e.Principal, e.Client, e.By = tool.Principal(ctx), tool.Client(ctx), cmp.Or(e.By, tool.Operator(ctx))
	if session := tool.Session(ctx); session != "" && a.enabled() {
		e.Session = sanitize.Head(a.digest([]byte(session)), 16)
	}
	return e
}

// enabled reports whether the log is enabled.
func (a *Auditor) enabled() bool { return a != nil && a.dir != "" }

// callEvent returns an event about a call.
func (a *Auditor) callEvent(ctx context.Context, kind audit.Kind, c tool.Call) audit.Event {
	return a.withCaller(ctx, audit.Event{Kind: kind, Execution: c.Execution, Tool: c.Tool.String()})
}

// RecordCall records the decision on a call before the call is made. On error the call must not be made.
func (a *Auditor) RecordCall(ctx context.Context, c tool.Call, v toolcall.Verdict) error {
	if !a.enabled() {
		return nil
	}
	e := a.callEvent(ctx, audit.Call, c)
	e.Decision, e.Rule, e.Approval = string(v.Action), v.Rule, v.Approval
	e.Definition = a.opts.Definition(c.Tool)
	e.Arguments = a.digest(toolcall.Compact(c.Args))
	return a.append(e)
}

// RecordResult records the outcome of a call. An error is only logged: the call is already done.
func (a *Auditor) RecordResult(ctx context.Context, c tool.Call, result tool.Result, err error, took time.Duration) {
	if !a.enabled() {
		return
	}
	e := a.callEvent(ctx, audit.Result, c)
	e.Outcome, e.Micros, e.Bytes = toolcall.Outcome(result, err), took.Microseconds(), toolcall.TextSize(result)
	if c.Execution != "" {
		e.Saved = a.opts.Meter.Estimate(e.Bytes)
	}
	_ = a.append(e) // append has logged it, and the next call is refused
}

// RecordStart records the start of a program. On error the program must not run.
func (a *Auditor) RecordStart(ctx context.Context, e *execution.Result, program execution.Program) error {
	if !a.enabled() {
		return nil
	}
	event := a.executionEvent(ctx, audit.ExecutionStart, e, program)
	event.Environment, event.Workspace, event.Resumes = program.Environment, program.Workspace, program.Resume
	event.Limits = fmt.Sprintf("timeout=%s cpu=%s memory=%dMiB calls=%d", e.Limits.Timeout, e.Limits.CPU, e.Limits.Memory>>20, e.Limits.Calls)
	if a.opts.Settings.Load().Audit.Code == config.AuditText {
		event.Text = a.opts.Redact(program.Code)
	}
	return a.append(event)
}

func (a *Auditor) executionEvent(ctx context.Context, kind audit.Kind, e *execution.Result, program execution.Program) audit.Event {
	digest := sha256.Sum256([]byte(program.Code))
	return a.withCaller(ctx, audit.Event{Kind: kind, Execution: e.ID, Language: e.Language, Code: hex.EncodeToString(digest[:])})
}

// RecordEnd records how a program ended, or why it could not run.
func (a *Auditor) RecordEnd(ctx context.Context, e *execution.Result, program execution.Program, started time.Time, calls *toolcall.List, failed error) {
	if !a.enabled() {
		return
	}
	event := a.executionEvent(ctx, audit.ExecutionEnd, e, program)
	made, read := calls.Sums()
	event.Outcome, event.Exit, event.Micros, event.Calls = string(e.Status), e.Exit, time.Since(started).Microseconds(), made
	if failed != nil {
		refused := tool.AsError(failed)
		event.Outcome, event.Rule = "not_run:"+string(refused.Kind), refused.Rule
	} else {
		text := e.Text()
		event.Bytes = int64(len(text))
		event.Kept = a.opts.Durable
		event.Saved = a.opts.Meter.Estimate(max(0, read-event.Bytes))
		if db := a.opts.Settings.Load().Audit.Sinks.SurrealDB; db != nil && db.Output {
			event.Output = sanitize.Head(a.opts.Redact(text), maxAuditOutput)
		}
	}
	_ = a.append(event) // append has logged it, and the next program is refused
}

// maxAuditOutput is the maximum length of a program's output in the log, if the settings enable it, in characters.
const maxAuditOutput = 4 << 10

// appendApproval records a request for approval or its answer, before it takes effect.
func (a *Auditor) appendApproval(ctx context.Context, q approval.Approval) error {
	if !a.enabled() {
		return nil
	}
	e := a.withCaller(tool.WithPrincipal(ctx, q.Principal), audit.Event{
		Kind: audit.ApprovalAnswered, Execution: q.Execution, Tool: q.Tool, Approval: q.ID, Rule: q.Rule, By: q.By, Outcome: string(q.State), Note: a.opts.Redact(q.Note),
		Kept: a.opts.Durable,
	})
	switch {
	case q.State == approval.Waiting:
		e.Kind, e.Decision = audit.ApprovalAsked, string(policy.Ask)
	case q.State == approval.Denied:
		e.Decision = string(policy.Deny)
	case q.Scope != "":
		e.Decision, e.Outcome = string(policy.Allow), e.Outcome+":"+string(q.Scope)
	}
	return a.append(e)
}

// RecordApproval records a request for approval or its answer, before it takes effect. On error it must not take effect.
func (a *Auditor) RecordApproval(ctx context.Context, q approval.Approval) error {
	err := a.appendApproval(ctx, q)
	if err == nil {
		a.opts.CountApproval(ctx, string(q.State))
	}
	return err
}
