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

// FileState returns a text that changes when the file at path changes or is replaced.
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

// Files calls f after the files at the paths have changed and are stable, until ctx ends. It polls at the interval
// every, which works on every kind of mount. The first poll compares with the state at the call. While failed reports
// true, f is called again without a change.
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
		settled := slices.Equal(now, seen) // not being written
		seen = now
		if !settled || slices.Equal(now, last) && !failed() {
			continue
		}
		f()
		last = states() // the paths may have changed
		seen = last
	}
}
