package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// interpreter is a binary of the host and where it is found inside a sandbox.
type interpreter struct{ path, inside string }

// systemDirs are the parts of the host's /usr that sandboxes see, read-only:
// what the distribution ships for its interpreters. /usr/local, /usr/etc,
// /usr/src and what an operator may have put elsewhere stay out.
var systemDirs = []string{"/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/share"}

// findInterpreter resolves an interpreter: an explicit path, or the first of the
// names in the usual places. One that lies outside of what sandboxes see is
// mounted there alone, as a single file.
func findInterpreter(explicit, inside string, names ...string) (interpreter, error) {
	path := explicit
	if path == "" {
		found, err := lookUp(names)
		if err != nil {
			return interpreter{}, err
		}
		path = found
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return interpreter{}, fmt.Errorf("find interpreter: %w", err)
	}
	if slices.ContainsFunc(systemDirs, func(dir string) bool { return strings.HasPrefix(real, dir+"/") }) {
		inside = real
	}
	return interpreter{path: real, inside: inside}, nil
}

func lookUp(names []string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find interpreter: no %s on this machine", strings.Join(names, " or "))
}

// makeRootfs lays out the root file system that all sandboxes of a host share
// read-only: mount points, and an /etc of our own making.
func makeRootfs(root string, points []string) error {
	dirs := append([]string{"/proc", "/dev", "/tmp", "/etc", "/workspace", guestDir, bridgeDir, serversDir}, points...)
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil { // seen by the sandbox's own user
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
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil { // seen by the sandbox's own user
			return fmt.Errorf("make root file system: %w", err)
		}
	}
	return nil
}

// mountPoint makes the empty file that a single file is mounted over.
func mountPoint(root, at string) error {
	path := filepath.Join(root, at)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // seen by the sandbox's own user
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o755); err != nil { // an interpreter is executable
		return fmt.Errorf("make mount point: %w", err)
	}
	return nil
}

func existing(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		info, err := os.Lstat(dir)
		return errors.Is(err, fs.ErrNotExist) || err != nil || !info.IsDir()
	})
}
