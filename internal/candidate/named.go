package candidate

import (
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/hostrule"
	"sallyport/internal/mountrule"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// folder mounts a folder that the server is known to need.
func (n *isolator) folder(value, mode string) (reason string) {
	at, ok := n.resolve(value)
	switch {
	case !ok || !path.IsAbs(at):
		return fmt.Sprintf("its folder %s is not an absolute path", sanitize.Line(value, 80))
	case mountrule.Problem(path.Clean(at)) != "":
		return mountrule.Problem(path.Clean(at))
	}
	if mode != config.MountWritable {
		mode = ""
	}
	n.mount(path.Clean(value), mode)
	return ""
}

// mount adds a file or folder. One that can be written stays so.
func (n *isolator) mount(at, mode string) {
	i := slices.IndexFunc(n.mounts, func(m settingsfile.EntryMount) bool { return m.Path == at })
	switch {
	case i < 0:
		n.mounts = append(n.mounts, settingsfile.EntryMount{Path: at, Mode: mode})
	case mode != "":
		n.mounts[i].Mode = mode
	}
}

var references = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// resolve returns the text that a text of the settings means; ok is false if it refers to something that is not known yet.
func (n *isolator) resolve(text string) (plain string, ok bool) {
	known := true
	made := references.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return found
		}
		value, set := n.Getenv(found[2 : len(found)-1])
		known = known && set
		return settingsfile.Escape(value)
	})
	plain, ok = settingsfile.Plain(made)
	return plain, ok && known
}

// shown matches paths that each sandbox has.
var shown = regexp.MustCompile(`^/(usr/)?(bin|lib|lib32|lib64|libx32)/|^/usr/share/|^/(dev|proc)/`)

// path mounts what a value names, so that it can be read. A value that is no path, or names nothing that exists, needs no mount.
func (n *isolator) path(value string) (reason string) {
	if isRelative(value) {
		return n.relative(value)
	}
	plain, ok := n.resolve(value)
	switch at := path.Clean(plain); {
	case value == "~" || strings.HasPrefix(value, "~/"):
		return "it uses the path " + sanitize.Line(value, 80)
	case !ok || !path.IsAbs(plain) || shown.MatchString(at):
		return ""
	default:
		mode, exists := n.Stat(at)
		switch {
		case !exists:
			n.open = true
			return ""
		case mountrule.Problem(at) != "" || !mode.IsDir() && (!mode.IsRegular() || strings.HasPrefix(at, "/tmp/")): // a socket leads out of the sandbox
			return "it uses the path " + sanitize.Line(value, 80)
		}
	}
	n.mount(path.Clean(value), "")
	return ""
}

func isRelative(value string) bool {
	return value == "." || value == ".." || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../")
}

// relative mounts the working directory for a path below it: the process works there if it is mounted.
func (n *isolator) relative(value string) (reason string) {
	dir, ok := n.resolve(n.dir)
	if !ok || !path.IsAbs(dir) || !filepath.IsLocal(value) || mountrule.Problem(path.Clean(dir)) != "" {
		return "it uses the path " + sanitize.Line(value, 80)
	}
	n.mount(path.Clean(n.dir), "")
	return ""
}

// hostOfURL matches a URL: its scheme, host and port.
var hostOfURL = regexp.MustCompile(`^([a-z][a-z0-9+.-]*)://(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:@]*)(?::([0-9]{1,5}))?(?:[/?#]|$)`)

// ports are the usual ports by scheme.
var ports = map[string]string{"https": "443", "wss": "443", "http": "80", "ws": "80", "postgres": "5432", "postgresql": "5432", "mysql": "3306", "mongodb": "27017", "redis": "6379", "rediss": "6379"}

// reach allows the host of a URL. It returns a reason for one that a sandbox cannot reach.
func (n *isolator) reach(value string) (reason string) {
	parts := hostOfURL.FindStringSubmatch(value)
	if parts == nil {
		n.open = true
		return ""
	}
	name, port := strings.ToLower(parts[2]), parts[3]
	if port == "" {
		port = ports[parts[1]]
	}
	host := strings.TrimSuffix(name+":"+port, ":443")
	_, notAddress := netip.ParseAddr(strings.Trim(name, "[]"))
	switch {
	case notAddress == nil || name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return "it reaches " + sanitize.Line(host, 80)
	case n.knowsHost(host):
	case port == "" || strings.HasSuffix(parts[1], "+srv") || hostrule.Host(host) != "":
		n.open = true
	case isLocal(name):
		n.private = addOnce(n.private, host)
	default:
		n.hosts = addOnce(n.hosts, host)
	}
	return ""
}

func (n *isolator) knowsHost(host string) bool {
	return slices.ContainsFunc(n.Needs.Hosts, func(pattern string) bool {
		suffix, wildcard := strings.CutPrefix(pattern, "*")
		return pattern == host || wildcard && strings.HasSuffix(host, suffix)
	})
}

func addOnce(all []string, text string) []string {
	if slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}
