//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// systemDirs are the parts of the host's /usr that sandboxes see, read-only:
// what the distribution ships for its interpreters. /usr/local, /usr/etc,
// /usr/src and other folders of the operator are not visible.
var systemDirs = []string{"/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/share"}

// makeRootfs lays out the root file system that all sandboxes of a host share
// read-only: mount points, and a generated /etc.
func makeRootfs(root string, points []string) error {
	dirs := append([]string{"/proc", "/dev", "/tmp", "/etc", "/workspace", guestDir, bridgeDir, serversDir}, points...)
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return fmt.Errorf("make root file system: %w", err)
		}
	}
	for _, link := range []string{"bin", "lib", "lib32", "lib64", "libx32"} {
		if _, err := os.Lstat("/usr/" + link); err != nil {
			continue
		}
		if err := os.Symlink("usr/"+link, filepath.Join(root, link)); err != nil {
			return fmt.Errorf("make root file system: %w", err)
		}
	}
	for name, content := range map[string]string{
		"etc/passwd":        "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/workspace:/bin/sh\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 localhost\n",
		"etc/gitconfig":     gitConfig,
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("make root file system: %w", err)
		}
	}
	return nil
}

// gitConfig lets git work in /workspace: a repository there is of another user, and a commit needs an author. A repository
// with its own settings overrides them.
const gitConfig = "[safe]\n\tdirectory = *\n[user]\n\tname = program\n\temail = program@localhost\n[init]\n\tdefaultBranch = main\n"

// makeReadable makes everything below dir readable to all users, regardless of the umask:
// the sandbox runs as a different user.
func makeReadable(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Chmod(path, 0o755)
		case entry.Type().IsRegular():
			return os.Chmod(path, 0o644)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("open files for sandboxes: %w", err)
	}
	return nil
}

// mountPoint makes an empty file as the mount point of a single file.
func mountPoint(root, at string) error {
	path := filepath.Join(root, at)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	return nil
}

func existingDirs(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		info, err := os.Lstat(dir)
		return errors.Is(err, fs.ErrNotExist) || err != nil || !info.IsDir()
	})
}
