package testutil

import (
	"errors"
	"os"
	"path/filepath"
)

// Snapshots returns the directory where the tests of a run share snapshots of interpreters, "" without one.
func Snapshots() string { return os.Getenv("SALLYPORT_TEST_SNAPSHOTS") }

// ShareSnapshots shares the snapshots of a cache directory, which may not exist, with the other tests of the run: those that either
// has are in both. A program that a test starts with that cache then makes none that has been made before.
func ShareSnapshots(cache string) {
	if shared := Snapshots(); shared != "" && cache != "" {
		own := filepath.Join(cache, "sallyport", "snapshots")
		linkSnapshots(own, shared)
		linkSnapshots(shared, own)
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
