//go:build linux

package sandbox_test

import (
	"io/fs"
	"testing/fstest"
)

// changed is a guest with one more file.
type changed struct{ fs.FS }

func (c changed) Open(name string) (fs.File, error) {
	if name == "more.py" {
		return fstest.MapFS{"more.py": {Data: []byte("1")}}.Open(name)
	}
	return c.FS.Open(name)
}

// ReadDir adds the file to the root.
func (c changed) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(c.FS, name)
	if more, moreErr := fs.ReadDir(fstest.MapFS{"more.py": {Data: []byte("1")}}, "."); name == "." && moreErr == nil {
		entries = append(entries, more...)
	}
	return entries, err
}
