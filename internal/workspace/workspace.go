// Package workspace keeps the files of programs in a plain directory of the host.
// Its main type is [Dir]. Nothing that a program makes is there unless it was
// written here, as a regular file or a folder; all of it goes through [os.Root],
// and no link is followed.
//
// Programs do not share the directory: each has a copy from its start, in its
// sandbox, and what it changed is written at its end. Of two that ran at once, the
// last to end wins, file by file; what one of them removed goes only if no other has
// changed it since that program began.
package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sallyport/internal/filelock"
)

// File is one regular file or folder of a workspace, or what became of it.
type File struct {
	// Path is slash-separated and relative to the workspace.
	Path string
	// Folder says that it is one, and has no content.
	Folder bool
	// Executable is all that is kept of a mode.
	Executable bool
	// Gone says that a program removed it.
	Gone bool
	// Size is the length of the content in bytes.
	Size int64
	// Modified is when the content was last written, where the workspace tells of the file.
	Modified time.Time
	// Version changes when the file does. It means nothing outside of one workspace. In a
	// change it is that of the file that was changed, "" for a new one.
	Version string
	// Content reads the file once, where there is one to read. Who got it from Open closes it.
	Content io.ReadCloser
}

// Updated is what became of changes.
type Updated struct {
	// Notes are for the model: what was not kept, and why.
	Notes []string
	// Versions are those of the files that were written, by path.
	Versions map[string]string
}

// Options bound a workspace. The zero value does not.
type Options struct {
	// Bytes is how much all files hold together; 0 is no bound.
	Bytes int64
	// Inodes is how many files and folders there may be; 0 is no bound.
	Inodes int
	// Sync makes sure that what Update has taken survives a loss of power too.
	Sync bool
	// Careful has Update leave a file as it is that is not the one that was changed (File.Version).
	Careful bool
	// Existing refuses to make the directory.
	Existing bool
	// ReadOnly says that nothing will be written.
	ReadOnly bool
	// Hidden reports which paths are left out and not changed, Fixed which are not changed; nil is none. What is
	// below such a path must be such a path too.
	Hidden, Fixed func(path string) bool
}

// Dir is a workspace in a directory. It is safe for concurrent use, and several
// processes may use one directory. Close it.
type Dir struct {
	dir  string
	root *os.Root
	opts Options
}

// tempPrefix begins the names of folders in which updates are prepared. No file of a program is called so.
const tempPrefix = ".sallyport-"

// tempName is such a name as we make them: the folder may be another user's.
var tempName = regexp.MustCompile(`^\.sallyport-[A-Z2-7]{26}$`)

// lockPatience is how long another update may take, of this process or another one.
const lockPatience = 20 * time.Second

// Open makes the directory if it is not there, for its owner's eyes only, and
// removes what updates left that were killed.
func Open(dir string, opts Options) (*Dir, error) {
	if !opts.Existing {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make workspace: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	none := func(string) bool { return false }
	if opts.Hidden == nil {
		opts.Hidden = none
	}
	if opts.Fixed == nil {
		opts.Fixed = none
	}
	opts.Bytes, opts.Inodes = cmp.Or(opts.Bytes, math.MaxInt64), cmp.Or(opts.Inodes, math.MaxInt)
	d := &Dir{dir: dir, root: root, opts: opts}
	if opts.ReadOnly {
		return d, nil
	}
	if err := d.sweep(); err != nil {
		return nil, errors.Join(fmt.Errorf("clear workspace: %w", err), root.Close())
	}
	return d, nil
}

// Close releases the directory. What it holds stays.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes the folders of updates of ended processes: their lock is free.
func (d *Dir) sweep() error {
	unlock, err := filelock.Dir(d.dir, lockPatience) // nobody is about to lock a folder that is new
	if err != nil {
		return err
	}
	defer unlock()
	names, err := readNames(d.root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if info, err := d.root.Lstat(name); err != nil || !d.isTemp(name) || !info.IsDir() {
			continue
		}
		unlock, err := filelock.Dir(filepath.Join(d.dir, name), 0)
		if err != nil { // it is in use, or gone
			continue
		}
		err = d.root.RemoveAll(name)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// isTemp reports whether we made a folder of that name.
func (d *Dir) isTemp(name string) bool {
	return tempName.MatchString(name) || !d.opts.Existing && strings.HasPrefix(name, tempPrefix)
}

// List returns all that the workspace holds, folders before what is in them.
func (d *Dir) List() ([]File, error) {
	var files []File
	for f, err := range d.Files() {
		if err != nil && f.Path == "" {
			return nil, err
		}
		if err == nil {
			files = append(files, f)
		}
	}
	return files, nil
}

// Changes are files, one after the other, as Update takes them.
func Changes(files ...File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
	}
}
