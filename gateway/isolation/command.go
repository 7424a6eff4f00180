package isolation

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/packagerun"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// command is what a sandbox runs for the command line of the settings.
type command struct {
	interpreter sandbox.Interpreter
	// args are the arguments, without the program of a package.
	args []string
	// packages are requirements to install; bin is the program of the first one, "" for its only one.
	packages []string
	bin      string
	// files are files of this machine by their path in the sandbox.
	files map[string]string
}

var pythonName = regexp.MustCompile(`^python(3(\.[0-9]+)?)?$`)

// resolve translates the command line of an upstream.
func resolve(up config.Upstream) (command, error) {
	if up.Isolate.Image != "" {
		return command{}, nil // its command line is known when it is pulled
	}
	if run, ok, err := packagerun.Read(up.Command, up.Args); ok {
		interpreter := map[string]sandbox.Interpreter{packagerun.NPM: sandbox.Node, packagerun.PyPI: sandbox.Python}[run.Kind]
		return command{interpreter: interpreter, args: run.Args, packages: run.Packages, bin: run.Bin}, err
	}
	switch base := filepath.Base(up.Command); {
	case base == "docker" || base == "podman":
		return command{}, invalid("isolate cannot run "+base, "it is a client of a daemon outside of the sandbox; name the image by isolate: {image: NAME}, in place of the command, or leave isolate out")
	case up.Command == "node":
		return command{interpreter: sandbox.Node, args: up.Args}, checkScript(up)
	case pythonName.MatchString(up.Command):
		return command{interpreter: sandbox.Python, args: up.Args}, checkScript(up)
	}
	return binary(up)
}

// binary runs a program of this machine. One that is neither in a mount nor in a folder that all sandboxes see is mounted as a single file.
func binary(up config.Upstream) (command, error) {
	path := up.Command
	if strings.Contains(path, "/") && !filepath.IsAbs(path) {
		path = filepath.Join(up.Dir, path)
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return command{}, fmt.Errorf("start %q: %w", up.Command, exec.ErrNotFound)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return command{}, fmt.Errorf("start %q: %w", up.Command, err)
	}
	switch {
	case visible(up, path):
		return command{args: append([]string{path}, up.Args...)}, nil
	case visible(up, real):
		return command{args: append([]string{real}, up.Args...)}, nil
	}
	file, err := elf.Open(real)
	if err != nil { // a script, which needs its neighbours
		return command{}, hidden("its command "+path, filepath.Dir(real))
	}
	_ = file.Close()
	at := "/opt/program/" + filepath.Base(real)
	return command{args: append([]string{at}, up.Args...), files: map[string]string{at: real}}, nil
}

// sharedDir matches what all sandboxes see of the host.
var sharedDir = regexp.MustCompile(`^/(usr/)?(bin|lib|lib32|lib64|libx32)/|^/usr/share/`)

// visible reports whether the sandbox of an upstream sees a path of the host.
func visible(up config.Upstream, path string) bool {
	return sharedDir.MatchString(path) || slices.ContainsFunc(up.Isolate.Mounts, func(m config.IsolationMount) bool { return within(path, m.Path) })
}

// hidden is the error for a file that the sandbox would not see without the folder dir.
func hidden(what, dir string) error {
	return &tool.Error{Kind: tool.Invalid, Message: what + " is not in the sandbox" + fmt.Sprintf("; add to isolate: mounts: [{path: %s}]", dir), Err: &hiddenFile{dir}}
}

// hiddenFile is the cause of an error about a file that the sandbox would not see.
type hiddenFile struct{ dir string }

func (h *hiddenFile) Error() string { return h.dir + " is not mounted" }

// checkScript checks that the sandbox sees the script that an interpreter is to run.
func checkScript(up config.Upstream) error {
	i := slices.IndexFunc(up.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || i > 0 && slices.Contains([]string{"-m", "-c", "-e", "-p", "--eval"}, up.Args[i-1]) {
		return nil
	}
	path, dir := up.Args[i], filepath.Dir(up.Args[i])
	if !filepath.IsAbs(path) { // it is found from the working directory
		path, dir = filepath.Join(up.Dir, path), up.Dir
	}
	if visible(up, path) {
		return nil
	}
	return hidden("the script "+path, dir)
}
