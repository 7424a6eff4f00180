package candidate

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// Isolation returns the isolation of an entry that runs a well-known package of npm or PyPI. It is nil for an entry that may need more
// than is known of the package, and then reason says why; the reason is empty for an entry that runs no package. index returns
// the registry that replaces the usual one of a kind of packages, "" for none.
func Isolation(e settingsfile.Entry, index func(kind string) string) (isolation *settingsfile.EntryIsolation, reason string) {
	kind, name, args := packageOf(e)
	if kind == "" {
		return nil, ""
	}
	known, _ := presets.OfPackage(kind, name)
	c, err := OfPreset(known, Choice{Package: true})
	if err != nil || known.Open || known.Started.Without != "" {
		return nil, "what it needs is not known"
	}
	n := isolator{Candidate: c}
	if reason = cmp.Or(n.readArgs(args), n.readEnv(e.Env)); reason != "" {
		return nil, reason
	}
	return c.isolation(n.mounts, nil, index(kind)), ""
}

// packageOf returns the package that an entry runs and the arguments of its program; the kind is "" for another entry.
func packageOf(e settingsfile.Entry) (kind, name string, args []string) {
	switch path.Base(filepath.ToSlash(e.Command)) {
	case "npx":
		kind = "npm"
	case "uvx":
		kind = "pypi"
	default:
		return "", "", nil
	}
	args = e.Args
	for len(args) > 0 && slices.Contains([]string{"-y", "--yes", "-q", "--quiet"}, args[0]) {
		args = args[1:]
	}
	if len(args) == 0 {
		return "", "", nil
	}
	name = args[0]
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	if !registry.IsPackage(kind, name) {
		return kind, "", nil
	}
	return kind, name, args[1:]
}

// isolator collects the folders that the arguments and variables of a well-known server name.
type isolator struct {
	Candidate
	mounts []settingsfile.EntryMount
}

// readArgs reads the arguments of the program. It returns a reason why the known needs may be too few.
func (n *isolator) readArgs(args []string) (reason string) {
	inputs := n.positional()
	for _, text := range args {
		flag, value, hasValue := strings.Cut(text, "=")
		switch {
		case strings.HasPrefix(text, "-") && !n.hasFlag(flag):
			reason = "its argument " + sanitize.Line(flag, 80) + " is not known"
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

// readEnv reads the variables. A fixed variable that is missing would leave files where the sandbox does not keep them.
func (n *isolator) readEnv(env settingsfile.Values) (reason string) {
	for _, one := range n.env {
		if _, set := env[one.name]; !set && one.parts[0].input == "" {
			return "it does not set the variable " + one.name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.ContainsFunc(n.env, func(one pair) bool { return one.name == name }) {
			return "its variable " + name + " is not known"
		}
		if reason := n.read(name, env[name]); reason != "" {
			return reason
		}
	}
	return ""
}

// read reads the value of an argument or a variable: a folder that it needs, or a text that names nothing outside of the sandbox.
func (n *isolator) read(name, value string) (reason string) {
	mode := n.Needs.Mounts[name]
	switch {
	case mode != "" || n.input(name).Path:
		return n.mount(value, mode)
	case strings.Contains(value, "://"):
		return n.reach(value)
	case strings.HasPrefix(value, "~") || strings.HasPrefix(value, ".") || strings.HasPrefix(value, "/") || strings.Contains(value, "}/"):
		return "it uses the path " + sanitize.Line(value, 80)
	}
	return ""
}

func (n *isolator) mount(value, mode string) (reason string) {
	if !path.IsAbs(value) || strings.Contains(strings.ReplaceAll(value, "$$", ""), "$") {
		return fmt.Sprintf("its folder %s is not an absolute path", sanitize.Line(value, 80))
	}
	one := settingsfile.EntryMount{Path: path.Clean(value)}
	if mode == config.MountWritable {
		one.Mode = mode
	}
	if !slices.Contains(n.mounts, one) {
		n.mounts = append(n.mounts, one)
	}
	return ""
}

// reach returns a reason if a URL has a host that is none of the known ones.
func (n *isolator) reach(value string) (reason string) {
	at, err := url.Parse(value)
	if err != nil || strings.Contains(at.Host, "$") {
		return "it reaches a host that is not known"
	}
	known := slices.ContainsFunc(n.Needs.Hosts, func(pattern string) bool {
		suffix, wildcard := strings.CutPrefix(pattern, "*")
		return pattern == at.Hostname() || wildcard && strings.HasSuffix(at.Hostname(), suffix)
	})
	if !known || at.Scheme != "https" || at.Port() != "" && at.Port() != "443" {
		return "it reaches " + sanitize.Line(at.Host, 80)
	}
	return ""
}
