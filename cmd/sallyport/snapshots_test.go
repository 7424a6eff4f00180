package main

import (
	"errors"
	"os"
	"path/filepath"

	"sallyport/internal/testutil"
)

// withSharedSnapshots runs a command that finds the snapshots of other tests in its cache, and that shares those of earlier
// commands with other tests.
func withSharedSnapshots(command func()) func() {
	return func() {
		if shared, cache := testutil.Snapshots(), os.Getenv("XDG_CACHE_HOME"); shared != "" && cache != "" {
			own := filepath.Join(cache, "sallyport", "snapshots")
			linkSnapshots(own, shared)
			linkSnapshots(shared, own)
		}
		command()
	}
}

// linkSnapshots links the snapshots in a directory into another one that does not have them.
func linkSnapshots(from, to string) {
	made, _ := filepath.Glob(filepath.Join(from, "*", "manifest.json"))
	for _, manifest := range made {
		dir := filepath.Dir(manifest)
		if _, err := os.Stat(filepath.Join(to, filepath.Base(dir))); err == nil || os.MkdirAll(to, 0o700) != nil {
			continue
		}
		if half, err := os.MkdirTemp(to, ".half-"); err == nil {
			if linkFiles(dir, half) != nil || os.Rename(half, filepath.Join(to, filepath.Base(dir))) != nil {
				_ = os.RemoveAll(half) // another command was faster
			}
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
