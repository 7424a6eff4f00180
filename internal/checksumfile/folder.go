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
	// lockTimeout bounds the wait for the lock of another process.
	lockTimeout = 2 * time.Second
	// tempAge is the age of a temporary file after which its process was killed.
	tempAge = time.Hour
)

// Kind describes the files of a folder.
type Kind struct {
	// Version is the version of their format.
	Version int
	// Suffix is the extension of their names, with its dot.
	Suffix string
	// Limit bounds one file, in bytes.
	Limit int64
}

// Folder is a directory of files of one kind, which only its owner can read. Names
// are without their suffix. Processes may share the directory. It is safe for
// concurrent use. The caller must Close it.
type Folder struct {
	dir  string
	kind Kind
	root *os.Root
}

// OpenFolder opens a directory, and creates it if it does not exist.
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
// else it describes what is wrong with the file.
func (f *Folder) Read(name string) ([]byte, error) {
	data, _, err := Read(f.root, name+f.kind.Suffix, f.kind.Limit)
	if err != nil {
		return nil, err
	}
	return Decode(f.kind.Version, data)
}

// Write replaces a file.
func (f *Folder) Write(name string, body []byte) error {
	data, err := Encode(f.kind.Version, body)
	if err != nil {
		return err
	}
	return Write(f.root, name+f.kind.Suffix, data)
}

// Lock locks the folder against other processes until unlock is called.
func (f *Folder) Lock() (unlock func(), err error) { return filelock.Dir(f.dir, lockTimeout) }

// Touch marks a file as used now.
func (f *Folder) Touch(name string) error {
	return f.root.Chtimes(name+f.kind.Suffix, time.Time{}, time.Now())
}

// Remove removes a file.
func (f *Folder) Remove(name string) error { return f.root.Remove(name + f.kind.Suffix) }

// Names returns the names of all files, the most recently used first.
func (f *Folder) Names() ([]string, error) {
	used, err := f.modTimes(f.kind.Suffix)
	names := make([]string, 0, len(used))
	for name := range used {
		names = append(names, strings.TrimSuffix(name, f.kind.Suffix))
	}
	slices.SortFunc(names, func(a, b string) int { return used[b+f.kind.Suffix].Compare(used[a+f.kind.Suffix]) })
	return names, err
}

// modTimes returns the regular files with a suffix, and when each was last used.
func (f *Folder) modTimes(suffix string) (map[string]time.Time, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) && info.Mode().IsRegular() {
			used[e.Name()] = info.ModTime()
		}
	}
	return used, err
}

// Sweep removes all but the most most recently used files, files that were not used
// for the duration unused, and temporary files of killed processes. It ignores errors.
func (f *Folder) Sweep(most int, unused time.Duration) {
	names, _ := f.Names()
	for i, name := range names {
		info, err := f.root.Stat(name + f.kind.Suffix)
		if i >= most || err == nil && time.Since(info.ModTime()) > unused {
			_ = f.Remove(name)
		}
	}
	temps, _ := f.modTimes(tempSuffix)
	for name, made := range temps {
		if time.Since(made) > tempAge {
			_ = f.root.Remove(name)
		}
	}
}
