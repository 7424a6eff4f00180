//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/internal/sanitize"
	"sallyport/sandbox/runsc"
)

// serviceNice gives programs priority over services for the CPU.
const serviceNice = 10

// Server is a running service. It sees the last publish at /servers. Read, Write and
// Close may be called concurrently.
type Server struct {
	host          *Host
	id, dir       string
	process       *runsc.Process
	cgroup        *cgroup
	stdin, stdout *os.File
	listener      *net.UnixListener
	network       Network // nil for none
	stderr        *outputBuffer
	stderrDone    sync.WaitGroup
	stop          context.CancelCauseFunc
	done          chan struct{}
	err           error // what could not be removed; set before done is closed
	why           error // why it ended; set before done is closed
}

// Serve starts a service and returns at once; a later failure of the start ends the
// service. A service does not count towards Options.Parallel. It ends with its Close or
// the host's.
func (h *Host) Serve(service Service) (*Server, error) {
	if !validID.MatchString(service.ID) {
		return nil, fmt.Errorf("start service: invalid ID %.50q", service.ID)
	}
	if err := h.beginRun(); err != nil {
		return nil, err
	}
	s := &Server{host: h, id: service.ID, dir: filepath.Join(h.dir, service.ID), done: make(chan struct{})}
	ctx, stop := context.WithCancelCause(h.ctx)
	s.stop = stop
	if err := s.start(service); err != nil {
		service.ThirdParty.closeStreams()
		stop(err)
		err = errors.Join(err, s.clean())
		h.running.Done()
		return nil, fmt.Errorf("start service: %w", err)
	}
	go s.supervise(ctx, service.limits(s))
	return s, nil
}

func (s *Server) start(service Service) error {
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		s.dir = "" // it belongs to another sandbox
		return err
	}
	mounts := service.resizeTmp(service.ThirdParty.mounts(commonMounts(hostPaths{guest: s.host.guest(), servers: s.host.servers()})))
	points := service.ThirdParty.points(service.Dir)
	if service.Socket {
		mount, err := s.listen()
		if err != nil {
			return err
		}
		mounts = append(mounts, mount)
	}
	files := map[string]bool{} // among the mounts
	for at, source := range service.Mounts {
		if mounts, files[at] = append(mounts, bind(at, source)), service.ThirdParty != nil && isFile(source); !files[at] {
			points = append(points, at)
		}
	}
	root, err := s.host.root(s.dir, service.Environment, points...)
	if err == nil {
		err = root.addFiles(service, files, filepath.Join(s.dir, "names"))
	}
	if err != nil {
		return err
	}
	own := filepath.Join(s.dir, "files") // not into the root file system, which may be shared
	if err := writeServiceFiles(own, service.Files); err != nil {
		return err
	}
	mounts = append(mounts, bind(service.Dir, own))
	process, err := serviceProcess(service, root)
	if err != nil {
		return err
	}
	spec, err := encodeSpec(root.dir, process, append(mounts, root.mounts...), service.ThirdParty.namespace())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "config.json"), spec, 0o600); err != nil {
		return err
	}
	if s.cgroup, err = s.host.cgroups.make(cgroupName(s.host.dir, s.id), service.Memory); err != nil {
		return err
	}
	plan, err := s.plan(service, spec)
	if err != nil {
		return err
	}
	return s.launch(service, plan)
}

// writeServiceFiles writes the files of a service into a new folder, for every user to read.
func writeServiceFiles(dir string, files map[string][]byte) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return writeFiles(root, files)
}

func serviceProcess(service Service, root *rootfs) (*specs.Process, error) {
	args := service.Args
	if service.Interpreter != "" {
		program, err := root.program(service.Interpreter)
		if err != nil {
			return nil, err
		}
		args = append([]string{program}, args...)
	}
	return service.ThirdParty.adapt(&specs.Process{
		Args: args, Cwd: service.Dir, Env: environ("/tmp", root.path),
		User: specs.User{UID: nobodyID, GID: nobodyID}, Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: true,
		Rlimits: commonRlimits(service.Processes, service.OpenFiles, service.tmpBytes()),
	}), nil
}

