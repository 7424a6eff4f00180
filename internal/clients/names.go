package clients

import (
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

var (
	notInName     = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	notInVariable = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

const maxName = 64

// upstreamName converts a label to a valid name: a letter, then letters, digits, "-" and "_".
func upstreamName(label string) string {
	if i := strings.LastIndexAny(label, "/"); i >= 0 && i+1 < len(label) && strings.Count(label, "/") == 1 && strings.Contains(label[:i], ".") {
		label = label[i+1:] // com.example/name, as the registry writes it
	}
	name := strings.Trim(notInName.ReplaceAllString(label, "-"), "-_")
	switch {
	case name == "":
		return "server"
	case name[0] >= '0' && name[0] <= '9':
		name = "server-" + name
	}
	return strings.TrimRight(name[:min(len(name), maxName)], "-_")
}

// variableName converts text to the name of an environment variable.
func variableName(text string) string {
	name := strings.ToUpper(strings.Trim(notInVariable.ReplaceAllString(camel.ReplaceAllString(text, "${1}_${2}"), "_"), "_"))
	switch {
	case name == "":
		return "SECRET"
	case name[0] >= '0' && name[0] <= '9':
		return "_" + name
	}
	return name[:min(len(name), maxName)]
}

// isGeneric reports whether a name does not identify the owner of a secret, so that several servers may use it.
func isGeneric(name string) bool {
	return slices.Contains([]string{"API_KEY", "APIKEY", "KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH", "AUTHORIZATION", "AUTH_TOKEN", "ACCESS_TOKEN",
		"API_TOKEN", "API_SECRET", "BEARER_TOKEN", "CLIENT_SECRET", "SECRET_KEY", "ACCESS_KEY", "PASS", "CREDENTIALS", "COOKIE", "DSN", "MCP_TOKEN"}, name)
}

// mayPass refuses variables that make a program load other code than its own,
// after Goose's list. A user who needs one writes it into upstreams.yaml.
func (r *serverParser) mayPass(name string) bool {
	upper := strings.ToUpper(name)
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		r.note("a variable with an impossible name was left out")
	case strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || slices.Contains(forbidden(), upper):
		r.note("%s makes a program load other code: left out", sanitize.Line(name, 40))
	default:
		return true
	}
	return false
}

func forbidden() []string {
	return []string{"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "RUBYOPT", "RUBYLIB", "GEM_PATH", "GEM_HOME",
		"PERL5OPT", "PERL5LIB", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GO111MODULE", "GOROOT", "BASH_ENV", "ENV",
		"GCONV_PATH", "GLIBC_TUNABLES", "APPINIT_DLLS", "COMSPEC", "SYSTEMROOT", "WINDIR", "PATHEXT", "PROMPT_COMMAND", "GIT_SSH_COMMAND"}
}
