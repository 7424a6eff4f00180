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
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/internal/sanitize"
	"sallyport/sandbox/runsc"
)

// serviceNice lets programs go first where both want the processor.
const serviceNice = 10

// Server is a service that runs. What it sees at /servers is what Publish made
// last. Reading, writing and closing may be done at the same time.
type Server struct {
	host          *Host
	id, dir       string
	process       *runsc.Process
	cgroup        *cgroup
	stdin, stdout *os.File
	listener      *net.UnixListener
	stderr        *clip
	drained       sync.WaitGroup
	stop          context.CancelCauseFunc
	ended         chan struct{}
	err           error // why it ended, and what could not be cleared away
}

// Serve starts a service and returns at once; what keeps it from starting for
// good is seen as its end. It takes none of the places of Options.Parallel.
// Close ends it, and so does closing the host.
func (h *Host) Serve(service Service) (*Server, error) {
	if !validID.MatchString(service.ID) {
		return nil, fmt.Errorf("start service: %.50q is no id", service.ID)
	}
	if err := h.enter(); err != nil {
		return nil, err
	}
	s := &Server{host: h, id: service.ID, dir: filepath.Join(h.dir, service.ID), ended: make(chan struct{})}
	ctx, stop := context.WithCancelCause(h.ctx)
	s.stop = stop
	if err := s.start(service); err != nil {
		stop(err)
		err = errors.Join(err, s.clean())
		h.running.Done()
		return nil, fmt.Errorf("start service: %w", err)
	}
	go s.follow(ctx, service.Memory)
	return s, nil
}

func (s *Server) start(service Service) error {
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		s.dir = "" // it is another's
		return err
	}
	mounts := service.resize(commonMounts(places{guest: s.host.guest(), servers: s.host.servers()}))
	points := []string{service.Dir}
	if service.Socket {
		mount, err := s.listen()
		if err != nil {
			return err
		}
		mounts = append(mounts, mount)
	}
	for at, source := range service.Mounts {
		mounts, points = append(mounts, bind(at, source)), append(points, at)
	}
	root, err := s.host.root(s.dir, service.Environment, points...)
	if err != nil {
		return err
	}
	files := filepath.Join(s.dir, "files") // not into a root file system that others use, too
	if err := writeService(files, service.Files); err != nil {
		return err
	}
	mounts = append(mounts, bind(service.Dir, files))
	process, err := serviceProcess(service, root)
	if err != nil {
		return err
	}
	spec, err := write(root.dir, process, append(mounts, root.mounts...))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "config.json"), spec, 0o600); err != nil {
		return err
	}
	if s.cgroup, err = s.host.cgroups.make(cgroupName(s.host.dir, s.id), service.Memory); err != nil {
		return err
	}
	return s.launch(!service.Socket)
}

// writeService writes the files of a service into a new folder, for every user to read.
func writeService(dir string, files map[string][]byte) error {
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
	return &specs.Process{
		Args: args, Cwd: service.Dir, Env: environment("/tmp", root.path),
		User: specs.User{UID: nobody, GID: nobody}, Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: true,
		Rlimits: commonRlimits(service.Processes, service.OpenFiles, service.space()),
	}, nil
}

// launch starts runsc between two pipes. What it says on stderr is kept for the log.
func (s *Server) launch(noSockets bool) error {
	var stdio runsc.Stdio
	var stderr *os.File
	defer func() { // they are the service's now, or nobody's
		_, _, _ = stdio.Stdin.Close(), stdio.Stdout.Close(), stdio.Stderr.Close()
	}()
	for _, pipe := range []struct{ read, write **os.File }{{&stdio.Stdin, &s.stdin}, {&s.stdout, &stdio.Stdout}, {&stderr, &stdio.Stderr}} {
		var err error
		if *pipe.read, *pipe.write, err = os.Pipe(); err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
	}
	s.stderr = newClip(4<<10, 1<<62, func() {})
	s.drained.Go(func() { s.stderr.drain(stderr); _ = stderr.Close() })
	settings := *s.host.runsc
	settings.Enter = s.cgroup.enter
	settings.SharedMounts, settings.NoSockets, settings.Nice = true, noSockets, serviceNice
	var err error
	s.process, err = settings.Start(s.id, s.dir, stdio)
	return err
}

// follow waits for the end, of whatever kind, and clears the sandbox away.
func (s *Server) follow(ctx context.Context, memory int64) {
	defer s.host.running.Done()
	var watcher sync.WaitGroup
	watcher.Go(func() {
		watch(ctx, watched{sentry: s.process.Sentry, cgroup: s.cgroup, memory: memory}, func(why Status) { s.stop(stopped{why}) })
	})
	select {
	case <-s.process.Done():
		exit, _ := s.process.Wait()
		s.stop(fmt.Errorf("it ended with status %d", exit))
	case <-ctx.Done():
	}
	cleanErr := s.clean()
	watcher.Wait()
	cause := context.Cause(ctx)
	s.host.log.Debug("service ended", "service", s.id, "why", cause, "stderr", sanitize.Line(s.stderr.output().Text, 500))
	if cleanErr != nil {
		s.host.log.Error("clear sandbox away", "service", s.id, "error", cleanErr)
	}
	s.err = cleanErr
	close(s.ended)
}

func (s *Server) clean() error {
	if s.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := end(ctx, s.process, s.cgroup, &s.host.cleaning)
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for _, pipe := range []*os.File{s.stdin, s.stdout} {
		if pipe != nil {
			_ = pipe.Close()
		}
	}
	s.drained.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Read reads what the service wrote to standard output. It ends with an error when the service has.
func (s *Server) Read(p []byte) (int, error) { return s.stdout.Read(p) }

// Write writes to its standard input, and waits while the service does not read.
func (s *Server) Write(p []byte) (int, error) { return s.stdin.Write(p) }

// Done is closed when the service has ended and nothing of it is left.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Close kills the service, waits until nothing of it is left, and unblocks Read
// and Write. It is idempotent.
func (s *Server) Close() error {
	s.stop(stopped{Canceled})
	<-s.ended
	return s.err
}
