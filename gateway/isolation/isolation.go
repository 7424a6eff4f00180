// Package isolation runs the processes of upstreams in gVisor sandboxes. Its main type is [Launcher]. A command that would
// fetch packages (npx, uvx) becomes an installation into a layer, with a lock and without scripts of the packages, and the
// package's program runs from the read-only layer. An OCI image is the read-only root of its sandbox. Nothing of a package, an
// image, a binary or a server runs outside of a sandbox.
package isolation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/upstream/process"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/checkpoint"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/egress"
	"sallyport/sandbox/image"
)

// Sandboxes starts the sandboxes.
type Sandboxes interface {
	Serve(service sandbox.Service) (*sandbox.Server, error)
}

// Installer installs packages.
type Installer interface {
	// Layer returns the layer of a request, which is kept while this process lives.
	Layer(ctx context.Context, request deps.Request) (deps.Layer, error)
}

// Images pulls OCI images.
type Images interface {
	// Image returns an image, which is kept while this process lives. A tag means the image that it named at its first use.
	Image(ctx context.Context, reference string) (image.Root, error)
	// Moved returns a reference with the digest that its tag has now, "" if that is still the digest of its first use.
	Moved(ctx context.Context, reference string) (string, error)
}

// Options are the dependencies of a Launcher. All are required but DataDir.
type Options struct {
	Sandboxes Sandboxes
	Installer Installer
	Images    Images
	// DataDir has the home folders that are kept, in upstreams/; with "" none can be.
	DataDir string
	// Lookup resolves the names of hosts; nil is the resolver of this machine.
	Lookup egress.Lookup
	Logger *slog.Logger
	// Checkpoints is the directory of the states from which programs start; "" is none. They have the secrets of the programs.
	Checkpoints string
	// Profile gets what programs are refused; they have no checkpoints then. nil is none.
	Profile *Profile
}

// Launcher starts the processes of upstreams in sandboxes. It is safe for concurrent use. Close it after the sessions.
type Launcher struct {
	opts        Options
	checkpoints *checkpoint.Store // nil for none
	work        sync.WaitGroup
	quit        context.Context //nolint:containedctx // ends with the gateway: an installation outlives the attempt to connect
	stop        context.CancelFunc

	layers installs[deps.Layer]
	images installs[image.Root]
	tags   tagChecks
}

// New returns a launcher.
func New(opts Options) *Launcher {
	l := &Launcher{opts: opts}
	l.quit, l.stop = context.WithCancel(context.Background())
	if opts.Checkpoints != "" && opts.Profile == nil {
		var err error
		if l.checkpoints, err = checkpoint.Open(opts.Checkpoints); err != nil {
			opts.Logger.Warn("upstreams start without checkpoints", "error", err)
		}
		l.work.Go(l.pruneCheckpoints)
	}
	return l
}

// keepCheckpoints is how long unused checkpoints are kept.
const keepCheckpoints = 30 * 24 * time.Hour

func (l *Launcher) pruneCheckpoints() {
	if _, err := checkpoint.Existing(l.opts.Checkpoints).Prune(l.quit, time.Now().Add(-keepCheckpoints), false); err != nil && l.quit.Err() == nil {
		l.opts.Logger.Warn("unused checkpoints could not be removed", "error", err)
	}
}

// Close cancels installations and waits for them.
func (l *Launcher) Close() {
	l.stop()
	l.work.Wait()
}

const (
	openFiles = 4096
	// ownDir is where a sandbox has files of the gateway for the process.
	ownDir = "/opt/upstream"
)

// Check reports whether the process of an upstream can start in a sandbox, after its packages have been installed.
func (l *Launcher) Check(ctx context.Context, up config.Upstream) error {
	run, err := resolve(up)
	if err != nil {
		return err
	}
	return l.prepare(ctx, up, run, &sandbox.Service{Mounts: map[string]string{}, ThirdParty: &sandbox.ThirdParty{Env: map[string]string{}}})
}

// Start starts the process of an upstream in a sandbox.
func (l *Launcher) Start(ctx context.Context, up config.Upstream, streams process.Streams) (process.Program, error) {
	server, err := l.start(ctx, up, streams)
	if err != nil {
		_, _, _ = streams.Stdin.Close(), streams.Stdout.Close(), streams.Stderr.Close()
		return nil, err
	}
	l.watchTag(up, streams.Log)
	return &program{server: server, limits: up.Isolate.Limits}, nil
}