// launch starts runsc with pipes as standard streams.
func (s *Server) launch(service Service, plan Plan) error {
	stdio, err := s.streams(service.ThirdParty)
	defer func() { // the service has inherited them, or did not start
		_, _, _ = stdio.Stdin.Close(), stdio.Stdout.Close(), stdio.Stderr.Close()
	}()
	if err != nil {
		return err
	}
	settings := *s.host.runsc
	settings.Enter = s.cgroup.enter
	settings.SharedMounts, settings.NoSockets, settings.Nice = true, !service.Socket, serviceNice
	if s.network = service.ThirdParty.network(); s.network == nil {
		return s.run(&settings, plan, stdio)
	}
	settings.Network, settings.Prepare = true, s.network.Wrap
	if err := s.run(&settings, plan, stdio); err != nil {
		return err
	}
	return s.network.Start()
}

// streams makes the pipes of a service, unless it has its own. Its stderr is kept for the log.
func (s *Server) streams(of *ThirdParty) (stdio runsc.Stdio, err error) {
	s.stderr = newOutputBuffer(4<<10, 1<<62, func() {})
	if of != nil {
		return runsc.Stdio{Stdin: of.Stdin, Stdout: of.Stdout, Stderr: of.Stderr}, nil
	}
	var stderr *os.File
	for _, pipe := range []struct{ read, write **os.File }{{&stdio.Stdin, &s.stdin}, {&s.stdout, &stdio.Stdout}, {&stderr, &stdio.Stderr}} {
		if *pipe.read, *pipe.write, err = os.Pipe(); err != nil {
			return stdio, fmt.Errorf("make pipe: %w", err)
		}
	}
	s.stderrDone.Go(func() { s.stderr.readAll(stderr); _ = stderr.Close() })
	return stdio, nil
}

// supervise waits for the end of the service and removes the sandbox.
func (s *Server) supervise(ctx context.Context, limits watchLimits) {
	defer s.host.running.Done()
	var watcher sync.WaitGroup
	watcher.Go(func() {
		watch(ctx, limits, func(why Status) { s.stop(stopError{why}) })
	})
	select {
	case <-s.process.Done():
		exit, _ := s.process.Wait()
		s.stop(exitError(exit))
	case <-ctx.Done():
	}
	cleanErr := s.clean()
	watcher.Wait()
	cause := context.Cause(ctx)
	s.host.log.Debug("service ended", "service", s.id, "why", cause, "stderr", sanitize.Line(s.stderr.output().Text, 500))
	if cleanErr != nil {
		s.host.log.Error("clear sandbox away", "service", s.id, "error", cleanErr)
	}
	s.err, s.why = cleanErr, cause
	close(s.done)
}

func (s *Server) clean() error {
	if s.dir == "" {
		return nil
	}
	err := destroySandbox(s.process, s.cgroup, &s.host.cleanups)
	if s.network != nil {
		s.network.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for _, pipe := range []*os.File{s.stdin, s.stdout} {
		if pipe != nil {
			_ = pipe.Close()
		}
	}
	s.stderrDone.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Read reads the service's standard output. It returns an error after the service has ended.
func (s *Server) Read(p []byte) (int, error) { return s.stdout.Read(p) }

// Write writes to the service's standard input. It blocks while the service does not read.
func (s *Server) Write(p []byte) (int, error) { return s.stdin.Write(p) }

// Done is closed when the service has ended and its sandbox is removed.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close kills the service, waits until its sandbox is removed, and unblocks Read
// and Write. It is idempotent.
func (s *Server) Close() error {
	s.stop(stopError{Canceled})
	<-s.done
	return s.err
}
