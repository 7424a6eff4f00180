package journal

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/filelock"
)

// Settled reports whether the last thing that a file says is that its record is kept elsewhere: there is nothing to be done about it.
func Settled(path string) bool {
	end := appendFrame(nil, isKept, nil)
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() < int64(len(end)) {
		return false
	}
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, info.Size()-int64(len(end)))
	return err == nil && bytes.Equal(last, end)
}

// stillborn is how old a file must be that never became a journal for it to be removed.
const stillborn = time.Hour

// Sweep removes journals in the folders below root that were last written to before a time, and of the others the oldest
// until all of them take at most size bytes. Those of executions that run stay. It returns how many went.
func Sweep(root string, before time.Time, size int64) (removed int) {
	type one struct {
		path string
		info fs.FileInfo
	}
	var all []one
	paths, _ := filepath.Glob(filepath.Join(root, "*", "*")) // the pattern is a good one, unless root is odd: then nothing is removed
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, one{path, info})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	total := int64(0)
	for _, a := range all {
		name := filepath.Base(a.path)
		if strings.HasPrefix(name, ".") {
			if time.Since(a.info.ModTime()) > stillborn {
				_ = os.Remove(a.path)
			}
			continue
		}
		if total += a.info.Size(); strings.HasSuffix(name, ending) && (a.info.ModTime().Before(before) || total > size) && removeIdle(a.path) {
			total -= a.info.Size()
			removed++
		}
	}
	return removed
}

// removeIdle removes the journal of an execution that does not run.
func removeIdle(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return filelock.File(f) == nil && os.Remove(path) == nil
}
