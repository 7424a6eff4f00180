//go:build linux

package sandbox

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"sallyport/internal/chroot"
)

// searchPath is the search path for interpreters in a root file system that is
// not the host's, and the PATH of programs there.
var searchPath = []string{"/usr/local/bin", "/usr/bin", "/bin"}

// CheckRoot checks a directory that an operator configured as a root file system. It
// must be an absolute path, must not be the host's own root, and must not contain one
// of our own directories, because programs can read everything in it.
func CheckRoot(dir string, ours ...string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("check root %.200q: it must be an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("check root: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("check root: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("check root %s: it is not a directory", dir)
	}
	if host, err := os.Stat("/"); err != nil || os.SameFile(host, info) {
		return fmt.Errorf("check root %s: it is this machine's own root, and programs would see all of it", dir)
	}
	for _, own := range ours {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real
		}
		if own != "" && within(own, real) {
			return fmt.Errorf("check root %s: sallyport keeps its own files in it, at %s", dir, own)
		}
	}
	return nil
}

// DigestRoot returns a digest of a directory tree to detect changes: names, types, sizes,
// modes, times and link targets, without file contents. It takes about a second for
// 100,000 files.
func DigestRoot(ctx context.Context, dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(name); err != nil {
				return err
			}
		}
		size := info.Size()
		if info.IsDir() {
			size = 0 // it depends on the file system
		}
		writeDigest(sum, strings.TrimPrefix(name, dir), target, uint64(info.Mode()), uint64(size), uint64(info.ModTime().UnixNano()))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("digest root: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeDigest writes one entry in an unambiguous encoding.
func writeDigest(sum io.Writer, name, target string, numbers ...uint64) {
	for _, n := range append(numbers, uint64(len(name)), uint64(len(target))) {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, n)) // a hash takes everything
	}
	_, _ = io.WriteString(sum, name+target)
}

// fromDirectory lays out a root file system from a directory.
func (l *layout) fromDirectory(r *rootfs) error {
	view, err := os.OpenRoot(l.env.Root)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	for kind, explicit := range map[Interpreter]string{Python: l.env.Python, Node: l.env.Node} {
		inside, err := l.findInside(view, kind, explicit)
		if err != nil {
			r.missing[kind] = err
			continue
		}
		r.programs[kind] = interpreter{inside: inside}
	}
	r.path = strings.Join(searchPath, ":")
	if hasFolders(view, l.points) {
		r.dir = l.env.Root
		return nil
	}
	r.dir = l.dir
	return l.overlay(view)
}

// findInside resolves an interpreter in a root file system as a process inside would.
// The result keeps its links: they distinguish a virtual environment from its base.
func (l *layout) findInside(view *os.Root, kind Interpreter, explicit string) (string, error) {
	if explicit != "" {
		if !path.IsAbs(explicit) {
			return "", fmt.Errorf("find interpreter: %.200q is not an absolute path", explicit)
		}
		return path.Clean(explicit), l.checkInside(view, explicit)
	}
	names := []string{"python3", "python"}
	if kind == Node {
		names = []string{"node", "nodejs"}
	}
	err := fmt.Errorf("find interpreter: no %s in %s", strings.Join(names, " or "), strings.Join(searchPath, ", "))
	for _, name := range names {
		for _, dir := range searchPath {
			bad := l.checkInside(view, path.Join(dir, name))
			if bad == nil {
				return path.Join(dir, name), nil
			}
			if !errors.Is(bad, fs.ErrNotExist) {
				err = bad
			}
		}
	}
	return "", err
}

// checkInside checks that a path in a root file system, or in a layer of it, is a program for this machine.
func (l *layout) checkInside(view *os.Root, inside string) error {
	for at, source := range l.env.Layers {
		if rest, ok := strings.CutPrefix(path.Clean(inside), at+"/"); ok {
			_, err := resolveBinary(filepath.Join(source, rest))
			return err
		}
	}
	real, err := chroot.Resolve(view, inside)
	if err != nil {
		return fmt.Errorf("find interpreter: %w", err)
	}
	info, err := view.Stat(real)
	if err != nil {
		return fmt.Errorf("find interpreter: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 { // a FIFO must not even be opened
		return fmt.Errorf("find interpreter: %s is not an executable file", inside)
	}
	f, err := view.Open(real)
	if err != nil {
		return fmt.Errorf("find interpreter: %w", err)
	}
	defer func() { _ = f.Close() }()
	return checkProgram(inside, f)
}

// machines maps GOARCH to the machine of ELF files.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkProgram checks by its header that a file is a program for this machine.
func checkProgram(name string, f io.ReaderAt) error {
	head := make([]byte, 20)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	switch {
	case strings.HasPrefix(string(head), "#!"):
		return fmt.Errorf("%s %w", name, errScript)
	case !strings.HasPrefix(string(head), elf.ELFMAG) || n < 20:
		return fmt.Errorf("%s is not a program for this machine", name)
	}
	machine := elf.Machine(binary.LittleEndian.Uint16(head[18:]))
	if want, known := machines[runtime.GOARCH]; known && machine != want {
		return fmt.Errorf("%s is not a program for this machine: it is for %s, this is %s", name, machine, want)
	}
	return nil
}
