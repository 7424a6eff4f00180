package candidate

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/containerrun"
	"sallyport/internal/packagerun"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// Machine is what the isolation of an entry depends on, besides the entry.
type Machine struct {
	// Index returns the registry that replaces the usual one of a kind of packages, "" for none.
	Index func(kind string) string
	// Getenv returns variables, to which paths may refer.
	Getenv func(name string) (string, bool)
	// Stat returns the mode of the file at a path; ok is false if there is none.
	Stat func(path string) (mode fs.FileMode, ok bool)
}

// Isolated is an entry with or without isolation.
type Isolated struct {
	Entry settingsfile.Entry
	// Open means that the server may need more hosts or files than its isolation allows.
	Open bool
	// Reason says why an entry that runs a package or an image is not isolated.
	Reason string
}

// Isolate isolates an entry that runs a package of npm or PyPI or a container image: it reaches the hosts and folders that are known of
// the package, and those that its arguments and variables name. An entry that runs something else, or that a sandbox would break, stays
// as it is.
func (m Machine) Isolate(e settingsfile.Entry) Isolated {
	isolate := m.isolatePackage
	made, isImage, err := containerrun.Convert(e)
	if isImage {
		isolate = m.isolateImage
	}
	if err != nil {
		return Isolated{Entry: e, Reason: err.Error()}
	}
	n, ok, reason := isolate(made)
	switch {
	case reason != "":
		return Isolated{Entry: e, Reason: reason}
	case !ok:
		return Isolated{Entry: e}
	}
	made.Isolate = n.setting(made.Isolate)
	return Isolated{Entry: made, Open: n.open}
}

// isolateImage reads the needs of an image.
func (m Machine) isolateImage(e settingsfile.Entry) (n isolator, ok bool, reason string) {
	n = isolator{Machine: m, Candidate: Candidate{kind: kindImage, image: e.Isolate.Image}, mounts: e.Isolate.Mounts, open: true}
	for _, text := range append(slices.Clone(e.Args), slices.Collect(maps.Values(e.Env))...) {
		_, value, hasValue := strings.Cut(text, "=")
		if !hasValue || !strings.HasPrefix(text, "-") {
			value = text
		}
		if reason == "" && strings.Contains(value, "://") {
			reason = n.reach(value)
		}
	}
	return n, true, reason
}

// bridges are packages that connect to a server elsewhere, which needs no process.
var bridges = map[string]bool{"mcp-remote": true}

