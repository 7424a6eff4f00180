package doctorcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// minFreeSpace is the free disk space below which doctor warns, in bytes. A workspace takes up to 256 MiB, records up to 2 GiB.
const minFreeSpace = 256 << 20

// checkData checks that the data directory can be written and has free space.
func (a *app) checkData() []finding {
	dir := a.DataDir()
	if dir == "" {
		return nil // the check of the audit log says so
	}
	check := sandbox.Check{Name: "data directory", OK: true, Detail: dir}
	at := nearestFolder(dir)
	space, inodes, known := cli.FreeSpace(at)
	if known {
		check.Detail = fmt.Sprintf("%s, %d MiB free", dir, space>>20)
	}
	switch err := writable(at); {
	case errors.Is(err, syscall.ENOSPC) || known && (space == 0 || inodes == 0):
		check.OK, check.Detail = false, dir+": the disk is full"
		check.Fix = "free disk space: until then there is no audit record, so no program runs and no tool is called"
	case err != nil:
		check.OK, check.Detail = false, dir+": "+sanitize.Line(err.Error(), 200)
		check.Fix = "check the permissions; until then serve only searches, and runs programs only with audit: {enabled: false}, without storing anything"
	case known && space < minFreeSpace:
		check.Warn, check.Fix = true, fmt.Sprintf("free disk space: at least %d MiB should be free", minFreeSpace>>20)
	}
	return []finding{{Check: check}}
}

// nearestFolder returns dir, or its nearest parent that exists.
func nearestFolder(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// writable writes a file to dir and removes it. It returns the error of either.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
