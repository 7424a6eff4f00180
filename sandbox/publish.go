package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Publish makes files (by slash-separated path) the content of /servers in
// every sandbox, those that run included. Only what differs is written, each
// file at once; what is not in files is removed. Calls must not overlap.
func (h *Host) Publish(files map[string][]byte) error {
	if err := os.MkdirAll(h.servers(), 0o755); err != nil { // seen by the sandbox's own user
		return fmt.Errorf("publish wrappers: %w", err)
	}
	root, err := os.OpenRoot(h.servers())
	if err != nil {
		return fmt.Errorf("publish wrappers: %w", err)
	}
	defer func() { _ = root.Close() }()
	for path, data := range files {
		if err := writeFile(root, filepath.FromSlash(path), data); err != nil {
			return fmt.Errorf("publish wrappers: %w", err)
		}
	}
	return prune(root, files)
}

func (h *Host) servers() string { return filepath.Join(h.dir, "servers") }

// writeFile replaces the file in one step, so that no program reads half of it.
func writeFile(root *os.Root, path string, data []byte) error {
	if old, err := root.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil { // seen by the sandbox's own user
		return err
	}
	if err := root.WriteFile(path+".new", data, 0o644); err != nil { // seen by the sandbox's own user
		return err
	}
	return root.Rename(path+".new", path)
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
