package isolation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// maxMetadata bounds a metadata file of a package, in bytes.
const maxMetadata = 1 << 20

// entry returns the arguments of the interpreter that start the program of a package, from the metadata of its layer. They come from
// the package, and are used inside of the sandbox only.
func entry(layer deps.Layer, c command) ([]string, error) {
	root, err := os.OpenRoot(layer.Dir)
	if err != nil {
		return nil, fmt.Errorf("open package: %w", err)
	}
	defer func() { _ = root.Close() }()
	if c.interpreter == sandbox.Node {
		return nodeEntry(root, npmName(c.packages[0]), c.bin)
	}
	return pythonEntry(root, pythonPackage(c.packages[0]), c.bin)
}

// npmName returns the name in a requirement of npm.
func npmName(requirement string) string {
	name, _, _ := strings.Cut(requirement[min(1, len(requirement)):], "@") // a first @ is the scope's
	return requirement[:min(1, len(requirement))] + name
}

var requirementName = regexp.MustCompile(`^[A-Za-z0-9._-]+`)

// pythonPackage returns the name in a requirement of Python.
func pythonPackage(requirement string) string { return requirementName.FindString(requirement) }

// nodeEntry returns the program of an npm package, as npx chooses it.
func nodeEntry(root *os.Root, name, bin string) ([]string, error) {
	data, err := readMetadata(root, name+"/package.json")
	if err != nil {
		return nil, err
	}
	var about struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(data, &about); err != nil {
		return nil, fmt.Errorf("package %s has an invalid package.json", name)
	}
	programs := map[string]string{}
	if short := path.Base(name); json.Unmarshal(about.Bin, &programs) != nil {
		var one string
		if json.Unmarshal(about.Bin, &one) == nil && one != "" {
			programs = map[string]string{short: one}
		}
	}
	chosen, err := choose(name, path.Base(name), bin, programs)
	if err != nil {
		return nil, err
	}
	file := path.Join(name, chosen)
	if !fs.ValidPath(file) || !strings.HasPrefix(file, name+"/") {
		return nil, fmt.Errorf("package %s has an invalid program %q", name, sanitize.Line(chosen, 100))
	}
	return []string{deps.NodeDir + "/" + file}, nil
}

// runEntry imports a function and calls it, as the scripts do that pip installs. Its arguments are module, function, name.
const runEntry = `import importlib, sys
module, function = sys.argv[1:3]
del sys.argv[:3]
target = importlib.import_module(module)
for name in function.split("."):
    target = getattr(target, name)
sys.exit(target())
`

var consoleScript = regexp.MustCompile(`^([A-Za-z0-9._-]+)\s*=\s*([A-Za-z0-9_.]+)\s*:\s*([A-Za-z0-9_.]+)\s*(\[.*\])?$`)

// pythonEntry returns the program of a Python package, by its console scripts.
func pythonEntry(root *os.Root, name, bin string) ([]string, error) {
	programs := map[string]string{}
	infos, _ := fs.Glob(root.FS(), "*.dist-info")
	for _, info := range infos {
		of, _, _ := strings.Cut(strings.TrimSuffix(info, ".dist-info"), "-")
		if deps.Key(sandbox.Python, of) != deps.Key(sandbox.Python, name) {
			continue
		}
		data, err := readMetadata(root, info+"/entry_points.txt")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		programs = consoleScripts(string(data))
	}
	chosen, err := choose(name, name, bin, programs)
	if err != nil {
		return nil, err
	}
	module, function, _ := strings.Cut(chosen, ":")
	return []string{"-B", "-c", runEntry, module, function, name}, nil
}

// consoleScripts returns the functions of the section console_scripts, as module:function by name.
func consoleScripts(text string) map[string]string {
	all, in := map[string]string{}, false
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			in = line == "[console_scripts]"
		} else if parts := consoleScript.FindStringSubmatch(line); in && parts != nil {
			all[parts[1]] = parts[2] + ":" + parts[3]
		}
	}
	return all
}

// choose returns the program with the name bin, or else the one that is called like the package, or the only one.
func choose(name, short, bin string, programs map[string]string) (string, error) {
	for _, want := range []string{bin, short} {
		if found, ok := programs[want]; ok && want != "" {
			return found, nil
		}
		if bin != "" {
			break
		}
	}
	distinct := slices.Compact(slices.Sorted(maps.Values(programs)))
	if bin == "" && len(distinct) == 1 {
		return distinct[0], nil
	}
	names := sanitize.Line(strings.Join(slices.Sorted(maps.Keys(programs)), ", "), 200)
	switch {
	case len(programs) == 0:
		return "", invalid("package "+name+" has no program", "it is not a server that can be started by name")
	case bin != "":
		return "", invalid(fmt.Sprintf("package %s has no program %.60q", name, bin), "it has "+names)
	}
	return "", invalid("package "+name+" has several programs", "name one after --package "+name+": "+names)
}

// readMetadata reads a file of a package.
func readMetadata(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read metadata of a package: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxMetadata {
		return nil, fmt.Errorf("read metadata of a package: %s is no regular file of at most 1 MiB", path.Base(name))
	}
	return io.ReadAll(io.LimitReader(file, maxMetadata))
}
