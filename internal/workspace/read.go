package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"sallyport/internal/sanitize"
)

// Open opens a regular file for reading in its current state: a concurrent update replaces the file. Invalid paths,
// links anywhere in the path, and anything but regular files are rejected; the error for a missing file is
// fs.ErrNotExist.
func (d *Dir) Open(path string) (File, error) {
	f, err := d.open(path)
	if err != nil {
		return File{}, fmt.Errorf("open %q: %w", sanitize.Line(path, 80), err)
	}
	return f, nil
}

func (d *Dir) open(path string) (File, error) {
	if err := Check(path); err != nil {
		return File{}, err
	}
	for i := range path {
		if path[i] != '/' {
			continue
		}
		if info, err := d.root.Lstat(path[:i]); err != nil {
			return File{}, withoutPath(err)
		} else if !info.IsDir() {
			return File{}, fs.ErrNotExist
		}
	}
	info, err := d.root.Lstat(path)
	if err != nil {
		return File{}, withoutPath(err)
	}
	if f, err := describe(path, info); err != nil || f.Folder {
		return File{}, orFolder(err)
	}
	// It may have been replaced: links do not lead outside of the root, and a FIFO does not block.
	file, err := d.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|noFollow, 0)
	if err != nil {
		return File{}, withoutPath(err)
	}
	f, err := newOpenFile(path, file)
	if err != nil {
		_ = file.Close()
	}
	return d.withVersion(f), err
}

func newOpenFile(path string, file *os.File) (File, error) {
	info, err := file.Stat()
	if err != nil {
		return File{}, withoutPath(err)
	}
	f, err := describe(path, info)
	if err != nil || f.Folder {
		return File{}, orFolder(err)
	}
	f.Content = file
	return f, nil
}

func orFolder(err error) error {
	if err == nil {
		return errFolder
	}
	return err
}

// withoutPath returns an error without the host path.
func withoutPath(err error) error {
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // as package os returns it
		return e.Err
	}
	return err
}

// parent returns the folder of a path, "" for the workspace itself.
func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}
