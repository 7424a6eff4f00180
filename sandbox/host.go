//go:build linux

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"sallyport/internal/build"
	"sallyport/sandbox/rights"
	"sallyport/sandbox/runsc"
)

// Host starts sandboxes on this machine. It is safe for concurrent use.
type Host struct {
	opts    Options
	log     *slog.Logger
	runsc   *runsc.Runsc
	cgroups cgroups
	dir     string
	lock    *os.File
	slots   chan struct{}
	close   func() error
	ctx     context.Context //nolint:containedctx // ends with the host: Close cancels what still runs

	environments *environments
	roots        roots
	generations  generations
	snapshots    *snapshots
	pool         *pool
	sessions     *sessions
	reuse        *reuse

	mu           sync.Mutex // orders the end of ctx and running.Add
	running      sync.WaitGroup
	snapshotting sync.WaitGroup // snapshots
	poolWork     sync.WaitGroup // the pool
	cleanups     sync.WaitGroup // removals of sandboxes
}

// New prepares a host: it finds runsc and the interpreters, removes the remains of
// killed hosts, and lays out the files that sandboxes share. The caller must Close it.
func New(opts Options) (*Host, error) {
	h := &Host{opts: opts, log: opts.Logger, environments: newEnvironments(opts.Environments)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if opts.Parallel == 0 {
		opts.Parallel = 4
	}
	h.slots = make(chan struct{}, opts.Parallel)
	if err := h.findRuntime(); err != nil {
		return nil, err
	}
	if err := h.prepare(); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	var err error
	if h.snapshots, err = h.openSnapshots(); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	h.ctx = ctx
	h.sessions = &sessions{host: h, idle: cmp.Or(opts.SessionIdle, 10*time.Minute), open: map[sessionKey]*session{}}
	h.pool = newPool(h, opts.Pool)
	h.reuse = &reuse{host: h, used: map[reuseKey]ownerUse{}, retryAfter: map[kind]time.Time{}}
	h.poolWork.Go(func() { h.pool.fill(ctx) })
	h.poolWork.Go(func() { h.sweep(ctx) })
	h.close = sync.OnceValue(func() error {
		h.mu.Lock()
		cancel(stopError{Canceled})
		h.mu.Unlock()
		h.drain()
		return h.remove()
	})
	return h, nil
}

// drain waits until all sandboxes, running and idle, have ended.
func (h *Host) drain() {
	h.running.Wait()
	h.poolWork.Wait()
	h.snapshotting.Wait()
	h.sessions.closeAll()
	h.reuse.discardIdle(func(*instance) bool { return true })
	h.cleanups.Wait()
}

// Close stops all programs, waits for them, and removes all files of the host. It is idempotent.
func (h *Host) Close() error { return h.close() }

// beginRun registers one more sandbox, or returns an error if the host is closed.
func (h *Host) beginRun() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	h.running.Add(1)
	return nil
}

func (h *Host) findRuntime() error {
	path, err := FindRunsc(h.opts.Runsc)
	if err != nil {
		return err
	}
	h.runsc = &runsc.Runsc{Path: path, Rootless: rights.Read("/", os.Geteuid()).Rootless(), DebugLog: h.opts.DebugLog}
	h.cgroups = cgroups{mode: NoCgroup}
	if !h.opts.NoCgroups {
		h.cgroups = findCgroups(ownThread)
	}
	return nil
}

// guestBin is the folder in the sandbox for an interpreter from outside systemDirs.
const guestBin = "/opt/interpreter"

// FindRunsc resolves the path of runsc. It returns ErrNoRunsc if there is none.
func FindRunsc(explicit string) (string, error) {
	if explicit != "" {
		if _, err := exec.LookPath(explicit); err != nil {
			return "", fmt.Errorf("%w: sandbox.runsc in upstreams.yaml is %s", ErrNoRunsc, explicit)
		}
		return filepath.Abs(explicit)
	}
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), "runsc"); isExecutable(path) {
			return path, nil
		}
	}
	path, err := exec.LookPath("runsc")
	if err != nil {
		return "", fmt.Errorf("%w: %s", ErrNoRunsc, runscFix())
	}
	return filepath.Abs(path)
}

