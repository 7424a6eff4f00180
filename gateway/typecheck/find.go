package typecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Install is a checker on this machine, and how to start it in a sandbox.
type Install struct {
	// Folder of the host must be mounted at the constant Folder.
	Folder string
	// Node says that node runs it with Args; otherwise Args begins with the path of a binary.
	Node bool
	Args []string
	// Files must be in Dir.
	Files map[string][]byte
	// Memory is how much it may use, in bytes.
	Memory int64
	// Version is the version of its package.
	Version string
}

// ErrNotFound is the error for a machine without a checker, which is common and not a fault.
var ErrNotFound = errors.New("was not found")

// Find finds the checker of a language: at the path of its command or package, or for "" by the name
// of its command (pyright, tsc) in PATH; a path without a slash is also a name. It must belong to its npm package.
func Find(language Language, path string) (Install, error) {
	name, command := "pyright", "pyright"
	if language == TypeScript {
		name, command = "typescript", "tsc"
	}
	if path == "" {
		path = command
	}
	if !strings.Contains(path, "/") {
		path = lookPath(path)
	}
	if path == "" {
		return Install{}, fmt.Errorf("%s %w", command, ErrNotFound)
	}
	folder, version := packageOf(path, name)
	if folder == "" {
		return Install{}, fmt.Errorf("%s does not belong to the npm package %s", path, name)
	}
	install := Install{Folder: folder, Version: version, Files: map[string][]byte{}}
	if err := install.locateServer(language); err != nil {
		return Install{}, err
	}
	d := dialects()[language]
	install.Files[d.file] = nil // the server needs the file to exist; it gets the program over its input
	for _, file := range d.files {
		data, err := files.ReadFile("files/" + file)
		if err != nil {
			return Install{}, fmt.Errorf("find type checker: %w", err)
		}
		install.Files[file] = data
	}
	return install, nil
}

// locateServer finds the server in the package and sets the fields to start it.
func (i *Install) locateServer(language Language) error {
	if language == Python {
		i.Node, i.Memory = true, 768<<20
		i.Args = []string{"--max-old-space-size=512", Folder + "/langserver.index.js", "--stdio"}
		return checkFile(filepath.Join(i.Folder, "langserver.index.js"))
	}
	major, _, _ := strings.Cut(i.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("typescript %s has no language server: 7 or later is needed", i.Version)
	}
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	binary := filepath.Join("@typescript", "typescript-"+runtime.GOOS+"-"+arch, "lib")
	for dir := i.Folder; ; dir = filepath.Dir(dir) {
		if lib := filepath.Join(dir, "node_modules", binary); checkFile(filepath.Join(lib, "tsc")) == nil {
			i.Folder, i.Memory = lib, 768<<20
			i.Args = []string{Folder + "/tsc", "--lsp", "--stdio"}
			return nil
		}
		if dir == filepath.Dir(dir) {
			return fmt.Errorf("typescript %s lacks its package %s", i.Version, filepath.Dir(binary))
		}
	}
}

func checkFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	return err
}

// lookPath returns the first executable of that name in PATH.
func lookPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// packageOf returns folder and version of the npm package of that name to which a path belongs: the
// package's folder, a file in it, a link to either, or a command in a .bin next to it.
func packageOf(path, name string) (folder, version string) {
	beside := filepath.Join(filepath.Dir(filepath.Dir(path)), name)
	for _, from := range []string{path, beside} {
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			continue
		}
		if real, err = filepath.Abs(real); err != nil {
			continue
		}
		for dir := real; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			var p struct{ Name, Version string }
			data, err := os.ReadFile(filepath.Join(dir, "package.json"))
			if err != nil || json.Unmarshal(data, &p) != nil {
				continue
			}
			if p.Name == name {
				return dir, p.Version
			}
		}
	}
	return "", ""
}
