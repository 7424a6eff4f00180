package checksumfile

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/filelock"
)

const (
	// lockPatience is how long another process may change a file.
	lockPatience = 2 * time.Second
	// tempAge is when a file that was to become another is one that a killed process left.
	tempAge = time.Hour
)

// Kind says what the files of a folder are.
type Kind struct {
	// Version changes when a file of another version would be misread.
	Version int
	// Suffix is the end of their names, with its dot.
	Suffix string
	// Limit bounds one file, in bytes.
	Limit int64
}

// Folder is a directory of sealed files of one kind, for its owner's eyes only.
// Files are named without their suffix. Processes may share the directory; a
// folder is safe for concurrent use. Close it.
type Folder struct {
	dir  string
	kind Kind
	root *os.Root
}

// OpenFolder makes the directory if it is not there.
func OpenFolder(dir string, kind Kind) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{dir: dir, kind: kind, root: root}, nil
}

// Close releases the directory.
func (f *Folder) Close() error { return f.root.Close() }

// Read returns the body of a file. The error is fs.ErrNotExist if there is none,
// else it says why the file is of no use.
func (f *Folder) Read(name string) ([]byte, error) {
	data, _, err := Read(f.root, name+f.kind.Suffix, f.kind.Limit)
	if err != nil {
		return nil, err
	}
	return Open(f.kind.Version, data)
}

// Write replaces a file.
func (f *Folder) Write(name string, body []byte) error {
	data, err := Seal(f.kind.Version, body)
	if err != nil {
		return err
	}
	return Write(f.root, name+f.kind.Suffix, data)
}

// Lock keeps other processes from locking the folder until unlock.
func (f *Folder) Lock() (unlock func(), err error) { return filelock.Dir(f.dir, lockPatience) }

// Touch marks a file as used now.
func (f *Folder) Touch(name string) error {
	return f.root.Chtimes(name+f.kind.Suffix, time.Time{}, time.Now())
}

// Remove removes a file.
func (f *Folder) Remove(name string) error { return f.root.Remove(name + f.kind.Suffix) }

// Names returns the files that there are, the one used last first.
func (f *Folder) Names() ([]string, error) {
	used, err := f.used(f.kind.Suffix)
	names := make([]string, 0, len(used))
	for name := range used {
		names = append(names, strings.TrimSuffix(name, f.kind.Suffix))
	}
	slices.SortFunc(names, func(a, b string) int { return used[b+f.kind.Suffix].Compare(used[a+f.kind.Suffix]) })
	return names, err
}

// used returns the regular files with names that end so, and when each was used.
func (f *Folder) used(suffix string) (map[string]time.Time, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) && info.Mode().IsRegular() {
			used[e.Name()] = info.ModTime()
		}
	}
	return used, err
}

// Sweep removes all but the files used last, those that no one has used for so
// long, and what a killed process left half written. What cannot be removed stays until the next time.
func (f *Folder) Sweep(most int, unused time.Duration) {
	names, _ := f.Names()
	for i, name := range names {
		info, err := f.root.Stat(name + f.kind.Suffix)
		if i >= most || err == nil && time.Since(info.ModTime()) > unused {
			_ = f.Remove(name)
		}
	}
	temps, _ := f.used(tempSuffix)
	for name, made := range temps {
		if time.Since(made) > tempAge {
			_ = f.root.Remove(name)
		}
	}
}
