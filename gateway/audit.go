package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/plain"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// Audit puts an event on record, on behalf of whoever ctx says. The error is a *tool.Error: what is not on record must not
// be done. Nothing of e may hold an argument, a result or a secret.
func (g *Gateway) Audit(ctx context.Context, e audit.Event) error {
	return g.auditor.append(g.on(ctx, e))
}

// on adds to an event on whose behalf it is.
func (g *Gateway) on(ctx context.Context, e audit.Event) audit.Event {
	e.Principal, e.Client, e.By = tool.Principal(ctx), tool.Client(ctx), cmp.Or(e.By, tool.Operator(ctx))
	if session := tool.Session(ctx); session != "" && g.auditor.kept() {
		e.Session = plain.Head(g.auditor.digest([]byte(session)), 16)
	}
	return e
}

// kept reports whether anything is put on record.
func (a *auditor) kept() bool { return a != nil && a.dir != "" }

// about is an event about a call.
func (g *Gateway) about(ctx context.Context, kind audit.Kind, c tool.Call) audit.Event {
	return g.on(ctx, audit.Event{Kind: kind, Execution: c.Execution, Tool: c.Tool.String()})
}

// auditCall keeps what was decided about a call before it is made; what cannot be kept is not done.
func (g *Gateway) auditCall(ctx context.Context, c tool.Call, v toolcall.Verdict) error {
	if !g.auditor.kept() {
		return nil
	}
	e := g.about(ctx, audit.Call, c)
	e.Decision, e.Rule, e.Approval = string(v.Action), v.Rule, v.Approval
	if known, ok := g.catalog.known(c.Tool); ok {
		e.Definition = known.digest()
	}
	e.Arguments = g.auditor.digest(toolcall.Compact(c.Args))
	return g.auditor.append(e)
}

// auditResult keeps how a call went. It is done by now: that it cannot be kept is logged.
func (g *Gateway) auditResult(ctx context.Context, c tool.Call, result tool.Result, err error, took time.Duration) {
	if !g.auditor.kept() {
		return
	}
	e := g.about(ctx, audit.Result, c)
	e.Outcome, e.Micros, e.Bytes = toolcall.Outcome(result, err), took.Microseconds(), toolcall.TextSize(result)
	if c.Execution != "" {
		e.Saved = g.meter.Estimate(e.Bytes)
	}
	_ = g.auditor.append(e) // append has logged it, and the next call is refused
}

// auditStart keeps that a program is about to run; what cannot be kept is not run.
func (g *Gateway) auditStart(ctx context.Context, e *execution.Result, program execution.Program) error {
	if !g.auditor.kept() {
		return nil
	}
	event := g.execution(ctx, audit.ExecutionStart, e, program)
	event.Environment, event.Workspace, event.Resumes = program.Environment, program.Workspace, program.Resume
	event.Limits = fmt.Sprintf("timeout=%s cpu=%s memory=%dMiB calls=%d", e.Limits.Timeout, e.Limits.CPU, e.Limits.Memory>>20, e.Limits.Calls)
	if g.cfg.Load().Audit.Code == config.AuditText {
		event.Text = g.withoutPrivate(program.Code)
	}
	return g.auditor.append(event)
}

func (g *Gateway) execution(ctx context.Context, kind audit.Kind, e *execution.Result, program execution.Program) audit.Event {
	digest := sha256.Sum256([]byte(program.Code))
	return g.on(ctx, audit.Event{Kind: kind, Execution: e.ID, Language: e.Language, Code: hex.EncodeToString(digest[:])})
}

// auditEnd keeps how a program ended, or why it could not be run.
func (g *Gateway) auditEnd(ctx context.Context, e *execution.Result, program execution.Program, started time.Time, calls *toolcall.List, failed error) {
	if !g.auditor.kept() {
		return
	}
	event := g.execution(ctx, audit.ExecutionEnd, e, program)
	made, read := calls.Sums()
	event.Outcome, event.Exit, event.Micros, event.Calls = string(e.Status), e.Exit, time.Since(started).Microseconds(), made
	if failed != nil {
		event.Outcome = "not_run:" + string(tool.AsError(failed).Kind)
	} else {
		text := e.Text()
		event.Bytes = int64(len(text))
		event.Kept = g.History.Durable
		event.Saved = g.meter.Estimate(max(0, read-event.Bytes))
		if db := g.cfg.Load().Audit.Sinks.SurrealDB; db != nil && db.Output {
			event.Output = plain.Head(g.withoutPrivate(text), maxAuditOutput)
		}
	}
	_ = g.auditor.append(event) // append has logged it, and the next program is refused
}

// maxAuditOutput is how much of what a program said is kept where the settings want it, in characters.
const maxAuditOutput = 4 << 10

// withoutPrivate returns a text with names of kinds in place of personal data and secrets, whatever the settings of privacy say.
func (g *Gateway) withoutPrivate(text string) string {
	text = g.opts.secrets.For("").Text(text)
	return g.Privacy.Redact(text)
}

// auditApproval keeps what a person is asked and answers, before it counts; what cannot be kept does not.
func (g *Gateway) auditApproval(ctx context.Context, a approvals.Approval) error {
	if !g.auditor.kept() {
		return nil
	}
	e := g.on(tool.WithPrincipal(ctx, a.Principal), audit.Event{
		Kind: audit.ApprovalAnswered, Execution: a.Execution, Tool: a.Tool, Approval: a.ID, Rule: a.Rule, By: a.By, Outcome: string(a.State), Note: g.withoutPrivate(a.Note),
		Kept: g.History.Durable,
	})
	switch {
	case a.State == approval.Waiting:
		e.Kind, e.Decision = audit.ApprovalAsked, string(policy.Ask)
	case a.State == approval.Denied:
		e.Decision = string(policy.Deny)
	case a.Scope != "":
		e.Decision, e.Outcome = string(policy.Allow), e.Outcome+":"+string(a.Scope)
	}
	return g.auditor.append(e)
}

// recordApproval puts on record what a person is asked and answers, before it counts; what cannot be kept does not.
func (g *Gateway) recordApproval(ctx context.Context, a approval.Approval) error {
	err := g.auditApproval(ctx, a)
	if err == nil {
		g.opts.Telemetry.Asked(ctx, string(a.State))
	}
	return err
}

// definition returns the digest of a tool's definition, "" for one that is not known.
func (g *Gateway) definition(id tool.ID) string {
	if e, known := g.catalog.known(id); known {
		return e.digest()
	}
	return ""
}
