//go:build linux

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Publish makes files (by slash-separated path) the content of /servers for
// every program that starts from now on; one that runs keeps what it has, and so
// does the interpreter of a session. A service sees the change. Only what
// differs is written, each file at once; what is not in files is removed.
func (h *Host) Publish(files map[string][]byte) error {
	h.generations.mu.Lock()
	err := errors.Join(h.generations.renew(), h.publish(files))
	h.generations.mu.Unlock()
	if err != nil {
		return fmt.Errorf("publish wrappers: %w", err)
	}
	h.pool.published()
	return nil
}

func (h *Host) publish(files map[string][]byte) error {
	if err := os.MkdirAll(h.servers(), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(h.servers(), 0o755); err != nil { // whatever our umask is
		return err
	}
	root, err := os.OpenRoot(h.servers())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	writeErr := writeFiles(root, files)
	if err := prune(root, files); err != nil {
		return err
	}
	if writeErr != nil { // perhaps a file was where there has to be a folder now, or the other way round: it is gone
		return writeFiles(root, files)
	}
	return nil
}

func (h *Host) servers() string { return filepath.Join(h.dir, "servers") }

// writeFiles writes as many files at once as there are processors: what takes time is the kernel's work.
func writeFiles(root *os.Root, files map[string][]byte) error {
	var group errgroup.Group
	paths, n := slices.Sorted(maps.Keys(files)), runtime.GOMAXPROCS(0)
	for part := range slices.Chunk(paths, len(paths)/n+1) {
		group.Go(func() error {
			for _, path := range part {
				if !fs.ValidPath(path) {
					return fmt.Errorf("%q is no path of a file", path)
				}
				if err := writeFile(root, filepath.FromSlash(path), files[path]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// writeFile replaces the file in one step, so that no program reads half of it.
func writeFile(root *os.Root, path string, data []byte) error {
	if old, err := root.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := makeFolders(root, filepath.Dir(path)); err != nil {
		return err
	}
	if err := root.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	if err := root.Chmod(path+".new", 0o644); err != nil {
		return err
	}
	return root.Rename(path+".new", path)
}

// makeFolders makes a folder and those above it. The sandbox's user, which is another one, must be able to enter.
func makeFolders(root *os.Root, path string) error {
	if path == "." {
		return nil
	}
	if err := makeFolders(root, filepath.Dir(path)); err != nil {
		return err
	}
	if err := root.Mkdir(path, 0o755); err != nil {
		if info, statErr := root.Stat(path); statErr == nil && info.IsDir() {
			return nil
		}
		return err
	}
	return root.Chmod(path, 0o755)
}

// prune removes what is not in files, and then the folders that are empty.
func prune(root *os.Root, files map[string][]byte) error {
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			folders = append(folders, path)
			return nil
		}
		if _, keep := files[path]; keep {
			return nil
		}
		return root.Remove(path)
	})
	for i := len(folders) - 1; i > 0; i-- { // deepest last in the walk; "." stays
		if removeErr := root.Remove(folders[i]); removeErr != nil && !isNotEmpty(removeErr) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