// isolatePackage reads the needs of a package; ok is false for an entry that runs none.
func (m Machine) isolatePackage(e settingsfile.Entry) (n isolator, ok bool, reason string) {
	run, ok, err := packagerun.Read(e.Command, e.Args)
	if !ok || err != nil {
		return n, ok, textOf(err)
	}
	for _, requirement := range run.Packages {
		if packageName(run.Kind, requirement) == "" {
			return n, ok, sanitize.Line(requirement, 80) + " is no package of a registry"
		}
	}
	name := packageName(run.Kind, run.Packages[0])
	n = isolator{Machine: m, Candidate: Candidate{kind: run.Kind}, dir: e.Dir, open: true}
	if known, ok := presets.OfPackage(run.Kind, name); ok {
		if n.Candidate, err = OfPreset(known, Choice{Package: true}); err != nil {
			return n, ok, textOf(err)
		}
		n.open = known.Open
	}
	switch {
	case bridges[name]:
		reason = "it logs in with a browser of this machine; sallyport add URL needs no process"
	case n.Needs.Outside != "":
		reason = n.Needs.Outside
	default:
		if reason = n.readArgs(run.Args); reason == "" {
			reason = n.readEnv(e.Env)
		}
	}
	return n, true, reason
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Requirements: NAME[@VERSION] of npm, where the version is no URL, and NAME[EXTRAS] with a condition of PyPI.
var (
	npmRequirement  = regexp.MustCompile(`^(.+?)(@[A-Za-z0-9.^~<>=*|+ -]+)?$`)
	pypiRequirement = regexp.MustCompile(`^([A-Za-z0-9._-]+)(\[[A-Za-z0-9._, -]*\])?([=<>~!][A-Za-z0-9.*+!=<>~, -]*)?$`)
)

// packageName returns the name of the package that a requirement asks of a registry, "" if it asks for something else.
func packageName(kind, requirement string) string {
	form := npmRequirement
	if kind == packagerun.PyPI {
		form = pypiRequirement
	}
	parts := form.FindStringSubmatch(requirement)
	if parts == nil || !registry.IsPackage(kind, parts[1]) {
		return ""
	}
	return parts[1]
}

// isolator collects the folders and hosts that the arguments and variables of a server name.
type isolator struct {
	Candidate
	Machine
	// dir is the working directory, "" if it is not known.
	dir            string
	mounts         []settingsfile.EntryMount
	hosts, private []string
	open           bool
}

// setting returns the setting that allows what was collected, and what an image has already.
func (n *isolator) setting(of *settingsfile.EntryIsolation) *settingsfile.EntryIsolation {
	made := n.isolation(n.mounts, n.hosts, n.Index(n.kind))
	for _, host := range n.private {
		made.PrivateHosts = append(made.PrivateHosts, settingsfile.EntryHost{Name: host})
	}
	if of != nil {
		made.Limits = of.Limits
	}
	return made
}

// readArgs reads the arguments of the program. It returns a reason why a sandbox would break it.
func (n *isolator) readArgs(args []string) (reason string) {
	inputs := n.positional()
	for _, text := range args {
		flag, value, hasValue := strings.Cut(text, "=")
		switch {
		case strings.HasPrefix(text, "-") && !n.hasFlag(flag):
			n.open = true
			reason = n.read("", value)
		case strings.HasPrefix(text, "-") && hasValue:
			reason = n.read(strings.TrimLeft(flag, "-"), value)
		case strings.HasPrefix(text, "-"):
		case len(inputs) > 0:
			reason = n.read(inputs[0], text)
			if !n.input(inputs[0]).Repeated {
				inputs = inputs[1:]
			}
		default:
			reason = n.read("", text)
		}
		if reason != "" {
			return reason
		}
	}
	return ""
}

func (n *isolator) hasFlag(name string) bool {
	return slices.ContainsFunc(n.args, func(a argument) bool { return a.flag == name || a.flag == "" && a.parts[0].text == name })
}

// positional returns the names of the inputs that are arguments without a flag.
func (n *isolator) positional() (names []string) {
	for _, a := range n.args {
		if a.flag == "" && len(a.parts) == 1 && a.parts[0].input != "" {
			names = append(names, a.parts[0].input)
		}
	}
	return names
}

// readEnv reads the variables. A fixed path that is missing, or another one, would leave files where the sandbox does not keep them.
func (n *isolator) readEnv(env settingsfile.Values) (reason string) {
	for _, one := range n.env {
		value, set := env[one.name]
		switch usual := one.parts[0].text; {
		case !strings.HasPrefix(usual, "/") || value == usual:
		case !set:
			return "it does not set the variable " + one.name
		default:
			return "it uses the path " + sanitize.Line(value, 80)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.ContainsFunc(n.env, func(one pair) bool { return one.name == name }) {
			n.open = true
			if reservedVariables.MatchString(name) {
				continue
			}
		}
		if reason := n.read(name, env[name]); reason != "" {
			return fmt.Sprintf("%s (%s)", reason, sanitize.Line(name, 60))
		}
	}
	return ""
}

// read reads the value of an argument or a variable: a folder, a host, or a text that names nothing outside of the sandbox.
func (n *isolator) read(name, value string) (reason string) {
	mode := n.Needs.Mounts[name]
	switch {
	case mode != "" || n.input(name).Path:
		return n.folder(value, mode)
	case strings.Contains(value, "://"):
		return n.reach(value)
	}
	return n.path(value)
}
