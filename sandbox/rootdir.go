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

// searchPath is where interpreters are looked for in a root file system that is
// not the host's, and the PATH of programs there.
var searchPath = []string{"/usr/local/bin", "/usr/bin", "/bin"}

// CheckRoot says what is wrong with a directory that an operator wants to be a
// root file system: it must be the absolute path of a directory that is neither the
// host's own root nor above a directory of this program, for programs can read all that is in it.
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
		return fmt.Errorf("check root %s: it is no directory", dir)
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

// DigestRoot is a digest of what a directory holds: names, kinds, sizes, modes, times and
// targets of links, not contents. It detects changes, and takes about a
// second for 100,000 files.
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
			size = 0 // is the file system's matter
		}
		writeDigest(sum, strings.TrimPrefix(name, dir), target, uint64(info.Mode()), uint64(size), uint64(info.ModTime().UnixNano()))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("digest root: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeDigest writes one entry so that no two different ones are the same bytes.
func writeDigest(sum io.Writer, name, target string, numbers ...uint64) {
	for _, n := range append(numbers, uint64(len(name)), uint64(len(target))) {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, n)) // a hash takes everything
	}
	_, _ = io.WriteString(sum, name+target)
}

// given lays out a root file system that came as a directory.
func (l *layout) given(r *rootfs) error {
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

// findInside resolves an interpreter in a root file system as a process in there
// would. What is returned keeps its links: they distinguish a virtual environment from its base.
func (l *layout) findInside(view *os.Root, kind Interpreter, explicit string) (string, error) {
	if explicit != "" {
		if !path.IsAbs(explicit) {
			return "", fmt.Errorf("find interpreter: %.200q is no absolute path", explicit)
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

// checkInside says what is wrong with a program in a root file system, or in a layer of it.
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
		return fmt.Errorf("find interpreter: %s is no executable file", inside)
	}
	f, err := view.Open(real)
	if err != nil {
		return fmt.Errorf("find interpreter: %w", err)
	}
	defer func() { _ = f.Close() }()
	return checkProgram(inside, f)
}

// machines are what a program is built for by the names of Go.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkProgram reads the head of a file that should be a program for this machine.
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
		return fmt.Errorf("%s is no program for this machine", name)
	}
	machine := elf.Machine(binary.LittleEndian.Uint16(head[18:]))
	if want, known := machines[runtime.GOARCH]; known && machine != want {
		return fmt.Errorf("%s is no program for this machine: it is for %s, this is %s", name, machine, want)
	}
	return nil
}
