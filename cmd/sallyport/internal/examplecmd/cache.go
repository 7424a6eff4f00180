package examplecmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// makeCache makes an empty cache for an example, with the snapshots of interpreters that the user's cache has: they take
// seconds to make. It is in the user's cache, so that files can be linked.
func (s *stage) makeCache() (err error) {
	s.cache = s.path("cache")
	user := s.CacheDir()
	if user == "" {
		return nil
	}
	if err := os.MkdirAll(user, 0o700); err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	if s.cache, err = os.MkdirTemp(user, "example-"); err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	linkSnapshots(filepath.Join(user, snapshots), filepath.Join(s.cache, "sallyport", snapshots))
	return nil
}

// removeCache removes the cache of an example. The user's cache keeps its snapshots.
func (s *stage) removeCache() error {
	if user := s.CacheDir(); user != "" {
		linkSnapshots(filepath.Join(s.cache, "sallyport", snapshots), filepath.Join(user, snapshots))
	}
	return os.RemoveAll(s.cache)
}

// snapshots is the folder of a cache with snapshots.
const snapshots = "snapshots"

// linkSnapshots links the snapshots in a folder into another one that does not have them. What cannot be linked is made
// again when it is needed.
func linkSnapshots(from, to string) {
	complete, _ := filepath.Glob(filepath.Join(from, "*", "manifest.json"))
	for _, manifest := range complete {
		dir := filepath.Dir(manifest)
		target := filepath.Join(to, filepath.Base(dir))
		if _, err := os.Stat(target); err == nil || os.MkdirAll(to, 0o700) != nil {
			continue
		}
		half, err := os.MkdirTemp(to, ".half-")
		if err == nil && (linkFiles(dir, half) != nil || os.Rename(half, target) != nil) {
			_ = os.RemoveAll(half) // another process was faster
		}
	}
}

func linkFiles(from, to string) error {
	files, err := os.ReadDir(from)
	for _, file := range files {
		err = errors.Join(err, os.Link(filepath.Join(from, file.Name()), filepath.Join(to, file.Name())))
	}
	return err
}