func (l *Launcher) start(ctx context.Context, up config.Upstream, streams process.Streams) (*sandbox.Server, error) {
	run, err := resolve(up)
	if file, ok := errors.AsType[*hiddenFile](err); ok && l.opts.Profile != nil && l.opts.Profile.show(file.dir) {
		isolate := *up.Isolate
		isolate.Mounts = append(slices.Clone(isolate.Mounts), config.IsolationMount{Path: file.dir, Mode: config.MountReadOnly})
		up.Isolate = &isolate
		run, err = resolve(up)
	}
	if err != nil {
		return nil, err
	}
	return l.startService(ctx, up, streams, func() (sandbox.Service, error) {
		service, err := l.service(up, streams)
		if err == nil {
			err = l.prepare(ctx, up, run, &service)
		}
		if l.checkpointed(up) {
			addFreshRandom(&service)
		}
		return service, err
	})
}

// service returns the sandbox of an upstream, without its program.
func (l *Launcher) service(up config.Upstream, streams process.Streams) (sandbox.Service, error) {
	set := up.Isolate
	thirdParty := &sandbox.ThirdParty{
		Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr, Env: map[string]string{}, Writable: map[string]string{}, CPU: set.Limits.CPU,
		Owner: len(set.Mounts) > 0 || set.Home == config.HomeKeep,
	}
	s := sandbox.Service{
		ID: "upstream-" + strings.ToLower(rand.Text()[:12]), Dir: ownDir, Mounts: map[string]string{}, Memory: int64(set.Limits.Memory), Space: int64(set.Limits.Memory) / 2,
		Processes: set.Limits.Processes, OpenFiles: openFiles, ThirdParty: thirdParty,
	}
	for _, mount := range set.Mounts {
		if mount.Mode == config.MountWritable {
			thirdParty.Writable[mount.Path] = mount.Path
		} else {
			s.Mounts[mount.Path] = mount.Path
		}
		if within(up.Dir, mount.Path) && set.Image == "" {
			thirdParty.Cwd = up.Dir
		}
	}
	maps.Copy(thirdParty.Env, up.Env)
	if err := l.connect(up, &s, streams.Log); err != nil {
		return s, err
	}
	var err error
	if set.Home == config.HomeKeep {
		thirdParty.Home, err = l.home(up.ID)
	}
	return s, err
}

// home returns the folder of an upstream's home, which it makes.
func (l *Launcher) home(id string) (string, error) {
	if l.opts.DataDir == "" {
		return "", invalid("isolate.home is keep, and there is no data directory", "name one with --data")
	}
	dir, err := filepath.Abs(filepath.Join(l.opts.DataDir, "upstreams", id, "home"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("make its home folder: %w", err)
	}
	return dir, nil
}

// prepare sets the program of a service, after its packages have been installed.
func (l *Launcher) prepare(ctx context.Context, up config.Upstream, run command, s *sandbox.Service) error {
	if up.Isolate.Image != "" {
		return l.prepareImage(ctx, up, s)
	}
	s.Interpreter, s.Args = run.interpreter, run.args
	maps.Copy(s.Mounts, run.files)
	if len(run.packages) == 0 {
		return nil
	}
	request := deps.Request{Interpreter: run.interpreter, Packages: run.packages, Index: up.Isolate.Registry}
	layer, err := l.layers.get(ctx, l, fmt.Sprint(request.Interpreter, request.Packages, request.Index), strings.Join(request.Packages, ", "), func() (deps.Layer, error) {
		return l.opts.Installer.Layer(l.quit, request)
	})
	if err != nil {
		return err
	}
	start, err := entry(layer, run)
	if err != nil {
		return err
	}
	s.Args = append(start, run.args...)
	layer.AddTo(&s.Environment)
	if run.interpreter == sandbox.Python {
		s.ThirdParty.Env["PYTHONPATH"] = strings.Join(s.Environment.PythonPath, ":")
	}
	return nil
}

// program is the running process of an upstream.
type program struct {
	server *sandbox.Server
	limits config.IsolationLimits
}

// Done is closed when the sandbox is removed.
func (p *program) Done() <-chan struct{} { return p.server.Done() }

// Close kills the process and waits until its sandbox is removed.
func (p *program) Close() error { return p.server.Close() }

// Pid returns the process ID of the sandbox's kernel.
func (p *program) Pid() int { return p.server.Sentry() }

// Exit returns the exit status of the process.
func (p *program) Exit() (status int, exited bool) {
	status, exited, _ = p.server.Ended()
	return status, exited
}

// Status says how the process ended, and which limit it exceeded.
func (p *program) Status() string {
	status, exited, reason := p.server.Ended()
	switch {
	case exited:
		return fmt.Sprintf("exited with status %d", status)
	case reason == sandbox.OutOfMemory:
		return fmt.Sprintf("was stopped: it used more memory than isolate.limits.memory, %v", p.limits.Memory)
	case reason == sandbox.OutOfCPU:
		return fmt.Sprintf("was stopped: it used more processor time in an hour than isolate.limits.cpu, %v", p.limits.CPU)
	}
	return "was stopped"
}

// invalid is the error of settings that cannot be isolated, and what would be right.
func invalid(message, fix string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message + "; " + fix}
}

// within reports whether name is dir or below it; both are clean paths.
func within(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}
