package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// errScript says that a file starts an interpreter elsewhere: only a binary can be mounted into a sandbox.
var errScript = errors.New("is a script that starts an interpreter and not one itself (a shim of pyenv, nvm or the like)")

// findInterpreter resolves an interpreter: an explicit path, or the first of the
// names in the usual places that is a binary. One that lies outside of what
// sandboxes see is mounted there alone, as a single file.
func findInterpreter(explicit, inside string, names ...string) (interpreter, error) {
	candidates := []string{explicit}
	if explicit == "" {
		candidates = lookUp(names)
	}
	err := fmt.Errorf("no %s on this machine", strings.Join(names, " or "))
	for _, candidate := range candidates {
		path, badErr := binary(candidate)
		if badErr == nil {
			if slices.ContainsFunc(systemDirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") }) {
				inside = path
			}
			return interpreter{path: path, inside: inside}, nil
		}
		err = badErr
	}
	return interpreter{}, fmt.Errorf("find interpreter: %w", err)
}

// lookUp returns every executable that is called by one of the names, in the order of the names and of PATH.
func lookUp(names []string) []string {
	var found []string
	for _, name := range names {
		dirs := filepath.SplitList(os.Getenv("PATH"))
		if filepath.IsAbs(name) {
			dirs = []string{"/"}
		}
		for _, dir := range dirs {
			if path := filepath.Join(dir, name); filepath.IsAbs(path) && isExecutable(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// binary follows symbolic links to an executable and checks that it is one for
// the kernel: mounted into a sandbox, a script would not find what it starts.
func binary(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", err
	}
	if !isExecutable(real) {
		return "", fmt.Errorf("%s is no executable file", path)
	}
	magic, err := readMagic(real)
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(magic, "#!"):
		return "", fmt.Errorf("%s %w", path, errScript)
	case magic != "\x7fELF":
		return "", fmt.Errorf("%s is no program for this machine", path)
	}
	return real, nil
}

func readMagic(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	n, err := io.ReadFull(f, magic)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(magic[:n]), err
}

// makeRootfs lays out the root file system that all sandboxes of a host share
// read-only: mount points, and an /etc of our own making.
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
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("make root file system: %w", err)
		}
	}
	return nil
}

// openUp lets every user read what is below dir, whatever our umask took away:
// a sandbox's user is not ours.
func openUp(dir string) error {
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

// mountPoint makes the empty file that a single file is mounted over.
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

func existing(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		info, err := os.Lstat(dir)
		return errors.Is(err, fs.ErrNotExist) || err != nil || !info.IsDir()
	})
}
