// Package guard decides which calls may be made: by policy, by the labels of what was read before, and by approval.
package guard

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/auditor"
	"sallyport/gateway/catalog"
	"sallyport/gateway/privacy"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workspaces"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Catalog provides the definitions of tools. *[catalog.Catalog] implements it.
type Catalog interface {
	// Lookup returns a callable tool without waiting.
	Lookup(id tool.ID) (*catalog.Entry, bool)
	// Connect connects an upstream if it is not connected.
	Connect(ctx context.Context, upstream string) error
	// Find returns a tool to call. It connects the upstream if necessary. The error says that the tool is quarantined or unknown.
	Find(ctx context.Context, id tool.ID) (*catalog.Entry, error)
	// Current is Find without connecting anything.
	Current(id tool.ID) (*catalog.Entry, error)
}

// Options are the dependencies of a guard.
type Options struct {
	// Settings are the settings in force.
	Settings config.Source
	// Records stores the labels of workspace files, and what several gateways count together; nil keeps them in memory.
	Records    *store.Store
	Logger     *slog.Logger
	Telemetry  *telemetry.Telemetry
	Privacy    *privacy.Tokenizer
	Workspaces *workspaces.Workspaces
	Approver   *approvals.Approver
	Auditor    *auditor.Auditor
	// Directory has the groups of principals.
	Directory *access.Directory
}

// Guard decides which calls may be made: by policy, by the labels of what was read before, and by approval. It is safe for concurrent use.
type Guard struct {
	// Catalog must be set before the first call.
	Catalog Catalog

	opts     Options
	policies policies
	flows    flows
}

// New returns a guard without rules; call Apply next.
func New(opts Options) (g *Guard, err error) {
	shared, err := openCounts(opts.Records, opts.Logger)
	if err != nil {
		return nil, err
	}
	g = &Guard{opts: opts, policies: policies{counts: policy.NewCounts(shared)}}
	if g.flows.shared, err = openSessionLabels(opts.Records, opts.Logger); err != nil {
		return nil, err
	}
	g.flows.labels, err = openLabelStore(opts.Records, opts.Logger)
	return g, err
}

// Apply puts rules into force.
func (g *Guard) Apply(rules *Rules) { g.policies.rules.Store(rules) }

// noteDecision adds the verdict to the record of a program's call.
func noteDecision(ctx context.Context, v toolcall.Verdict) {
	if made := toolcall.AttemptOf(ctx); made != nil && (v.Judged || v.Rule != "") {
		made.Decide(v)
	}
}

// Middleware decides on each call and records the decision and the outcome. It connects the upstream, evaluates the
// rules, and requests approval if they ask for it. A call that cannot be recorded is not made.
func (g *Guard) Middleware(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		at, err := g.resolve(ctx, c.Tool)
		if err != nil {
			return tool.Result{}, err
		}
		ctx, v := toolcall.Demanded(ctx, g.judge(ctx, c))
		v = requireConfirmation(ctx, v)
		return g.carryOut(ctx, c, v, at, next)
	}
}

// Step decides on a step of a plugin as on a call of a tool, records the decision and the outcome, and calls it with do.
// A step has no definition in the catalog; readOnly says what the annotation of a tool would say.
func (g *Guard) Step(ctx context.Context, c tool.Call, readOnly bool, do toolcall.Handler) (tool.Result, error) {
	v := toolcall.Verdict{Action: policy.Allow}
	if r := g.policies.rules.Load(); r.on {
		facts := g.facts(ctx, r, c)
		facts.Annotations = tool.Annotations{ReadOnly: &readOnly}
		v = verdict(facts, r.Decide(ctx, facts))
	}
	return g.carryOut(ctx, c, v, resolution{}, do)
}

// carryOut carries out a verdict on a call: it requests approval if necessary, records the decision, makes the call with
// next, and records its outcome.
func (g *Guard) carryOut(ctx context.Context, c tool.Call, v toolcall.Verdict, at resolution, next toolcall.Handler) (tool.Result, error) {
	noteDecision(ctx, v)
	if v.Judged {
		g.opts.Telemetry.RecordDecision(ctx, string(v.Action))
	}
	var held error
	if v.Action == policy.Ask {
		v, held = g.opts.Approver.Approve(ctx, c, v)
		noteDecision(ctx, v)
	}
	if err := g.opts.Auditor.RecordCall(ctx, c, v); err != nil {
		return tool.Result{}, err
	}
	if held != nil {
		return tool.Result{}, held
	}
	if err := recordDecision(ctx, v); err != nil {
		return tool.Result{}, err
	}
	if v.Action == policy.Deny {
		return tool.Result{}, v.DenyError()
	}
	if v.Decision == journal.Done {
		return v.Result, nil
	}
	start := time.Now()
	if at.unreachable != nil {
		g.opts.Auditor.RecordResult(ctx, c, tool.Result{}, at.unreachable, time.Since(start))
		return tool.Result{}, at.unreachable
	}
	if err := g.taint(ctx, c, v.Labels); err != nil { // before the upstream sends anything
		err = toolcall.Unreadable(ctx, g.opts.Logger, err)
		g.opts.Auditor.RecordResult(ctx, c, tool.Result{}, err, time.Since(start))
		return tool.Result{}, err
	}
	c.BeforeSend = g.beforeSend(ctx, c, at)
	result, err := next(ctx, c)
	g.opts.Approver.Renew(ctx, v, result)
	g.opts.Auditor.RecordResult(ctx, c, result, err, time.Since(start))
	return result, err
}

// MayInstall returns an error if the session of ctx may not send data outside: names of packages, which go to an index, can carry data.
func (g *Guard) MayInstall(ctx context.Context) error {
	set := g.opts.Settings.Load().Policy
	if !g.policies.rules.Load().on || set.Flow == policy.FlowOff || !policy.Trifecta([]string{policy.External}, g.flows.labelsRead(ctx)) {
		return nil
	}
	return &tool.Error{Kind: tool.Denied, Message: "policy refuses install_dependencies (flow): this session has read untrusted and private data, and names of packages go to an index outside",
		Hint: "install them in another session, before such data is read"}
}

// doubtRule is the rule in the verdict on a call that may already have been done.
const doubtRule = "resume"

// requireConfirmation makes the verdict on a call that may already have been done require approval, unless the rules deny the call.
func requireConfirmation(ctx context.Context, v toolcall.Verdict) toolcall.Verdict {
	made := toolcall.AttemptOf(ctx)
	if made == nil || made.Doubt == nil || v.Action == policy.Deny {
		return v
	}
	v.Action, v.Rule, v.Doubt = policy.Ask, strings.TrimPrefix(v.Rule+", "+doubtRule, ", "), true
	v.Reason = strings.TrimSuffix(made.Doubt.Reason()+"; "+v.Reason, "; ")
	return v
}

// recordDecision records the answer about a call that may already have been done, before the program gets it.
// It applies to answers that do not make the call.
func recordDecision(ctx context.Context, v toolcall.Verdict) error {
	made := toolcall.AttemptOf(ctx)
	if v.Decision == "" || made == nil || made.Doubt == nil {
		return nil
	}
	var failed *tool.Error
	if v.Decision == journal.Skipped {
		failed = tool.AsError(v.DenyError())
	}
	return made.Doubt.Decide(ctx, v.Decision, v.Result, failed)
}
