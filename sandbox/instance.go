//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/runsc"
	"sallyport/sandbox/stream"
	"sallyport/sandbox/zygote"
)

// kind holds the properties that are fixed when a sandbox starts. Sandboxes of the
// same kind can run the same jobs.
type kind struct {
	interpreter Interpreter
	environment string
	memory      int64
	processes   int
	openFiles   int
	fileSize    int64
	workspace   int64
	inodes      int
	// forks is set for sandboxes in which the first process forks one for each program.
	forks bool
}

func kindOf(job Job) kind {
	l := job.Limits
	return kind{
		interpreter: job.Interpreter, environment: job.Environment, memory: l.Memory, processes: l.Processes,
		openFiles: l.OpenFiles, fileSize: l.FileSize, workspace: l.Workspace, inodes: l.Inodes,
	}
}

// instance is one sandbox, from its start until it is removed completely. It runs one
// program, or the programs of one session in sequence.
type instance struct {
	host      *Host
	kind      kind
	id        string
	dir       string
	servers   *generation
	bridge    *bridge.Bridge  // of the only program, or of the current one
	zygote    *zygote.Control // nil if the first process runs the program
	begin     sync.Mutex      // of the next program, if there is a zygote; guards bridge then
	memory    memoryGauge
	base      int64 // memory in use before the first program, if there is a zygote
	process   *runsc.Process
	cgroup    *cgroup
	stdout    *stream.Stream
	stderr    *stream.Stream
	preamble  *outputBuffer   // output before and after programs, such as runsc's messages
	since     time.Time       // when it was made
	lastUsed  time.Time       // when its last program ended, if there is a zygote
	lastAlive time.Time       // when it was last known to be alive
	reusable  bool            // the guest waits for another program
	ctx       context.Context //nolint:containedctx // ends with the sandbox
	stop      context.CancelCauseFunc
	close     func() error
}

const (
	// startLimit is the time limit for the start of a sandbox.
	startLimit = 30 * time.Second
	// restoreLimit is startLimit for a restored sandbox. A restore takes 0.2 s but, rarely, hangs. The
	// limit is short because a pool starts sandboxes one at a time.
	restoreLimit = 10 * time.Second
)

// newInstance prepares a sandbox that is not started yet. It cleans up if it fails.
func (h *Host) newInstance(k kind, id string) (*instance, error) {
	b := &instance{host: h, kind: k, id: id, dir: filepath.Join(h.dir, id), lastAlive: time.Now(), since: time.Now(), preamble: newOutputBuffer(4<<10, 1<<62, func() {})}
	b.ctx, b.stop = context.WithCancelCause(h.ctx)
	b.close = sync.OnceValue(b.clean)
	if err := makeBundle(b.dir, b.sockets()); err != nil {
		b.stop(err) // an existing bundle belongs to another sandbox
		return nil, err
	}
	var err error
	if b.servers, err = h.acquireServers(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *instance) sockets() string { return filepath.Join(b.dir, "bridge") }

func makeBundle(dir, sockets string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make bundle: %w", err)
	}
	err := os.Mkdir(sockets, 0o755)
	if err == nil {
		err = makeReadable(sockets) // the sandbox's user must reach the socket; the bundle above is closed
	}
	if err != nil {
		return fmt.Errorf("make bundle: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return nil
}

// open starts a sandbox whose guest connects to the bridge: from the snapshot image,
// or from scratch if image is "". It cleans up if it fails.
func (h *Host) open(k kind, id, image string) (*instance, error) {
	b, err := h.newInstance(k, id)
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	if k.forks {
		b.zygote, err = zygote.Listen(b.sockets())
	} else {
		b.bridge, err = bridge.Listen(filepath.Join(b.sockets(), "bridge.sock"), bridge.Options{Logger: h.log})
	}
	if err == nil {
		err = b.launch(b.preamble, image)
	}
	if errors.Is(err, runsc.ErrNamespaces) {
		err = fmt.Errorf("%w; sallyport doctor says what is missing", err)
	}
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", errors.Join(err, b.close()))
	}
	return b, nil
}

// launch starts runsc, from a snapshot image or from scratch if image is "", with pipes as standard streams and goroutines that read them.
func (b *instance) launch(stdout io.Writer, image string) error {
	root, err := b.host.rootOf(b.kind.environment)
	if err != nil {
		return err
	}
	spec, err := b.host.specOf(b.kind, root, hostPaths{guest: b.host.guest(), servers: b.servers.dir, sockets: b.sockets()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "config.json"), spec, 0o600); err != nil {
		return fmt.Errorf("write sandbox spec: %w", err)
	}
	var stdio runsc.Stdio
	for _, s := range []struct {
		to     **stream.Stream
		writer **os.File
		sink   io.Writer
	}{{&b.stdout, &stdio.Stdout, stdout}, {&b.stderr, &stdio.Stderr, b.preamble}} {
		if *s.to, *s.writer, err = stream.New(s.sink); err != nil {
			return err
		}
		defer func() { _ = (*s.writer).Close() }()
	}
	if b.cgroup, err = b.host.cgroups.make(cgroupName(b.host.dir, b.id), b.kind.memory); err != nil {
		return err
	}
	settings := *b.host.runsc
	settings.Enter = b.cgroup.enter
	if b.kind.forks {
		settings.Nice = reuseNice
	}
	if image == "" {
		b.process, err = settings.Start(b.id, b.dir, stdio)
	} else {
		b.process, err = settings.Restore(b.id, b.dir, image, stdio)
	}
	return err
}

// ready waits until the guest is connected and ready for a program.
func (b *instance) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-b.process.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	err := b.connect(ctx)
	cancel()
	watcher.Wait()
	if err == nil {
		if b.kind.forks {
			_ = b.process.SetGroupNice(reuseGroupNice) // it fails where Linux makes no groups, and where niceness alone works
		}
		return nil
	}
	if cause := context.Cause(b.ctx); cause != nil {
		return cause
	}
	select {
	case <-b.process.Done():
		exit, _ := b.process.Wait()
		b.stdout.Wait()
		b.stderr.Wait()
		return fmt.Errorf("start sandbox: it ended with status %d before the program began: %s", exit, sanitize.Line(b.preamble.output().Text, 500))
	default:
		return fmt.Errorf("start sandbox: %w", err)
	}
}

