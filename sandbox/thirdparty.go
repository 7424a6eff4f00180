//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/sandbox/checkpoint"
	"sallyport/sandbox/runsc"
)

// homeInodes is the maximum number of files in the home folder of a third-party program.
const homeInodes = 100_000

// exitError is the exit status of a service that ended by itself.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("it ended with status %d", int(e)) }

// Ended says how the service ended; call it after Done. exited is false if it was stopped, and reason says why then.
func (s *Server) Ended() (status int, exited bool, reason Status) {
	if exit, ok := errors.AsType[exitError](s.why); ok {
		return int(exit), true, ""
	}
	stop, _ := errors.AsType[stopError](s.why)
	return 0, false, stop.status
}

// Sentry returns the process ID of the sandbox's kernel, 0 while it is unknown.
func (s *Server) Sentry() int { return s.process.Sentry() }

func (service Service) limits(of *Server) watchLimits {
	limits := watchLimits{sentry: of.process.Sentry, cgroup: of.cgroup, gauge: &memoryGauge{}, memory: service.Memory}
	if service.ThirdParty != nil {
		limits.cpu, limits.window = service.ThirdParty.CPU, time.Hour
	}
	return limits
}

func (f *ThirdParty) closeStreams() {
	if f != nil {
		_, _, _ = f.Stdin.Close(), f.Stdout.Close(), f.Stderr.Close()
	}
}

// points returns the mount points of a service, of which dir is one.
func (f *ThirdParty) points(dir string) []string {
	if f == nil {
		return append(MountPoints(), dir)
	}
	return slices.Concat([]string{"/proc", "/dev", "/tmp", dir, HomeDir}, f.Scratch, slices.Collect(maps.Keys(f.Writable)))
}

// mounts returns the mounts of a service: a third-party program has no wrappers and no guest, but a home and folders to write.
func (f *ThirdParty) mounts(common []specs.Mount) []specs.Mount {
	if f == nil {
		return common
	}
	all := slices.DeleteFunc(common, func(m specs.Mount) bool { return m.Destination == guestDir || m.Destination == serversDir })
	home := tmpfs(HomeDir, tmpSize, homeInodes, "0777")
	if f.Home != "" {
		home = bindWritable(HomeDir, f.Home)
	}
	all = append(all, home)
	for _, at := range f.Scratch {
		all = append(all, tmpfs(at, tmpSize, homeInodes, "0777"))
	}
	for at, source := range f.Writable {
		all = append(all, bindWritable(at, source))
	}
	return all
}

func bindWritable(at, source string) specs.Mount {
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"bind", "rw", "nosuid", "nodev"}}
}

