//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/slot"
)

var validID = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// stopError is the cause for which the host stopped a sandbox before its program ended.
type stopError struct{ status Status }

func (s stopError) Error() string { return "sandbox stopped: " + string(s.status) }

// Run runs one program in its own sandbox, or in that of its session, and returns
// when the program has ended. The sandbox is removed in the background, within a
// second. Run returns an error if the program cannot start; everything after the
// start, including a crash of the sandbox, is in the outcome.
func (h *Host) Run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	if err := h.check(job); err != nil {
		return Outcome{}, fmt.Errorf("run program: %w", err)
	}
	started := time.Now()
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return Outcome{Status: Canceled}, nil
	case <-h.ctx.Done():
		return Outcome{}, context.Cause(h.ctx)
	}
	job.slot = slot.Of(h.slots)
	defer job.slot.Release()
	if err := h.beginRun(); err != nil {
		return Outcome{}, err
	}
	defer h.running.Done()
	outcome, err := h.run(ctx, job, caller)
	outcome.Duration = time.Since(started)
	h.log.Debug("execution ended", "execution", job.ID, "status", outcome.Status, "duration", outcome.Duration, "calls", outcome.Calls)
	return outcome, err
}

func (h *Host) check(job Job) error {
	if !validID.MatchString(job.ID) {
		return fmt.Errorf("invalid execution ID %.50q", job.ID)
	}
	if _, ok := h.environments.get(job.Environment); !ok && job.Environment != "" {
		return fmt.Errorf("there is no environment %.50q", job.Environment)
	}
	return nil
}

func (h *Host) run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	if job.Session != "" {
		return h.sessions.run(ctx, job, caller)
	}
	for again := true; ; again = false {
		b, waited, err := h.acquire(ctx, job)
		if err != nil {
			return canceledOr(ctx, err)
		}
		outcome, err := b.run(ctx, job, caller)
		h.release(b, job, err == nil && outcome.isNormal())
		if waited && ctx.Err() == nil && (errors.Is(err, errNotStarted) || again && outcome.hasNoEffects()) {
			continue // it died while idle; the next one is another, or new
		}
		return outcome, err
	}
}

// acquire returns a sandbox for a program that has no session: one that no program has used, if there is one, else one
// that the owner may use again. In a burst of one owner's programs used ones come first, because each unused one must be
// replaced, and the last unused one is left to others.
func (h *Host) acquire(ctx context.Context, job Job) (b *instance, waited bool, err error) {
	if !h.reuse.allows(job) {
		return h.pool.get(ctx, job)
	}
	if burst, idle := h.reuse.burst(job); !burst || !idle && h.pool.waitingOf(kindOf(job)) > 1 {
		if b := h.pool.takeIdle(ctx, kindOf(job)); b != nil {
			return b, true, nil
		}
	}
	if b, waited := h.reuse.get(ctx, job); b != nil {
		return b, waited, nil
	}
	return h.pool.get(ctx, job)
}

// release keeps a sandbox for more programs of the job's owner, or discards it.
func (h *Host) release(b *instance, job Job, normal bool) {
	owner := job.Owner
	if job.OwnerAfter != nil {
		owner = job.OwnerAfter()
	}
	if b.zygote == nil || !normal || owner == "" {
		b.discard()
		return
	}
	h.reuse.put(b, h.reuse.keyOf(job, owner), job.Limits)
}

// isNormal reports whether a program ended by itself.
func (o Outcome) isNormal() bool { return o.Status == OK || o.Status == Failed || o.Status == Exited }

// hasNoEffects reports whether the sandbox died before its program had any visible effect, so that the program can run again.
func (o Outcome) hasNoEffects() bool {
	return o.Status == Crashed && o.Calls == 0 && len(o.Emitted) == 0 && o.Stdout.Text == "" && o.Stderr.Text == ""
}

// canceledOr returns a Canceled outcome if ctx has ended or the host stopped the sandbox, otherwise the error.
func canceledOr(ctx context.Context, err error) (Outcome, error) {
	if ctx.Err() != nil || errors.As(err, new(stopError)) {
		return Outcome{Status: Canceled}, nil //nolint:nilerr // that is the outcome
	}
	return Outcome{}, err
}

// errNotStarted means that the sandbox ended before it received the program.
var errNotStarted = errors.New("start sandbox: it ended before the program began")

// execution is one program in a sandbox.
type execution struct {
	instance *instance
	job      Job
	stdout   *outputBuffer
	stderr   *outputBuffer
	ctx      context.Context //nolint:containedctx // ends with the program
	stop     context.CancelCauseFunc
}

// readGrace is how long the frames of a guest may be read after runsc has exited, such as files for a slow workspace.
const readGrace = 30 * time.Second

// run runs the program and waits for its end. The sandbox can be used again if b.stays is set afterwards.
func (b *instance) run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	e := &execution{instance: b, job: job}
	e.ctx, e.stop = context.WithCancelCause(b.ctx)
	defer context.AfterFunc(ctx, func() { e.stop(stopError{Canceled}) })()
	flood, onFlood := job.Limits.Flood(), func() { e.stop(stopError{Flooded}) }
	e.stdout, e.stderr = newOutputBuffer(job.Limits.Output, flood, onFlood), newOutputBuffer(job.Limits.Output, flood, onFlood)
	if heard := job.OnOutput; heard != nil {
		e.stdout.onWrite = func(p []byte) { heard(Stdout, p) }
		e.stderr.onWrite = func(p []byte) { heard(Stderr, p) }
	}
	if job.Workspace != nil {
		for _, c := range []*outputBuffer{e.stdout, e.stderr} {
			c.spillTo(b.host.dir, job.Limits.Workspace)
			defer c.spill.close()
		}
	}
	b.redirectOutput(e.stdout, e.stderr)
	var watchers sync.WaitGroup
	var used time.Duration
	watchers.Go(func() {
		limits := watchLimits{sentry: b.process.Sentry, cgroup: b.cgroup, gauge: &b.memory, memory: job.Limits.Memory, cpu: job.Limits.CPU}
		used = watch(e.ctx, limits, func(why Status) { e.stop(stopError{why}) })
	})
	watchers.Go(e.watchProcess)
	outcome, err := e.runProgram(caller)
	e.stop(nil)
	watchers.Wait()
	outcome.CPU = used
	return outcome, err
}

