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
	"time"

	"golang.org/x/sync/errgroup"
)

// Publish replaces the content of /servers with files (by slash-separated path) for
// programs that start from now on. Running programs and interpreters of sessions keep
// the old content; services see the change. Only differences are written, each file
// atomically; other files are removed.
func (h *Host) Publish(files map[string][]byte) error {
	h.generations.mu.Lock()
	err := errors.Join(h.generations.retire(), h.publish(files))
	h.generations.mu.Unlock()
	if err != nil {
		return fmt.Errorf("publish wrappers: %w", err)
	}
	h.pool.retireIdle()
	if h.reuse != nil {
		h.reuse.expire(time.Now())
	}
	return nil
}

func (h *Host) publish(files map[string][]byte) error {
	if err := os.MkdirAll(h.servers(), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(h.servers(), 0o755); err != nil { // regardless of the umask
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
	if writeErr != nil { // perhaps a file was in place of a folder, or the reverse: prune has removed it
		return writeFiles(root, files)
	}
	return nil
}

func (h *Host) servers() string { return filepath.Join(h.dir, "servers") }

// writeFiles writes files concurrently, one goroutine per CPU: most of the time is spent in the kernel.
func writeFiles(root *os.Root, files map[string][]byte) error {
	var group errgroup.Group
	paths, n := slices.Sorted(maps.Keys(files)), runtime.GOMAXPROCS(0)
	for part := range slices.Chunk(paths, len(paths)/n+1) {
		group.Go(func() error {
			for _, path := range part {
				if !fs.ValidPath(path) {
					return fmt.Errorf("invalid file path %q", path)
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

// writeFile replaces the file atomically, so that no program reads a partial file.
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

// makeFolders makes a folder and its parents, accessible to the sandbox's user, which is a different user.
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

// prune removes everything that is not in files, and then empty folders.
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
