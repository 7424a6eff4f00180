package image

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll writes to the disk what is in the file system of dir: a name that
// marks a complete image must not survive a crash that its files do not.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync image: %w", err)
	}
	return nil
}
