package image

import (
	"fmt"
	"os"
	"path"
	"strings"

	"sallyport/internal/chroot"
)

// makeMountPoints makes folders as mount points, and replaces links and files at their paths.
func makeMountPoints(root *os.Root, points []string) error {
	for _, point := range points {
		if !path.IsAbs(point) || path.Clean(point) != point || point == "/" {
			return fmt.Errorf("make mount point: %.200q is not an absolute path", point)
		}
		at := "."
		for part := range strings.SplitSeq(point[1:], "/") {
			at = path.Join(at, part)
			if info, err := root.Lstat(at); err == nil && info.IsDir() {
				continue
			}
			if err := root.RemoveAll(at); err != nil {
				return fmt.Errorf("make mount point: %w", err)
			}
			if err := (&unpacker{root: root, layerPaths: map[string]bool{}}).mkdir(at); err != nil {
				return fmt.Errorf("make mount point: %w", err)
			}
		}
	}
	return nil
}

// findExecutable returns the path inside of the first of the names that is an executable in one of the folders; "" is none.
func findExecutable(root *os.Root, dirs []string, names ...string) string {
	for _, name := range names {
		for _, dir := range dirs {
			real, err := chroot.Resolve(root, path.Join(dir, name))
			if err != nil {
				continue
			}
			if info, err := root.Lstat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path.Join(dir, name)
			}
		}
	}
	return ""
}
