//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/plain"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/runsc"
)

var validID = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// stopped is why a sandbox was ended before its program was.
type stopped struct{ status Status }

func (s stopped) Error() string { return "sandbox stopped: " + string(s.status) }

// startLimit is how long a sandbox may take to reach its program.
const startLimit = 30 * time.Second

// Run runs one program in a sandbox of its own and returns when nothing of that
// sandbox is left. The error is for what keeps it from starting; everything that
// happens afterwards, a crash of the sandbox included, is in the outcome.
func (h *Host) Run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	if !validID.MatchString(job.ID) {
		return Outcome{}, fmt.Errorf("run program: %.50q is no execution id", job.ID)
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return Outcome{Status: Canceled}, nil
	case <-h.ctx.Done():
		return Outcome{}, context.Cause(h.ctx)
	}
	defer func() { <-h.slots }()
	if err := h.enter(); err != nil {
		return Outcome{}, err
	}
	defer h.running.Done()
	box, err := h.start(job, caller)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := box.run(ctx)
	h.log.Debug("execution ended", "execution", job.ID, "status", outcome.Status, "duration", outcome.Duration, "calls", outcome.Calls)
	return outcome, err
}

// box is one running sandbox.
type box struct {
	host    *Host
	job     Job
	dir     string
	bridge  *bridge.Bridge
	account bridge.Account
	process *runsc.Process
	cgroup  *cgroup
	stdout  *clip
	stderr  *clip
	drained sync.WaitGroup
	started time.Time
	stop    context.CancelCauseFunc
	ctx     context.Context //nolint:containedctx // ends with the sandbox
}

// start brings a sandbox up, or leaves nothing behind.
func (h *Host) start(job Job, caller bridge.Caller) (_ *box, err error) {
	b := &box{host: h, job: job, dir: filepath.Join(h.dir, job.ID), started: time.Now()}
	b.ctx, b.stop = context.WithCancelCause(h.ctx)
	defer func() {
		if err != nil {
			b.stop(err)
			err = errors.Join(err, b.clean())
		}
	}()
	sockets := filepath.Join(b.dir, "bridge")
	if err := makeBundle(b.dir, sockets); err != nil {
		return nil, err
	}
	limits := bridge.Limits{Calls: job.Limits.Calls, Concurrency: job.Limits.Concurrency, Traffic: job.Limits.Traffic,
		Room: bridge.Room{Bytes: job.Limits.Workspace, Files: job.Limits.Inodes}}
	b.account = bridge.Account{Execution: job.ID, Caller: caller, Limits: limits, Workspace: job.Workspace}
	b.bridge, err = bridge.Listen(filepath.Join(sockets, "bridge.sock"), bridge.Options{Logger: h.log})
	if err != nil {
		return nil, err
	}
	spec, err := h.spec(job, sockets)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "config.json"), spec, 0o600); err != nil {
		return nil, fmt.Errorf("write sandbox spec: %w", err)
	}
	return b, b.launch()
}

func makeBundle(dir, sockets string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make bundle: %w", err)
	}
	if err := os.Mkdir(sockets, 0o755); err != nil {
		return fmt.Errorf("make bundle: %w", err)
	}
	return openUp(sockets) // the sandbox's user must reach the socket; the bundle above is closed
}

