package deps

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// InstalledPackage is an installed package and its modules.
type InstalledPackage struct {
	Package
	// Modules are the names by which programs import it, sorted; for npm the package's name.
	Modules []string
}

// maxInstalled is how many packages of a folder are listed.
const maxInstalled = 5000

// List returns the packages in folders of the host, such as Layer.Dir or Base.Sites,
// sorted by name. If a package is in two folders, the first one counts, as for an import.
// It reads metadata and runs nothing. The texts, which come from packages, are sanitized.
func List(interpreter sandbox.Interpreter, dirs ...string) ([]InstalledPackage, error) {
	seen, all := map[string]bool{}, []InstalledPackage(nil)
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		found := listPython(root)
		if interpreter == sandbox.Node {
			found = listNode(root)
		}
		_ = root.Close()
		for _, one := range found {
			if key := Key(interpreter, one.Name); !seen[key] {
				seen[key] = true
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b InstalledPackage) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return all, nil
}

// Key returns a package's name for comparison: Python_Dateutil and python-dateutil are equal.
func Key(interpreter sandbox.Interpreter, name string) string {
	if interpreter == sandbox.Python {
		return canonical(name)
	}
	return name
}

// Find returns the installed package with that name, or else with a module of that name.
func Find(interpreter sandbox.Interpreter, all []InstalledPackage, name string) (InstalledPackage, bool) {
	for _, matches := range []func(InstalledPackage) bool{
		func(one InstalledPackage) bool { return Key(interpreter, one.Name) == Key(interpreter, name) },
		func(one InstalledPackage) bool { return slices.Contains(one.Modules, name) },
	} {
		if i := slices.IndexFunc(all, matches); i >= 0 {
			return all[i], true
		}
	}
	return InstalledPackage{}, false
}

func listPython(root *os.Root) []InstalledPackage {
	var all []InstalledPackage
	folders, _ := fs.Glob(root.FS(), "*.dist-info")
	for _, folder := range folders[:min(len(folders), maxInstalled)] {
		one := InstalledPackage{Package: readMetadata(root, path.Join(folder, "METADATA"))}
		if one.Name == "" {
			continue
		}
		one.Modules = modulesOf(root, folder)
		all = append(all, one)
	}
	return all
}

// readMetadata reads the head of a METADATA file, which is one of an e-mail.
func readMetadata(root *os.Root, name string) Package {
	var p Package
	for _, line := range readLines(root, name, 64<<10) {
		key, value, _ := strings.Cut(line, ":")
		switch value = sanitize.Line(value, 100); {
		case line == "":
			return p
		case strings.EqualFold(key, "Name") && p.Name == "":
			p.Name = value
		case strings.EqualFold(key, "Version") && p.Version == "":
			p.Version = value
		}
	}
	return p
}

// modulesOf returns the modules of a package, from its RECORD.
func modulesOf(root *os.Root, folder string) []string {
	modules := map[string]bool{}
	for _, line := range readLines(root, path.Join(folder, "RECORD"), 8<<20) {
		if module := moduleOf(line); module != "" {
			modules[module] = true
		}
	}
	var all []string
	for module := range modules {
		all = append(all, module)
	}
	slices.Sort(all)
	return all[:min(len(all), 50)]
}

// moduleOf returns the module to which a line of RECORD belongs, "" for none.
func moduleOf(line string) string {
	file, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), ",")
	first, _, inFolder := strings.Cut(file, "/")
	name, suffix, _ := strings.Cut(first, ".")
	switch {
	case inFolder && strings.HasSuffix(file, ".py") || strings.HasSuffix(file, ".so"):
		if inFolder && suffix != "" { // a folder such as x.libs, x.dist-info
			return ""
		}
	case suffix != "py":
		return ""
	}
	if !identifier.MatchString(name) {
		return ""
	}
	return name
}

func readLines(root *os.Root, name string, limit int64) []string {
	file, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	var lines []string
	scanner := bufio.NewScanner(io.LimitReader(file, limit))
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines
}

func listNode(root *os.Root) []InstalledPackage {
	folders, _ := fs.Glob(root.FS(), "*")
	scoped, _ := fs.Glob(root.FS(), "@*/*")
	folders = slices.DeleteFunc(append(folders, scoped...), func(name string) bool {
		return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "@") && !strings.Contains(name, "/")
	})
	var all []InstalledPackage
	for _, folder := range folders[:min(len(folders), maxInstalled)] {
		if version, ok := nodeVersion(root, folder); ok {
			name := sanitize.Line(folder, 200)
			all = append(all, InstalledPackage{Package: Package{name, version}, Modules: []string{name}})
		}
	}
	return all
}

func nodeVersion(root *os.Root, folder string) (string, bool) {
	file, err := root.Open(path.Join(folder, "package.json"))
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	var about struct {
		Version string `json:"version"`
	}
	err = json.NewDecoder(io.LimitReader(file, 1<<20)).Decode(&about)
	return sanitize.Line(about.Version, 100), err == nil
}
