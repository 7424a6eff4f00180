//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// interpreter is a binary of the host and its path inside a sandbox.
type interpreter struct{ path, inside string }

// errScript means that a file is a script that starts an interpreter elsewhere; only a binary can be mounted into a sandbox.
var errScript = errors.New("is a script that starts an interpreter and not one itself (a shim of pyenv, nvm or the like)")

// findInterpreter resolves an interpreter: an explicit path, or the first of the
// names that lookUp finds as a binary. A binary outside systemDirs is mounted at
// inside, as a single file.
func findInterpreter(explicit, inside string, names ...string) (interpreter, error) {
	candidates := []string{explicit}
	if explicit == "" {
		candidates = lookUp(names)
	}
	err := fmt.Errorf("no %s on this machine", strings.Join(names, " or "))
	for _, candidate := range candidates {
		path, badErr := resolveBinary(candidate)
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

// lookUp returns all executables with one of the names, in the order of the names and of PATH.
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

// resolveBinary follows symbolic links to an executable and checks that it is a binary:
// a script in a sandbox would not find the program that it starts.
func resolveBinary(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", err
	}
	if !isExecutable(real) {
		return "", fmt.Errorf("%s is not an executable file", path)
	}
	f, err := os.Open(real)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return real, checkProgram(path, f)
}

// hostNames returns the names of an interpreter on this machine, the preferred one first.
func hostNames(i Interpreter) []string {
	if i == Node {
		return []string{"/usr/bin/node", "node", "nodejs"}
	}
	return []string{"/usr/bin/python3", "python3"}
}

// InterpreterPath returns the binary of this machine that runs programs without an environment. explicit is the path in
// the settings, or "".
func InterpreterPath(i Interpreter, explicit string) (string, error) {
	found, err := findInterpreter(explicit, "", hostNames(i)...)
	return found.path, err
}