// connect waits until the guest or the zygote is connected.
func (b *instance) connect(ctx context.Context) error {
	if b.zygote != nil {
		return b.zygoteReady(ctx)
	}
	return b.bridge.Wait(ctx)
}

// livenessTTL is how long after its last sign of life a sandbox counts as alive without a ping.
const livenessTTL = 5 * time.Second

// alive reports whether the sandbox can still run a program. Its process may have died and its
// machine may have slept.
func (b *instance) alive(ctx context.Context) bool {
	select {
	case <-b.process.Done():
		return false
	case <-b.ctx.Done():
		return false
	default:
	}
	if time.Since(b.lastAlive) < livenessTTL {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return b.bridge.Ping(ctx) == nil
}

// clean removes the sandbox completely.
func (b *instance) clean() error {
	b.stop(stopError{Canceled})
	errs := []error{destroySandbox(b.process, b.cgroup, &b.host.cleanups)}
	for _, s := range []*stream.Stream{b.stdout, b.stderr} {
		if s != nil {
			s.Wait()
		}
	}
	if b.zygote != nil {
		b.zygote.Close()
	}
	b.begin.Lock() // a process may be forked ahead at this moment
	if b.bridge != nil {
		errs = append(errs, b.bridge.Close())
	}
	b.begin.Unlock()
	errs = append(errs, os.RemoveAll(b.dir))
	if b.servers != nil {
		errs = append(errs, b.host.releaseServers(b.servers))
	}
	return errors.Join(errs...)
}

// destroySandbox removes the process and the cgroup of a sandbox; process is nil if it did not start. If the last
// process takes long to exit, as on an overloaded machine, the cgroup is removed in the background.
func destroySandbox(process *runsc.Process, group *cgroup, background *sync.WaitGroup) error {
	var err error
	if process != nil {
		err = process.Destroy()
	}
	removeErr := group.remove()
	if errors.Is(removeErr, syscall.EBUSY) {
		background.Go(group.removeLater)
		removeErr = nil
	}
	return errors.Join(err, removeErr)
}

// discard removes the sandbox in the background. Host.Close waits for it.
func (b *instance) discard() {
	b.stop(stopError{Canceled})
	b.host.cleanups.Go(func() {
		if err := b.close(); err != nil {
			b.host.log.Error("clear sandbox away", "sandbox", b.id, "error", err)
		}
	})
}

// redirectOutput redirects the sandbox's further output to these writers.
func (b *instance) redirectOutput(stdout, stderr io.Writer) {
	b.stdout.Redirect(stdout)
	b.stderr.Redirect(stderr)
}
