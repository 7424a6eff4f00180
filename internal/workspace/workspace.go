// Package workspace stores the files of programs in a plain directory of the host. Its main type is [Dir]. Everything
// in it was written by this package, as a regular file or a folder; all access goes through [os.Root], and no link is
// followed.
//
// Programs do not share the directory: each gets a copy at its start, in its sandbox, and its changes are written at
// its end. Of two concurrent programs, the last to end wins, file by file; a removal is applied only if no other
// program has changed the file in the meantime.
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

// File is one regular file or folder of a workspace, or a change to it.
type File struct {
	// Path is slash-separated and relative to the workspace.
	Path string
	// Folder means that it is a folder, without content.
	Folder bool
	// Executable is the only part of the mode that is stored.
	Executable bool
	// Gone means that a program removed it.
	Gone bool
	// Size is the length of the content in bytes.
	Size int64
	// Modified is when the content was last written, if the workspace reports it.
	Modified time.Time
	// Version changes when the file does. It is valid only within one workspace. In a change it is the version of the
	// file that was changed, "" for a new one.
	Version string
	// Content reads the file once, if present. The caller of Open closes it.
	Content io.ReadCloser

	local string // the version in the directory, if Version is that of an Origin
}

// is reports whether a version is that of the file.
func (f File) is(version string) bool {
	return f.Version == version || f.local != "" && f.local == version
}

// Updated is the result of an update.
type Updated struct {
	// Notes tell the model what was not stored, and why.
	Notes []string
	// Versions are the versions of the written files, by path.
	Versions map[string]string
}

// Options configure a workspace. The zero value sets no bounds.
type Options struct {
	// Bytes bounds the total size of all files; 0 means no bound.
	Bytes int64
	// Inodes bounds the number of files and folders; 0 means no bound.
	Inodes int
	// Sync makes Update durable against a loss of power.
	Sync bool
	// Careful makes Update keep a file that has changed since the program read it (File.Version).
	Careful bool
	// All makes Update apply all changes, or none: the error is then [ErrPartial]. It needs Copy.
	All bool
	// Existing requires that the directory exists.
	Existing bool
	// Copy makes the directory a copy of a workspace that several machines use; nil means that the directory is the
	// workspace. All that open it in one process use the same Copy.
	Copy *Copy
	// ReadOnly means that nothing will be written.
	ReadOnly bool
	// Hidden reports paths that are left out and not changed, Fixed those that are not changed; nil means none. Both
	// must also hold for everything below such a path.
	Hidden, Fixed func(path string) bool
}

// Dir is a workspace in a directory. It is safe for concurrent use, and several processes may use one directory. The
// caller must Close it.
type Dir struct {
	dir  string
	root *os.Root
	opts Options
}

// tempPrefix is the prefix of folders in which updates are prepared. Programs cannot use it.
const tempPrefix = ".sallyport-"

// tempName matches the names that we generate: other names may be the user's.
var tempName = regexp.MustCompile(`^\.sallyport-[A-Z2-7]{26}$`)

// lockPatience is the timeout for another update, of this process or another one.
const lockPatience = 20 * time.Second

// Open creates the directory if needed, accessible only to its owner, and removes the leftovers of killed updates.
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

// Close releases the directory. Its files stay.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes the update folders of ended processes: those that are not locked.
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

// isTemp reports whether a folder of that name is a temporary folder of this package.
func (d *Dir) isTemp(name string) bool {
	return tempName.MatchString(name) || !d.opts.Existing && strings.HasPrefix(name, tempPrefix)
}

// List returns all files of the workspace, folders before their contents.
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

// Changes yields files in order, for Update.
func Changes(files ...File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
	}
}
