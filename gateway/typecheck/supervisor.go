package typecheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// supervisor runs in the goroutine of a Checker, and owns the server.
type supervisor struct {
	*Checker
	server    *server
	where     string    // the machine of the server, "" for this one
	failures  int       // consecutive failed starts and checks
	notBefore time.Time // no server is started before this time
}

var errGivenUp = errors.New("the type checker was given up")

// ErrUnavailable is the error of a start that can succeed later, such as one on a machine that cannot be reached now. It does not count as a
// failure of the checker.
var ErrUnavailable = errors.New("no machine has the type checker now")

func (k *supervisor) run(ctx context.Context) {
	defer k.stop()
	idle := time.NewTimer(k.opts.Idle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			k.drain()
			return
		case check := <-k.queue:
			check.finish(k.check(ctx, check))
			idle.Reset(k.opts.Idle)
		case <-k.wake:
			k.applyChanges(ctx)
		case <-idle.C:
			k.stop()
		}
	}
}

// drain finishes waiting checks without warnings.
func (k *supervisor) drain() {
	for {
		select {
		case check := <-k.queue:
			check.finish(nil, false)
		default:
			return
		}
	}
}

// check returns the warnings of a program, and whether a server has checked it.
func (k *supervisor) check(ctx context.Context, check *Check) (warnings []Warning, made bool) {
	if check.dropped.Load() && k.server != nil {
		return nil, false
	}
	if err := k.ensure(ctx); err != nil {
		return nil, false
	}
	if check.dropped.Load() { // it has started the server, which suffices
		return nil, false
	}
	k.sendChanges(ctx)
	found, err := k.server.check(ctx, check.code, checkTimeout)
	if err != nil {
		k.fail(ctx, err)
		return nil, false
	}
	k.failures = 0
	return k.dialect.warnings(found), true
}

// ensure starts the server if none runs.
func (k *supervisor) ensure(ctx context.Context) error {
	if k.server != nil && k.server.alive() {
		return nil
	}
	if k.server != nil {
		k.fail(ctx, k.server.exitError())
	}
	if k.failures >= maxTries && !k.opts.Persistent || time.Now().Before(k.notBefore) {
		return errGivenUp
	}
	k.takeChanges() // a new server reads the current files
	process, err := k.launch(ctx)
	if err == nil {
		k.server, err = startServer(ctx, process, k.dialect)
	}
	if err == nil {
		_, err = k.server.check(ctx, k.dialect.warm, startTimeout)
	}
	if err != nil {
		k.fail(ctx, err)
	}
	return err
}

// launch starts the process of a server.
func (k *supervisor) launch(ctx context.Context) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	process, err := k.start(ctx)
	k.where = ""
	if named, ok := process.(fmt.Stringer); ok && err == nil {
		k.where = named.String()
	}
	k.unavailable.Store(errors.Is(err, ErrUnavailable))
	return process, err
}

// fail stops the server, and sets when another may be started.
func (k *supervisor) fail(ctx context.Context, err error) {
	k.stop()
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, ErrUnavailable) {
		k.notBefore = time.Now().Add(k.opts.Backoff)
		k.log.Debug("type checker unavailable", "language", k.dialect.language, "error", err)
		return
	}
	k.failures++
	k.notBefore = time.Now().Add(k.opts.Backoff << min(k.failures-1, 10))
	if k.opts.Persistent {
		k.log.Warn("type checker failed", "language", k.dialect.language, "machine", k.where, "next_try", time.Until(k.notBefore).Round(time.Second), "error", err)
	} else if k.failures == maxTries {
		k.log.Warn("type checker given up: programs run without it", "language", k.dialect.language, "error", err)
	} else {
		k.log.Debug("type checker ended", "language", k.dialect.language, "error", err)
	}
}

func (k *supervisor) stop() {
	if k.server != nil {
		k.server.close()
		k.server = nil
	}
}

// applyChanges applies changes while no check waits.
func (k *supervisor) applyChanges(ctx context.Context) {
	if k.server == nil {
		k.takeChanges() // the next one reads the current files
		return
	}
	if !k.sendChanges(ctx) {
		return
	}
	if _, err := k.server.check(ctx, k.dialect.warm, startTimeout); err != nil {
		k.fail(ctx, err)
	}
}

// sendChanges passes the changes to the server, and reports whether its next check is slow.
func (k *supervisor) sendChanges(ctx context.Context) bool {
	changes := k.takeChanges()
	if len(changes) == 0 {
		return false
	}
	return k.server.sendChanges(ctx, changes)
}
