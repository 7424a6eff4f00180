package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// linkSnapshots hard-links the snapshots of one folder into another: each is a folder that is named by its inputs and
// immutable once it has its name. The rest of a cache is not shared, since the rest is learned. Where links are
// impossible, as between file systems, snapshots are made again.
func linkSnapshots(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("share snapshots: %w", err)
	}
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		target := filepath.Join(to, entry.Name())
		if _, missing := os.Lstat(target); missing == nil || strings.HasPrefix(entry.Name(), ".") {
			continue // it is there, or not yet done
		}
		err = errors.Join(err, linkSnapshot(filepath.Join(from, entry.Name()), target))
	}
	if err != nil {
		return fmt.Errorf("share snapshots: %w", err)
	}
	return nil
}

// linkSnapshot links a snapshot's files in a folder that gets its name at the end, so that it appears atomically.
func linkSnapshot(from, to string) error {
	half, err := os.MkdirTemp(filepath.Dir(to), ".half-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(half) }()
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, file := range files {
		if os.Link(filepath.Join(from, file.Name()), filepath.Join(half, file.Name())) != nil {
			return nil
		}
	}
	if err := os.Rename(half, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
