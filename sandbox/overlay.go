//go:build linux

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxOverlay is the maximum number of entries of a root file system that are mounted individually.
const maxOverlay = 200

// hasFolders reports whether all paths are folders and contain no symbolic links.
func hasFolders(view *os.Root, paths []string) bool {
	return !slices.ContainsFunc(paths, func(at string) bool { return !isFolder(view, at) })
}

func isFolder(view *os.Root, at string) bool {
	for ; at != "/"; at = path.Dir(at) {
		if info, err := view.Lstat(at[1:]); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// overlay makes a folder with a mount point for each of our mounts, and mounts the entries
// of the root file system into it. Nothing is written into the root file system itself.
func (l *layout) overlay(view *os.Root) error {
	if err := l.overlayDir(view, "/"); err != nil {
		return err
	}
	for _, point := range l.points {
		if err := os.MkdirAll(filepath.Join(l.dir, point), 0o755); err != nil {
			return err
		}
	}
	return makeReadable(l.dir)
}

// overlayDir does so for one folder that contains mount points.
func (l *layout) overlayDir(view *os.Root, at string) error {
	dir, err := view.Open(path.Join(".", at))
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if err := l.overlayEntry(view, path.Join(at, entry.Name()), entry); err != nil {
			return err
		}
		if len(l.mounts) > maxOverlay {
			return fmt.Errorf("%s has over %d entries where sallyport mounts its own folders: make it %v, then it is used as it is", at, maxOverlay, l.points)
		}
	}
	return nil
}

func (l *layout) overlayEntry(view *os.Root, at string, entry fs.DirEntry) error {
	here := filepath.Join(l.dir, at)
	switch {
	case slices.Contains(l.points, at): // one of our mounts covers it
		return nil
	case slices.ContainsFunc(l.points, func(point string) bool { return within(point, at) }):
		if err := os.Mkdir(here, 0o755); err != nil || !entry.IsDir() {
			return err
		}
		return l.overlayDir(view, at)
	case entry.IsDir():
		if err := os.Mkdir(here, 0o755); err != nil {
			return err
		}
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := view.Readlink(at[1:])
		if err != nil {
			return err
		}
		return os.Symlink(target, here)
	case entry.Type().IsRegular():
		if err := os.WriteFile(here, nil, 0o644); err != nil {
			return err
		}
	default: // skip devices, sockets and pipes
		return nil
	}
	l.mounts = append(l.mounts, bind(at, filepath.Join(l.env.Root, at)))
	return nil
}
