//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/internal/chroot"
)

// mask hides the environment's Masked paths with a mount over each of them, because
// gVisor ignores linux.maskedPaths. Paths that do not exist are skipped.
func (l *layout) mask(r *rootfs) error {
	seen := l.env.Root
	if seen == "" {
		seen = "/"
	}
	view, err := os.OpenRoot(seen)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	done := map[string]bool{}
	for _, name := range l.env.Masked {
		if !path.IsAbs(name) || path.Clean(name) == "/" {
			return fmt.Errorf("mask %.200q: it must be an absolute path, and not the root", name)
		}
		real, err := chroot.Resolve(view, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("mask: %w", err)
		}
		at := "/" + real
		if done[at] || l.env.Root == "" && !slices.ContainsFunc(systemDirs, func(dir string) bool { return within(at, dir) || within(dir, at) }) {
			continue // sandboxes see only systemDirs of the host
		}
		done[at] = true
		if err := l.hide(r, view, real); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	return nil
}

// hide covers one path with an empty file or folder. The path must not contain links.
func (l *layout) hide(r *rootfs, view *os.Root, real string) error {
	at := "/" + real
	for _, taken := range slices.Concat(l.points, l.interpreterPaths(r, view)) {
		if within(taken, at) {
			return fmt.Errorf("every sandbox of this environment needs %s", taken)
		}
	}
	info, err := view.Lstat(real)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		l.mounts = append(l.mounts, bind(at, l.emptyFile))
		return nil
	}
	// Remove earlier mounts at or below it: they would cover this one.
	l.mounts = slices.DeleteFunc(l.mounts, func(m specs.Mount) bool { return within(m.Destination, at) })
	if l.env.Root == "" && !slices.ContainsFunc(systemDirs, func(dir string) bool { return within(at, dir) }) {
		return nil // nothing but mounts is below it
	}
	l.mounts = append(l.mounts, specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs",
		Options: []string{"ro", "nosuid", "nodev", "noexec", "mode=0555", "size=4096"}})
	return nil
}

// interpreterPaths returns the paths of the interpreters inside the sandbox, as given and with links resolved.
func (l *layout) interpreterPaths(r *rootfs, view *os.Root) []string {
	var paths []string
	for _, found := range r.programs {
		paths = append(paths, found.inside)
		if real, err := chroot.Resolve(view, filepath.ToSlash(found.inside)); err == nil {
			paths = append(paths, "/"+real)
		}
	}
	return paths
}
