//go:build linux

package sandbox_test

import (
	"io/fs"
	"testing/fstest"
)

// changedFS is a guest with one more file.
type changedFS struct{ fs.FS }

func (c changedFS) Open(name string) (fs.File, error) {
	if name == "more.py" {
		return fstest.MapFS{"more.py": {Data: []byte("1")}}.Open(name)
	}
	return c.FS.Open(name)
}

// ReadDir adds the file to the root.
func (c changedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(c.FS, name)
	if more, moreErr := fs.ReadDir(fstest.MapFS{"more.py": {Data: []byte("1")}}, "."); name == "." && moreErr == nil {
		entries = append(entries, more...)
	}
	return entries, err
}
