//go:build linux

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rootfs is the root file system that the sandboxes of one environment share,
// read-only. Call [Host.root] once, for the environment's first job, and keep the
// result. The OCI spec of each sandbox then contains
//
//	Root:   &specs.Root{Path: r.dir, Readonly: true},
//	Mounts: append(its own mounts, r.mounts...),
//	Args:   r.program(interpreter), ...
//	Env:    environment(home) with "PATH=" + r.path
//
// where its own mounts are only at [MountPoints], because only those exist in the
// root file system. gVisor sorts mounts by the length of their destinations.
type rootfs struct {
	// dir is Root.Path of the OCI spec.
	dir string
	// mounts are the system folders, the layers, single interpreters and the masks.
	mounts []specs.Mount
	// path is the PATH of its processes.
	path string
	// programs are the available interpreters; missing has the reasons for the others.
	programs map[Interpreter]interpreter
	missing  map[Interpreter]error
}

// ErrNoInterpreter means that an environment cannot run programs of that language.
var ErrNoInterpreter = errors.New("this environment has no such interpreter")

// program returns the path of an interpreter inside, or ErrNoInterpreter.
func (r *rootfs) program(kind Interpreter) (string, error) {
	if found, ok := r.programs[kind]; ok {
		return found.inside, nil
	}
	return "", fmt.Errorf("%w (%s): %w", ErrNoInterpreter, kind, r.missing[kind])
}

// MountPoints returns the folders at which the host mounts something in every
// sandbox. A root file system that has all of them is used directly; otherwise its
// entries are mounted individually into a folder that has them.
func MountPoints() []string {
	return []string{"/proc", "/dev", "/tmp", "/workspace", guestDir, bridgeDir, serversDir}
}

// root lays out the root file system of an environment in dir, which must not
// exist yet and must stay while its sandboxes live. An environment needs at least one
// of the interpreters: see program. points are the mount points for a sandbox that
// does not run jobs, and needs no interpreter.
func (h *Host) root(dir string, env Environment, points ...string) (*rootfs, error) {
	if env.Root == "" {
		env.Masked = slices.Concat(h.opts.Masked, env.Masked)
		env.Python, env.Node = cmp.Or(env.Python, h.opts.Python), cmp.Or(env.Node, h.opts.Node)
	} else if err := CheckRoot(env.Root, h.dir, h.opts.Snapshots); err != nil {
		return nil, err
	}
	l := layout{env: env, dir: filepath.Join(dir, "rootfs"), emptyFile: filepath.Join(dir, "nothing"), points: points, jobs: len(points) == 0}
	if l.jobs {
		l.points = MountPoints()
	}
	if err := l.prepare(); err != nil {
		return nil, fmt.Errorf("lay out root file system: %w", err)
	}
	r, err := l.make()
	if err != nil {
		return nil, fmt.Errorf("lay out root file system: %w", err)
	}
	return r, nil
}

// layout assembles a root file system.
type layout struct {
	env       Environment
	dir       string   // where our own folder is made
	emptyFile string   // an empty file
	points    []string // mount points of the sandbox's own mounts
	jobs      bool     // it runs jobs
	mounts    []specs.Mount
}

func (l *layout) prepare() error {
	for at, source := range l.env.Layers {
		if err := l.checkLayer(at, source); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(l.emptyFile, nil, 0o444); err != nil {
		return err
	}
	return os.Chmod(l.emptyFile, 0o444) // regardless of the umask
}

func (l *layout) checkLayer(at, source string) error {
	if !filepath.IsAbs(at) || path.Clean(at) != at || !filepath.IsAbs(source) {
		return fmt.Errorf("the layer %.200q at %.200q: both must be absolute paths", source, at)
	}
	for _, taken := range l.points {
		if within(taken, at) || within(at, taken) {
			return fmt.Errorf("a layer cannot be at %s: %s is there", at, taken)
		}
	}
	for other := range l.env.Layers {
		if other != at && within(at, other) {
			return fmt.Errorf("a layer cannot be at %s, within the one at %s", at, other)
		}
	}
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return fmt.Errorf("the layer at %s: %s is not a readable folder", at, source)
	}
	return nil
}

func (l *layout) make() (*rootfs, error) {
	r := &rootfs{programs: map[Interpreter]interpreter{}, missing: map[Interpreter]error{}}
	for _, at := range slices.Sorted(maps.Keys(l.env.Layers)) {
		l.points = append(l.points, at)
		l.mounts = append(l.mounts, bind(at, l.env.Layers[at]))
	}
	var err error
	if l.env.Root == "" {
		err = l.fromHost(r)
	} else {
		err = l.fromDirectory(r)
	}
	if err != nil {
		return nil, err
	}
	if l.jobs && len(r.programs) == 0 {
		return nil, fmt.Errorf("it has no interpreter: %w", errors.Join(r.missing[Python], r.missing[Node]))
	}
	if err := l.mask(r); err != nil {
		return nil, err
	}
	r.mounts = l.mounts
	return r, checkMounts(r.mounts)
}

// checkMounts rejects paths that are not UTF-8: JSON would replace their invalid bytes.
func checkMounts(mounts []specs.Mount) error {
	for _, mount := range mounts {
		if !utf8.ValidString(mount.Destination + mount.Source) {
			return fmt.Errorf("mount %q: the path must be UTF-8", mount.Destination)
		}
	}
	return nil
}

// fromHost lays out the host's own /usr. An interpreter outside /usr is mounted as a single file.
func (l *layout) fromHost(r *rootfs) error {
	system := existingDirs(systemDirs)
	if err := makeRootfs(l.dir, slices.Concat(system, l.points)); err != nil {
		return err
	}
	for _, dir := range system {
		l.mounts = append(l.mounts, bind(dir, dir))
	}
	r.dir, r.path = l.dir, "/usr/bin"
	for _, kind := range []Interpreter{Python, Node} {
		found, err := l.findOnHost(kind)
		if err != nil {
			r.missing[kind] = err
			continue
		}
		r.programs[kind] = found
		if found.inside != found.path && !l.inLayer(found.inside) {
			if err := mountPoint(l.dir, found.inside); err != nil {
				return err
			}
			l.mounts = append(l.mounts, bind(found.inside, found.path))
		}
	}
	return makeReadable(l.dir)
}

// findOnHost finds an interpreter of the host. One inside a layer is used from the layer.
func (l *layout) findOnHost(kind Interpreter) (interpreter, error) {
	explicit, inside := l.env.Python, guestBin+"/python3"
	if kind == Node {
		explicit, inside = l.env.Node, guestBin+"/node"
	}
	found, err := findInterpreter(explicit, inside, hostNames(kind)...)
	return l.resolveLayer(found), err
}

func (l *layout) resolveLayer(found interpreter) interpreter {
	for at, source := range l.env.Layers {
		if rest, ok := strings.CutPrefix(found.path, strings.TrimSuffix(source, "/")+"/"); ok {
			found.inside = path.Join(at, rest)
		}
	}
	return found
}

func (l *layout) inLayer(inside string) bool {
	for at := range l.env.Layers {
		if within(inside, at) {
			return true
		}
	}
	return false
}

// within reports whether name is dir or below it; both are clean paths.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
