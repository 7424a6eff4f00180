package toolcall

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"sallyport/internal/journal"
	"sallyport/internal/skill"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Scope says what a call belongs to. It is one value in the context; [tool] keeps the caller's identity.
type Scope struct {
	// Execution makes the call; nil for a call that no program makes.
	Execution *Execution
	// Attempt is the call itself, for a call of a program.
	Attempt *Attempt
	// Run is the id of the workflow run that makes the call, see [WithRun]; "" for none, and for calls of its programs.
	Run string
	// NoWait makes a call that needs approval fail at once instead of waiting, see [WithoutWaiting].
	NoWait bool
	// Approval is the id of the approval that a client is being asked for; "" for none.
	Approval string
	// Candidate is the skill under test that makes the call; nil for none.
	Candidate *skill.Skill
	// Only are the upstreams that executions may call, see [WithOnly]; nil for all.
	Only []string
	// Demand is what a hook demands of the call; nil for nothing.
	Demand *Demand
	// Made is set when the call is allowed; nil if the caller does not need it.
	Made *atomic.Bool
}

type scopeKey struct{}

// ScopeOf returns the scope in ctx.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}

// In returns a context with the scope.
func (s Scope) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// Execution is an execution while its program runs: what its calls have in common.
type Execution struct {
	ID, Principal, Session, Client string
	// Endpoint is the endpoint of its caller, which it stays confined to; "" for none, see [tool.WithEndpoint].
	Endpoint string
	// Root is the first execution in the chain that this one resumes, or itself; for a workflow's program it is the run.
	Root string
	// Unattended says that it is a workflow's program: it is suspended immediately if no client can be asked.
	Unattended bool
	// Suspension suspends it when a call waits for approval.
	Suspension *Suspension
	// Workspace is the name of its workspace.
	Workspace string
	// Peer answers requests of upstreams and requests for approval; nil for none.
	Peer tool.Peer
	// Stub answers its calls in place of upstreams; nil for none.
	Stub func(ctx context.Context, c tool.Call) (tool.Result, error)
	// Yield gives up the program's slot during a call that may run programs itself, until done is called.
	Yield func() (done func(), err error)
	Calls *List
	// Candidate is the skill that it tests; nil if it is no test.
	Candidate *skill.Skill
	Trail     Trail
	// Remote says that it was requested over HTTP.
	Remote bool
	// Only are the upstreams that it may call; nil for all.
	Only []string
	// Journal keeps its calls; nil for none. JournalFailed logs the first error of writing it.
	Journal       *journal.Writer
	JournalFailed sync.Once
	// Replay answers calls from the journal of the execution that it resumes; nil for none.
	Replay Replayer
	// Effects counts the calls that succeeded and changed something.
	Effects atomic.Int64
	// Place is its place in a trace.
	Place telemetry.TraceContext
}

// Replayer answers calls of an execution from the journal of the one that it resumes.
type Replayer interface {
	// Call answers a call from the journal or makes it with next.
	Call(ctx context.Context, c tool.Call, next Handler) (tool.Result, error)
	// Notes says what a model should know of the earlier calls.
	Notes() []string
}

// NewExecution returns an execution on behalf of the caller in ctx. Fields that depend on the program are not set.
func NewExecution(ctx context.Context, id string) *Execution {
	by := ScopeOf(ctx).Run
	return &Execution{
		ID: id, Root: cmp.Or(by, id), Unattended: by != "", Suspension: NewSuspension(), Principal: tool.Principal(ctx), Session: tool.Session(ctx),
		Client: tool.Client(ctx), Endpoint: tool.Endpoint(ctx), Remote: tool.Remote(ctx), Only: ScopeOf(ctx).Only, Calls: &List{}, Place: telemetry.TraceContextOf(ctx),
	}
}

// ExecutionOf returns the execution that makes the call, nil for none.
func ExecutionOf(ctx context.Context) *Execution { return ScopeOf(ctx).Execution }

// ExecutionID returns the id of the execution that makes the call, "" for none.
func ExecutionID(ctx context.Context) string {
	if r := ExecutionOf(ctx); r != nil {
		return r.ID
	}
	return ""
}

// WithRun returns a context for calls of a workflow run, which may outlive the process and its client. A call that needs approval
// does not wait: its error wraps a *approvals.PendingError, the approval stays pending, and a retry of the same call finds the answer.
// Approvals and limits apply to the run. Its programs are suspended immediately if no client can be asked.
func WithRun(ctx context.Context, run string) context.Context {
	s := ScopeOf(ctx)
	s.Run = run
	return s.In(ctx)
}

// WithoutWaiting returns a context for a call by a person, who does not wait for an approval: the error of a call that needs one wraps
// a *approvals.PendingError, the approval stays pending, and a retry of the same call finds the answer.
func WithoutWaiting(ctx context.Context) context.Context {
	s := ScopeOf(ctx)
	s.NoWait = true
	return s.In(ctx)
}

// RunOf returns the workflow run that makes the call, by a step or a program; "" for none.
func RunOf(ctx context.Context) string {
	s := ScopeOf(ctx)
	if s.Execution != nil && s.Execution.Unattended {
		return s.Execution.Root
	}
	return s.Run
}

// WithCandidate returns a context for a skill that is being tested; nil for none.
func WithCandidate(ctx context.Context, one *skill.Skill) context.Context {
	if one == nil {
		return ctx
	}
	s := ScopeOf(ctx)
	s.Candidate = one
	return s.In(ctx)
}

// ApprovalID returns the approval that a client is being asked for, "" for none.
func ApprovalID(ctx context.Context) string { return ScopeOf(ctx).Approval }

// Yield gives up the slot of the program that makes the call, if any, until done is called.
func Yield(ctx context.Context) (done func(), err error) {
	if r := ExecutionOf(ctx); r != nil && r.Yield != nil {
		return r.Yield()
	}
	return func() {}, nil
}