// launch starts runsc with pipes as standard streams and somebody who reads them.
func (b *box) launch() error {
	flood := max(floodMin, int64(b.job.Limits.Output)*floodFactor)
	onFlood := func() { b.stop(stopped{Flooded}) }
	b.stdout, b.stderr = newClip(b.job.Limits.Output, flood, onFlood), newClip(b.job.Limits.Output, flood, onFlood)
	var stdio runsc.Stdio
	for _, stream := range []struct {
		to   **os.File
		clip *clip
	}{{&stdio.Stdout, b.stdout}, {&stdio.Stderr, b.stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
		*stream.to = w
		defer func() { _ = w.Close() }()
		b.drained.Go(func() { stream.clip.drain(r); _ = r.Close() })
	}
	var err error
	if b.cgroup, err = b.host.cgroups.make(cgroupName(b.host.dir, b.job.ID), b.job.Limits.Memory); err != nil {
		return err
	}
	settings := *b.host.runsc
	settings.Enter = b.cgroup.enter
	b.process, err = settings.Start(b.job.ID, b.dir, stdio)
	return err
}

// run waits for the program's end, whatever it is, and clears the sandbox away.
// It is an error if the program did not even start.
func (b *box) run(ctx context.Context) (Outcome, error) {
	defer context.AfterFunc(ctx, func() { b.stop(stopped{Canceled}) })()
	defer b.stop(nil)
	timer := time.AfterFunc(startLimit, func() { b.stop(stopped{TimedOut}) })
	defer timer.Stop()
	var watchers sync.WaitGroup
	watchers.Go(func() {
		limits := watched{sentry: b.process.Sentry, cgroup: b.cgroup, memory: b.job.Limits.Memory, cpu: b.job.Limits.CPU}
		watch(b.ctx, limits, func(why Status) { b.stop(stopped{why}) })
	})
	watchers.Go(func() { b.watchProcess() })

	report, err := b.bridge.Run(b.ctx, bridge.Program{Code: b.job.Code, ValueLimit: b.job.Limits.Value}, b.account, func() { timer.Reset(b.job.Limits.Timeout) })
	outcome := Outcome{Duration: time.Since(b.started), Calls: report.Calls, Emitted: report.Emitted, Notes: report.Notes}
	if errors.Is(err, bridge.ErrClosed) {
		// The guest's end is seen before runsc's, and the reason for it perhaps not yet at all.
		b.await(500 * time.Millisecond)
	}
	cause := context.Cause(b.ctx)
	if b.cgroup.outOfMemory() { // the kernel was quicker than we
		cause = stopped{OutOfMemory}
	}
	b.stop(nil)
	if report.Started && err != nil {
		outcome.Notes = append(outcome.Notes, b.rescue(cause)...)
	}
	if err := b.clean(); err != nil {
		b.host.log.Error("clear sandbox away", "execution", b.job.ID, "error", err)
	}
	watchers.Wait()
	outcome.Stdout, outcome.Stderr = b.stdout.output(), b.stderr.output()
	b.judge(&outcome, report, err, cause)
	if report.Started {
		return outcome, nil
	}
	// What was printed is runsc's, with paths of the host in it: for the log, not for the model.
	if outcome.Status != Canceled {
		return Outcome{}, fmt.Errorf("start sandbox: it ended with status %d before the program began: %s", outcome.Exit, plain.Line(outcome.Stderr.Text, 500))
	}
	outcome.Stdout, outcome.Stderr = Output{}, Output{}
	return outcome, nil
}

func (b *box) await(limit time.Duration) {
	select {
	case <-b.process.Done():
	case <-b.ctx.Done():
	case <-time.After(limit):
	}
}

// watchProcess ends the box when runsc ends before its guest has reported.
func (b *box) watchProcess() {
	select {
	case <-b.process.Done():
		time.Sleep(50 * time.Millisecond) // what the guest said last may still be on its way
		b.stop(bridge.ErrClosed)
	case <-b.ctx.Done():
	}
}

// judge fills in how the program ended: what we did to it comes first, then what it reported, then how it died.
func (b *box) judge(outcome *Outcome, report bridge.Report, err, cause error) {
	if why, ok := errors.AsType[stopped](cause); ok && err != nil {
		outcome.Status = why.status
		return
	}
	if err != nil {
		outcome.Status = Crashed
		if exit, waitErr := b.process.Wait(); waitErr == nil {
			outcome.Exit = exit
		}
		switch {
		case outcome.Exit < 128 && report.Started:
			outcome.Status = Exited
		case outcome.Exit == 128+int(syscall.SIGABRT) && strings.Contains(outcome.Stderr.Text, "heap out of memory"):
			outcome.Status, outcome.Stderr = OutOfMemory, Output{} // node's last words are a page of addresses
		}
		return
	}
	done := report.Done
	outcome.Value, outcome.Fault, outcome.Exit = done.Value, done.Fault, done.Exit
	switch {
	case done.Fault != nil:
		outcome.Status = Failed
	case done.Exit != 0:
		outcome.Status = Exited
	default:
		outcome.Status = OK
	}
}

// clean leaves nothing of the sandbox: not on ctx's time, which may have ended, but on its own.
func (b *box) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	errs := []error{end(ctx, b.process, b.cgroup)}
	b.drained.Wait()
	if b.bridge != nil {
		errs = append(errs, b.bridge.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// end leaves no process and no cgroup of a sandbox; process is nil for one that did not start.
func end(ctx context.Context, process *runsc.Process, group *cgroup) error {
	var err error
	if process != nil {
		err = process.Destroy(ctx)
	}
	return errors.Join(err, group.remove())
}