// runscFix says how to get runsc where this program is installed.
func runscFix() string {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		self = ""
	}
	return build.Read().RunscFix(self) + ", or set sandbox.runsc in upstreams.yaml"
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (h *Host) prepare() error {
	parent, err := stateDir(h.opts.State)
	if err != nil {
		return err
	}
	clearStale(parent, h.cgroups, h.log)
	if err := withDirLock(parent, func() error { return h.createDir(parent) }); err != nil {
		return err
	}
	h.runsc.Root = filepath.Join(h.dir, "runsc")
	if _, err := h.rootOf(""); err != nil {
		return err
	}
	if err := os.CopyFS(h.guest(), h.opts.Guest); err != nil {
		return fmt.Errorf("write guest files: %w", err)
	}
	if err := makeReadable(h.guest()); err != nil {
		return err
	}
	return h.Publish(nil)
}

// guest is the folder with the guest's files, which start the program.
func (h *Host) guest() string { return filepath.Join(h.dir, "guest") }

// roots are the root file systems of environments, laid out on first use.
type roots struct {
	mu     sync.Mutex
	byName map[string]*rootfs
}

func (h *Host) rootOf(environment string) (*rootfs, error) {
	h.roots.mu.Lock()
	defer h.roots.mu.Unlock()
	if made := h.roots.byName[environment]; made != nil {
		return made, nil
	}
	dir := filepath.Join(h.dir, fmt.Sprintf("root-%d", len(h.roots.byName)))
	defined, _ := h.environments.get(environment)
	made, err := h.root(dir, defined)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if h.roots.byName == nil {
		h.roots.byName = map[string]*rootfs{}
	}
	h.roots.byName[environment] = made
	return made, nil
}

// createDir creates this host's own directory and locks it.
func (h *Host) createDir(parent string) error {
	var err error
	if h.dir, err = os.MkdirTemp(parent, "host-"); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	if h.lock, err = lockDir(h.dir); err != nil {
		return err
	}
	return saveCgroups(h.cgroups, h.dir)
}

func (h *Host) remove() error {
	if h.dir == "" {
		return nil
	}
	err := withDirLock(filepath.Dir(h.dir), func() error { return os.RemoveAll(h.dir) })
	if errors.Is(err, fs.ErrNotExist) { // another process has removed all of it
		err = nil
	}
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	return err
}

// sweepInterval is the interval between removals of what killed hosts left.
const sweepInterval = time.Minute

// sweep periodically removes the remains of killed hosts, until ctx ends.
func (h *Host) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			clearStale(filepath.Dir(h.dir), h.cgroups, h.log)
		}
	}
}

// Sweep removes the remains of killed hosts from a state directory, as New does; "" is the default directory.
func Sweep(state string, log *slog.Logger) error {
	parent, err := stateDir(state)
	if err == nil {
		clearStale(parent, cgroups{mode: NoCgroup}, log)
	}
	return err
}

// clearStale removes the state of killed hosts, which are those whose lock is free.
func clearStale(parent string, c cgroups, log *slog.Logger) {
	stale := map[string]*os.File{}
	err := withDirLock(parent, func() error {
		dirs, err := filepath.Glob(filepath.Join(parent, "host-*"))
		for _, dir := range dirs {
			if lock, lockErr := lockDir(dir); lockErr == nil { // else it is alive
				stale[dir] = lock
			}
		}
		return err
	})
	if err != nil {
		log.Warn("look for what a killed gateway left", "dir", parent, "error", err)
	}
	for dir, lock := range stale {
		killed, err := clearHost(c, dir)
		log.Info("cleared what a killed gateway left", "dir", dir, "processes", killed, "error", err)
		_ = lock.Close()
	}
}
