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

// Install is a checker that was found on this machine, and how it is started in a sandbox.
type Install struct {
	// Folder of the host must be mounted at the constant Folder.
	Folder string
	// Node says that node starts it with Args; otherwise Args begin with the path of a binary.
	Node bool
	Args []string
	// Files must be in Dir.
	Files map[string][]byte
	// Memory is how much it may use, in bytes.
	Memory int64
	// Version is what its package says.
	Version string
}

// ErrNone is for a machine without a checker. That is usual, and no fault.
var ErrNone = errors.New("was not found")

// Find looks for the checker of a language: at the path of its command or package, or with "" by the
// name of its command (pyright, tsc) in PATH; a path without a slash is such a name too. Both must come from their npm packages.
func Find(language Language, path string) (Install, error) {
	name, command := "pyright", "pyright"
	if language == TypeScript {
		name, command = "typescript", "tsc"
	}
	if path == "" {
		path = command
	}
	if !strings.Contains(path, "/") {
		path = inPath(path)
	}
	if path == "" {
		return Install{}, fmt.Errorf("%s %w", command, ErrNone)
	}
	folder, version := packageOf(path, name)
	if folder == "" {
		return Install{}, fmt.Errorf("%s does not belong to the npm package %s", path, name)
	}
	install := Install{Folder: folder, Version: version, Files: map[string][]byte{}}
	if err := install.complete(language); err != nil {
		return Install{}, err
	}
	d := dialects()[language]
	install.Files[d.file] = nil // the server wants it to be there; what it has to check comes over its input
	for _, file := range d.files {
		data, err := files.ReadFile("files/" + file)
		if err != nil {
			return Install{}, fmt.Errorf("find type checker: %w", err)
		}
		install.Files[file] = data
	}
	return install, nil
}

// complete finds what of the package is run.
func (i *Install) complete(language Language) error {
	if language == Python {
		i.Node, i.Memory = true, 768<<20
		i.Args = []string{"--max-old-space-size=512", Folder + "/langserver.index.js", "--stdio"}
		return readable(filepath.Join(i.Folder, "langserver.index.js"))
	}
	major, _, _ := strings.Cut(i.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("typescript %s has no language server of its own: 7 or later is needed", i.Version)
	}
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	binary := filepath.Join("@typescript", "typescript-"+runtime.GOOS+"-"+arch, "lib")
	for dir := i.Folder; ; dir = filepath.Dir(dir) {
		if lib := filepath.Join(dir, "node_modules", binary); readable(filepath.Join(lib, "tsc")) == nil {
			i.Folder, i.Memory = lib, 768<<20
			i.Args = []string{Folder + "/tsc", "--lsp", "--stdio"}
			return nil
		}
		if dir == filepath.Dir(dir) {
			return fmt.Errorf("typescript %s lacks its package %s", i.Version, filepath.Dir(binary))
		}
	}
}

func readable(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	return err
}

// inPath returns the first executable of that name in PATH.
func inPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// packageOf returns folder and version of the npm package of that name which a path belongs to: it may
// be of the package's folder, of something in it, of a link there, or of a command in a .bin next to it.
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