// runProgram runs the program over the bridge and returns its outcome.
func (e *execution) runProgram(caller bridge.Caller) (Outcome, error) {
	limits, clock := e.job.Limits, bridge.NewClock(startLimit, func() { e.stop(stopError{TimedOut}) })
	defer clock.Stop()
	clock.OnChange(e.job.slot.SetPaused)
	program := bridge.Program{Code: e.job.Code, File: e.job.File, ValueLimit: limits.Value, Keep: e.job.Session != "", Variables: e.job.Variables, Prelude: e.job.Prelude}
	account := e.account(caller, clock)
	e.instance.reusable = false
	report, err := e.instance.bridge.Run(e.ctx, program, account, func() {
		clock.Reset(limits.Timeout)
	})
	e.instance.reusable, e.instance.lastAlive = report.Reusable, time.Now()
	cause := e.cause(err)
	if report.Started && err != nil {
		e.stop(nil)
		report.Notes = append(report.Notes, e.rescue(account, cause)...)
	}
	e.drainOutput(err)
	if !report.Started && !errors.As(cause, new(stopError)) {
		return Outcome{}, errNotStarted
	}
	if err := pruneOutput(e.job.Workspace, limits.Workspace, time.Now(), e.stdout, e.stderr); err != nil {
		e.instance.host.log.Warn("keep output", "execution", e.job.ID, "error", err)
	}
	notes, keepErr := saveOutput(e.job.Workspace, e.job.ID, e.stdout, e.stderr)
	if keepErr != nil {
		e.instance.host.log.Warn("keep output", "execution", e.job.ID, "error", keepErr)
	}
	outcome := Outcome{
		Calls: report.Calls, Emitted: report.Emitted, Stdout: e.stdout.output(), Stderr: e.stderr.output(),
		Notes: append(report.Notes, notes...),
	}
	e.setStatus(&outcome, report.Result, err, cause)
	return outcome, nil
}

// account returns the identity and limits of the program's calls.
func (e *execution) account(caller bridge.Caller, clock tool.Clock) bridge.Account {
	l := e.job.Limits
	return bridge.Account{
		Execution: e.job.ID, Caller: caller, Clock: clock, Workspace: e.job.Workspace,
		Limits: bridge.Limits{Calls: l.Calls, Concurrency: l.Concurrency, Traffic: l.Traffic, Quota: bridge.Quota{Bytes: l.Workspace, Files: l.Inodes}},
	}
}

// cause returns the reason why the program was stopped, nil if it ended by itself. It waits briefly for a reason that is not known yet.
func (e *execution) cause(err error) error {
	if errors.Is(err, bridge.ErrClosed) {
		// The guest's disconnect is noticed before runsc's exit, and perhaps before its reason.
		select {
		case <-e.instance.ended():
		case <-e.ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	if err != nil && e.instance.cgroup.outOfMemory() { // the kernel was faster than the watcher
		return stopError{OutOfMemory}
	}
	return context.Cause(e.ctx)
}

// drainOutput waits for the program's last output. Without an error it flushes the streams, because the sandbox may be reused;
// with an error it closes the sandbox and reads the streams to their end.
func (e *execution) drainOutput(err error) {
	if err == nil {
		e.instance.flushOutput()
		e.instance.redirectOutput(e.instance.preamble, e.instance.preamble) // output of processes that the program left running
		return
	}
	e.stop(nil)
	if closeErr := e.instance.close(); closeErr != nil {
		e.instance.host.log.Error("clear sandbox away", "execution", e.job.ID, "error", closeErr)
	}
}

// watchProcess stops the execution if runsc has exited and the guest's report of the program's end does not come. The guest
// was connected before, so usually the end of its connection comes first, after all that it has sent: a short program may have
// ended before this process knows that it has begun.
func (e *execution) watchProcess() {
	select {
	case <-e.instance.ended():
		select {
		case <-time.After(readGrace):
			e.stop(bridge.ErrClosed)
		case <-e.ctx.Done():
		}
	case <-e.ctx.Done():
	}
}

// setStatus sets the status of the outcome: the host's own reason to stop the program comes first, then the exit status, then the guest's report.
func (e *execution) setStatus(outcome *Outcome, done bridge.ProgramResult, err, cause error) {
	if why, ok := errors.AsType[stopError](cause); ok && err != nil {
		outcome.Status = why.status
		return
	}
	if err != nil {
		outcome.Status = Crashed
		if exit, waitErr := e.instance.exitStatus(); waitErr == nil {
			outcome.Exit = exit
		}
		switch {
		case outcome.Exit < 128:
			outcome.Status = Exited
		case outcome.Exit == 128+int(syscall.SIGABRT) && strings.Contains(outcome.Stderr.Text, "heap out of memory"):
			outcome.Status, outcome.Stderr = OutOfMemory, Output{} // node's last words are a page of addresses
		}
		return
	}
	outcome.Value, outcome.Fault, outcome.Exit, outcome.Refused = done.Value, done.Fault, done.Exit, done.Refused
	switch {
	case done.Fault != nil:
		outcome.Status = Failed
	case done.Exit != 0:
		outcome.Status = Exited
	default:
		outcome.Status = OK
	}
}
