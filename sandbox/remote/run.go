package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// errTimeout means that a worker did not end a program within its time limits.
var errTimeout = errors.New("the program did not end in time")

// errContradiction means that a worker made calls of a program, and then said that it could not start the program.
var errContradiction = errors.New("the worker made calls of a program that it did not start")

// frameLimit is the limit of a guest's frames, with room for the worker's own encoding.
const frameLimit = 17 << 20

// Run runs one program on the worker, as [sandbox.Host.Run] does. It returns an error if the
// program cannot start. A connection that breaks afterwards is an outcome, with
// Lost: the program has crashed, and its calls have ended.
func (c *Client) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	started := time.Now()
	outcome, err := c.run(ctx, job, caller)
	if ctx.Err() != nil && (err != nil || outcome.Status == sandbox.Crashed) {
		outcome.Status, outcome.Lost, err = sandbox.Canceled, "", nil
	}
	outcome.Duration = time.Since(started)
	return outcome, err
}

func (c *Client) run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	ctx, leave, err := c.beginUse(ctx)
	if err != nil {
		return sandbox.Outcome{}, fmt.Errorf("run program: %w", err)
	}
	defer leave()
	l, err := c.readyLink(ctx)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	if name := EnvironmentOf(job); !l.worker.hasEnvironment(name) {
		return sandbox.Outcome{}, fmt.Errorf("run program: %s does not have the environment %s", c.name, name)
	}
	if job.Added != nil && !Here().AddsPackages(l.worker.Compat) {
		return sandbox.Outcome{}, c.errOlder(l)
	}
	x, err := l.open(pathRun)
	if err != nil {
		return sandbox.Outcome{}, fmt.Errorf("run program: %w", err)
	}
	defer func() { _ = x.Close() }()
	said := newReport(job)
	m := x.messages(said.handleMessage)
	if err := sendJob(m, job); err != nil {
		return sandbox.Outcome{}, fmt.Errorf("run program on %s: %w", c.name, err)
	}
	seen, err := c.runProgram(ctx, m, job, cancelableCaller{ctx, withOwner(m, job, caller), said})
	if err == nil && said.end != nil {
		if said.end.Error == "" {
			return said.outcome(seen), nil
		}
		if seen.Calls == 0 {
			return sandbox.Outcome{}, c.notRun(job, said.end)
		}
		err = errContradiction // as an error, it would be run again elsewhere
	}
	if ctx.Err() == nil {
		c.log.WarnContext(ctx, "a program was lost", "execution", job.ID, "worker", c.name, "error", err)
	}
	return c.lostOutcome(seen, err), nil
}

// notRun returns the error of a worker that did not run a job. Only one with added packages can be refused for them.
func (c *Client) notRun(job sandbox.Job, end *endMessage) error {
	if end.Added != nil && job.Added != nil {
		return end.Added.of(c.name)
	}
	return fmt.Errorf("run program on %s: %s", c.name, sanitize.Line(end.Error, maxNote))
}

func sendJob(m *bridge.Messages, job sandbox.Job) error {
	head := jobHead{
		ID: job.ID, Interpreter: job.Interpreter, Limits: job.Limits, Session: job.Session, Owner: job.Owner, Files: job.Workspace != nil,
		Environment: EnvironmentOf(job), StreamOutput: job.OnOutput != nil,
	}
	if job.Added != nil {
		head.Added = job.Added.Packages
	}
	data, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return m.WriteMessage(kindJob, data)
}

// runProgram sends the program and answers its calls until it has ended.
func (c *Client) runProgram(ctx context.Context, m *bridge.Messages, job sandbox.Job, caller bridge.Caller) (bridge.Report, error) {
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	var watcher sync.WaitGroup
	limit := queueLimit + job.Limits.Timeout
	if job.Added != nil {
		limit += job.Limits.Timeout // for the environment
	}
	clock := bridge.NewClock(limit, func() { stop(errTimeout) })
	defer clock.Stop()
	clock.OnChange(func(still bool) { _ = m.WriteMessage(kindPause, pauseFlag(still)) }) // a broken connection ends the program
	watcher.Go(func() { watch(ctx, inner, stop, m) })
	b := bridge.Attach(m, bridge.Options{Logger: c.log})
	program := bridge.Program{Code: job.Code, File: job.File, ValueLimit: job.Limits.Value, Variables: job.Variables, Prelude: job.Prelude}
	seen, err := b.Run(inner, program, account(job, caller, clock), func() {})
	stop(nil)
	watcher.Wait()
	return seen, errors.Join(err, b.Close())
}

// pauseFlag encodes the data of a kindPause message.
func pauseFlag(still bool) []byte {
	if still {
		return []byte("1")
	}
	return []byte("0")
}

// watch asks the worker to stop the program when ctx ends, and stops inner if that takes too long.
func watch(ctx, inner context.Context, stop context.CancelCauseFunc, m *bridge.Messages) {
	select {
	case <-inner.Done():
		return
	case <-ctx.Done():
	}
	cut := time.AfterFunc(cancelLimit, func() { stop(context.Cause(ctx)) })
	defer cut.Stop()
	_ = m.WriteMessage(kindCancel, nil)
	<-inner.Done()
}

// account returns the account of a program, with limits that the worker cannot exceed.
func account(job sandbox.Job, caller bridge.Caller, clock tool.Clock) bridge.Account {
	l := job.Limits
	return bridge.Account{
		Execution: job.ID, Caller: caller, Clock: clock, Workspace: job.Workspace,
		Limits: bridge.Limits{
			Frame: frameLimit, Calls: l.Calls, Concurrency: l.Concurrency, Traffic: l.Traffic,
			Quota: bridge.Quota{Bytes: max(1, 3*l.Workspace), Files: l.Inodes},
		},
	}
}

// lostGrace is how long calls may go on after the connection to their program's machine has broken. If the outcome of
// each call is known then, the program can run again elsewhere.
const lostGrace = 20 * time.Second

// cancelableCaller is a caller whose calls end with ctx, while the program continues until the worker has stopped it. After ctx
// has ended, the program gets no result: an error could make it fail before it is stopped and its files are saved.
type cancelableCaller struct {
	ctx    context.Context //nolint:containedctx // of one program
	caller bridge.Caller
	said   *report
}

// Call implements [bridge.Caller]. Its ctx ends with the program, or with the connection to it.
func (u cancelableCaller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(u.ctx, cancel)()
	defer context.AfterFunc(ctx, func() {
		if u.said.ended.Load() || errors.Is(context.Cause(ctx), errTimeout) {
			cancel()
			return
		}
		grace := time.AfterFunc(lostGrace, cancel)
		<-inner.Done()
		grace.Stop()
	})()
	result, err := u.caller.Call(inner, call)
	if u.ctx.Err() != nil {
		<-ctx.Done()
	}
	return result, err
}
