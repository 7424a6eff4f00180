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

// Settled reports whether the last frame of a file says that its record is stored elsewhere: the file needs no
// further work.
func Settled(path string) bool { return endsWith(path, isSettled) || endsWith(path, isSuccess) }

// Succeeded reports whether a file is settled and its program succeeded.
func Succeeded(path string) bool { return endsWith(path, isSuccess) }

// EndsInSuccess reports whether the end of a journal says that it is settled and its program succeeded.
func EndsInSuccess(end []byte) bool { return bytes.HasSuffix(end, appendFrame(nil, isSuccess, nil)) }

// endsWith reports whether the last frame of a file is an empty one of a kind.
func endsWith(path string, kind byte) bool {
	end := appendFrame(nil, kind, nil)
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

// orphanAge is the age at which a file that never became a journal is removed.
const orphanAge = time.Hour

// Sweep removes journals in the folders below root that were last written before a time, and then as many others as
// needed to keep the total within size bytes: first those of programs that succeeded, each group oldest first.
// Journals of running executions stay. It returns the number removed.
func Sweep(root string, before time.Time, size int64) (removed int) {
	var left []candidate
	total := int64(0)
	for _, one := range listJournals(root) {
		if one.info.ModTime().Before(before) && removeIdle(one.path) {
			removed++
			continue
		}
		left, total = append(left, one), total+one.info.Size()
	}
	if total <= size {
		return removed
	}
	for i := range left {
		left[i].succeeded = Succeeded(left[i].path)
	}
	slices.SortStableFunc(left, func(a, b candidate) int {
		if a.succeeded != b.succeeded && a.succeeded {
			return -1
		} else if a.succeeded != b.succeeded {
			return 1
		}
		return a.info.ModTime().Compare(b.info.ModTime())
	})
	for _, one := range left {
		if total > size && removeIdle(one.path) {
			total -= one.info.Size()
			removed++
		}
	}
	return removed
}

// candidate is a journal that may be removed.
type candidate struct {
	path      string
	info      fs.FileInfo
	succeeded bool
}

// listJournals returns the journals below root. It removes old files that never became a journal.
func listJournals(root string) (all []candidate) {
	paths, _ := filepath.Glob(filepath.Join(root, "*", "*")) // fails only if root contains pattern characters: then nothing is removed
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch name := filepath.Base(path); {
		case strings.HasPrefix(name, "."):
			if time.Since(info.ModTime()) > orphanAge {
				_ = os.Remove(path)
			}
		case strings.HasSuffix(name, extension):
			all = append(all, candidate{path: path, info: info})
		}
	}
	return all
}

// removeIdle removes the journal of an execution that is not running.
func removeIdle(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return filelock.File(f) == nil && os.Remove(path) == nil
}
