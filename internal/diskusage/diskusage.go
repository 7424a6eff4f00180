// Package diskusage measures how much disk space files take.
package diskusage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// file identifies a file of a file system, whatever its name is.
type file struct{ device, inode uint64 }

// Tree returns the disk space that the files and folders in dir take, in bytes. A file with several names counts once.
// What is removed meanwhile does not count.
func Tree(ctx context.Context, dir string) (bytes int64, err error) {
	seen := map[file]bool{}
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return skipMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return skipMissing(err)
		}
		size, id, linked := measure(info)
		if !linked || !seen[id] {
			bytes += size
		}
		if linked {
			seen[id] = true
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", dir, err)
	}
	return bytes, nil
}

func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
