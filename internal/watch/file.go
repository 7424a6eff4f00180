package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"sallyport/internal/sleep"
)

// FileState returns a text that differs when the file at path has changed, or another file has taken its place.
func FileState(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return " is not there"
	}
	if err != nil {
		return " " + err.Error()
	}
	return fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano(), inode(info))
}

// Files calls f whenever the files at the paths have changed and nobody writes them any more, until ctx ends. They are looked at
// each time that every passes: a poll works on every kind of mount. The first look finds what has changed since the paths were
// read. While failed reports true, f is called again although nothing has changed.
func Files(ctx context.Context, every time.Duration, paths func() []string, failed func() bool, f func()) {
	states := func() []string {
		all := paths()
		for i, path := range all {
			all[i] = path + FileState(path)
		}
		return all
	}
	last, seen := []string(nil), states()
	for sleep.For(ctx, every) == nil {
		now := states()
		settled := slices.Equal(now, seen) // it is not being written just now
		seen = now
		if !settled || slices.Equal(now, last) && !failed() {
			continue
		}
		f()
		last = states() // there may be other files to watch
		seen = last
	}
}
