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
	switch base := filepath.Base(up.Command); {
	case base == "npx" || base == "bunx" || base == "pnpx":
		return npx(base, up.Args)
	case base == "uvx":
		return uvx(base, up.Args)
	case base == "uv" && len(up.Args) > 2 && up.Args[0] == "tool" && up.Args[1] == "run":
		return uvx("uv tool run", up.Args[2:])
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

// packageOptions are the options of a program that fetches packages and runs them.
type packageOptions struct {
	name string
	// flags are ignored. An option of from names the package of the program, one of with a further package.
	flags, from, with []string
	// requirement translates the positional argument to a requirement.
	requirement func(string) string
}

// npx reads the arguments of npx.
func npx(name string, args []string) (command, error) {
	o := packageOptions{name, []string{"-y", "--yes", "-q", "--quiet", "--bun", "--prefer-offline"}, []string{"-p", "--package"}, nil, func(text string) string { return text }}
	return o.command(command{interpreter: sandbox.Node}, args)
}

// uvx reads the arguments of uvx.
func uvx(name string, args []string) (command, error) {
	o := packageOptions{name, []string{"-q", "--quiet", "--no-progress"}, []string{"--from"}, []string{"-w", "--with"}, pythonRequirement}
	return o.command(command{interpreter: sandbox.Python}, args)
}

// pythonRequirement returns the requirement that uvx makes of NAME@VERSION.
func pythonRequirement(text string) string {
	name, version, ok := strings.Cut(text, "@")
	if !ok || version == "latest" {
		return name
	}
	return name + "==" + version
}

// command reads options and the first positional argument, which is the program if an option names its package, and a package else.
func (o packageOptions) command(c command, args []string) (command, error) {
	var further []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		value, rest, err := o.option(args)
		if err != nil {
			return c, err
		}
		switch name, _, _ := strings.Cut(args[0], "="); {
		case slices.Contains(o.from, name):
			c.packages = append(c.packages, value)
		case slices.Contains(o.with, name):
			further = append(further, value)
		}
		args = rest
	}
	return o.positional(c, args, further)
}

// option reads one option, and its value if it has one.
func (o packageOptions) option(args []string) (value string, rest []string, err error) {
	name, value, inline := strings.Cut(args[0], "=")
	takes := slices.Contains(slices.Concat(o.from, o.with), name)
	switch rest = args[1:]; {
	case takes && inline && value != "", !takes && slices.Contains(o.flags, args[0]):
		return value, rest, nil
	case takes && !inline && len(rest) > 0:
		return rest[0], rest[1:], nil
	}
	return "", nil, invalid(fmt.Sprintf("isolate does not know the option %.40q of %s", args[0], o.name), "before the package it knows "+strings.Join(slices.Concat(o.flags, o.from, o.with), ", "))
}

func (o packageOptions) positional(c command, args, further []string) (command, error) {
	if len(args) == 0 {
		return c, invalid(o.name+" has no package in its arguments", "write "+o.name+" PACKAGE")
	}
	if len(c.packages) > 0 {
		c.bin = args[0]
	} else {
		c.packages = []string{o.requirement(args[0])}
	}
	c.packages, c.args = append(c.packages, further...), args[1:]
	return c, nil
}
