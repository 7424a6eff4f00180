package gateway

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

// running is one execution while its program runs: what its calls have in common.
type running struct {
	id, principal, session string
	// root is the first of the executions that this one resumes, itself where there is none; of a workflow's program the run.
	root string
	// unwaited: of a workflow's program; where nobody can be asked at once, it is held at once.
	unwaited bool
	// holding stops it where a call waits for approval.
	holding           *holding
	workspace, client string
	// peer is asked what a person has to answer; nil is nobody.
	peer tool.Peer
	// instead is the program's, see [Program].Instead.
	instead func(ctx context.Context, call tool.Call) (tool.Result, error)
	calls   *callList
	tally   *tally       // once it is over
	skill   *skill.Skill // what is tested, nil if it is no test
	// trail is what it has read and called; remote says that it was asked for over HTTP.
	trail  trail
	remote bool
	// journal keeps its calls, nil where nothing is kept; replay has those of the execution that it resumes, nil for none.
	journal     *journal.Writer
	replay      *replay
	unjournaled sync.Once
	live        *live           // as others see it
	done        atomic.Int64    // calls that ended well, and did something
	place       telemetry.Place // in its trace, which its calls go on from
}

type runningKey struct{}

// runningOf returns the execution that a call is made by, nil if it is made by none.
func runningOf(ctx context.Context) *running {
	r, _ := ctx.Value(runningKey{}).(*running)
	return r
}

// newRunning is an execution on behalf of whoever ctx says.
func newRunning(ctx context.Context, id string, program Program) *running {
	by := unwaitedBy(ctx)
	return &running{id: id, root: cmp.Or(by, id), unwaited: by != "", holding: newHolding(), principal: tool.Principal(ctx), session: tool.Session(ctx), workspace: program.Workspace, client: tool.Client(ctx), remote: tool.Remote(ctx), peer: program.Peer, instead: program.Instead, calls: &callList{}, place: telemetry.PlaceOf(ctx)}
}

// agent makes a program's calls on behalf of whoever runs it, which the context
// of a sandbox does not say.
type agent struct {
	gateway *Gateway
	*running
}

// Call implements [bridge.Caller].
func (a agent) Call(ctx context.Context, call tool.Call) (result tool.Result, err error) {
	defer a.gateway.recovered(ctx, call, &result, &err)
	leave, err := a.holding.begin(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	call.Peer = a.asked(ctx, call)
	made := a.gateway.newMadeCall(call)
	end := a.calls.begin(made)
	ctx = withCandidate(tool.WithClient(tool.WithSession(tool.WithPrincipal(ctx, a.principal), a.session), a.client), a.skill)
	ctx = context.WithValue(context.WithValue(a.place.In(ctx), runningKey{}, a.running), madeKey{}, made)
	if clock := tool.ClockOf(ctx); clock != nil {
		ctx = tool.WithClock(ctx, liveClock{clock, a.live})
	}
	result, err = a.answer(ctx, call)
	a.calls.sample(result)
	end(outcome(result, err), textSize(result))
	return result, err
}

// answer is what a call comes to.
func (a agent) answer(ctx context.Context, call tool.Call) (tool.Result, error) {
	if a.instead != nil {
		return a.instead(ctx, call)
	}
	return a.gateway.Call(ctx, call)
}