// adapt sets what differs for a third-party program. Root of a sandbox owns what the user of this process owns outside, and has no
// capabilities.
func (f *ThirdParty) adapt(p *specs.Process) *specs.Process {
	if f == nil {
		return p
	}
	if p.Cwd = HomeDir; f.User != nil {
		p.User = specs.User{UID: f.User.UID, GID: f.User.GID}
	}
	if f.Owner {
		p.User = specs.User{}
	}
	if f.Cwd != "" {
		p.Cwd = f.Cwd
	}
	env := map[string]string{"HOME": HomeDir}
	maps.Copy(env, f.Env)
	p.Env = slices.DeleteFunc(p.Env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		_, replaced := env[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.Env = append(p.Env, name+"="+env[name])
	}
	return p
}

// checkpointFormat is changed when the state of a sandbox changes without any input of its digest.
const checkpointFormat = "1"

// plan returns how to start the service.
func (s *Server) plan(service Service, spec []byte) (Plan, error) {
	f := service.ThirdParty
	if f == nil || f.Plan == nil {
		return Plan{}, nil
	}
	sum := sha256.New()
	fmt.Fprintln(sum, checkpointFormat, runtime.GOARCH, s.host.runsc.Rootless, checkpoint.CPUFeatures(), service.Environment.Digest, f.Network != nil, f.NameServer)
	for _, path := range []string{s.host.runsc.Path, s.host.HostInterpreter(service.Interpreter)} {
		if path == "" {
			continue
		}
		if err := addFile(sum, path); err != nil {
			return Plan{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(service.Files)) {
		fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(service.Files[name]))
	}
	_, _ = sum.Write(bytes.ReplaceAll(spec, []byte(s.dir), nil))
	return f.Plan(hex.EncodeToString(sum.Sum(nil))[:32]), nil
}

// run starts runsc as planned.
func (s *Server) run(settings *runsc.Runsc, plan Plan, stdio runsc.Stdio) (err error) {
	if plan.Trace != "" {
		settings.DebugLog, settings.Syscalls = plan.Trace, checkpoint.Syscalls
	}
	if plan.Image != "" {
		s.process, err = settings.Restore(s.id, s.dir, plan.Image, stdio)
	} else {
		s.process, err = settings.Start(s.id, s.dir, stdio)
	}
	return err
}

// Checkpoint ends the service and saves its state as image files in a directory, which it makes.
func (s *Server) Checkpoint(ctx context.Context, image string) error {
	return s.host.runsc.Checkpoint(ctx, s.id, image)
}

// network returns the network of a service, nil for none.
func (f *ThirdParty) network() Network {
	if f == nil {
		return nil
	}
	return f.Network
}

// namespace returns the network namespace of the OCI configuration: with a network, the one that runsc is started in.
func (f *ThirdParty) namespace() string {
	if f.network() == nil {
		return ""
	}
	return "/proc/self/ns/net"
}

// addNames lets programs resolve names by the name server of the network. A root of its own has files mounted over its own ones.
func (r *rootfs) addNames(service Service, own string) error {
	f, root := service.ThirdParty, service.Environment.Root
	if f == nil {
		return nil
	}
	files := map[string]string{}
	if f.network() != nil {
		files["resolv.conf"] = "nameserver " + f.NameServer + "\noptions timeout:2 attempts:2\n"
		files["nsswitch.conf"] = "passwd: files\ngroup: files\nhosts: files dns\n"
	}
	dir := filepath.Join(r.dir, "etc")
	if root != "" {
		files["hosts"], dir = "127.0.0.1 localhost\n::1 localhost\n", own
	}
	err := os.MkdirAll(dir, 0o755)
	for name, text := range files {
		at := "/etc/" + name
		if root != "" {
			if info, err := os.Lstat(root + at); err != nil || !info.Mode().IsRegular() || !isRealFolder(root+"/etc") {
				continue
			}
			r.mounts = append(r.mounts, bind(at, filepath.Join(dir, name)))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644), os.Chmod(filepath.Join(dir, name), 0o644))
	}
	return err
}

func isRealFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// addFiles makes the mount points of single files, and the files about names, in a folder for those. Only a root file system that is laid out
// for this service can have single files.
func (r *rootfs) addFiles(service Service, files map[string]bool, names string) error {
	if err := r.addNames(service, names); err != nil {
		return err
	}
	for at, is := range files {
		switch {
		case !is || slices.ContainsFunc(slices.Collect(maps.Keys(service.Mounts)), func(other string) bool { return other != at && !files[other] && within(at, other) }):
		case service.Environment.Root != "" || within(at, "/tmp"):
			return fmt.Errorf("mount %.200q: it is a file; mount its folder", at)
		default:
			if err := mountPoint(r.dir, at); err != nil {
				return err
			}
		}
	}
	for at, source := range service.Mounts {
		if _, err := os.Stat(source); err != nil {
			return fmt.Errorf("mount %.200q: %w", at, unwrapPath(err))
		}
	}
	for at, source := range service.ThirdParty.writable() {
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			return fmt.Errorf("mount %.200q to write: %s is not a folder", at, filepath.Base(source))
		}
	}
	return nil
}

func (f *ThirdParty) writable() map[string]string {
	if f == nil {
		return nil
	}
	return f.Writable
}

// unwrapPath returns the cause of an error about a path.
func unwrapPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
