// Package registry reads entries of MCP servers from a registry with the API of the official one, version 0.1. Its main
// type is [Client]. Every byte of an answer is untrusted: answers have bounds, names and versions have a strict form, and an
// answer about another server than the requested one is an error. Texts are not cleaned.
package registry

import (
	"regexp"
	"time"
)

// Server is a version of a server, as its publisher describes it (server.json).
type Server struct {
	Name        string     `json:"name"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Version     string     `json:"version"`
	WebsiteURL  string     `json:"websiteUrl"`
	Repository  Repository `json:"repository"`
	Packages    []Package  `json:"packages"`
	Remotes     []Remote   `json:"remotes"`
}

// Repository is where the source of a server is.
type Repository struct {
	URL string `json:"url"`
}

// Package is a package that has the program of a server.
type Package struct {
	// RegistryType is npm, pypi, oci, nuget, mcpb, cargo or another one.
	RegistryType    string `json:"registryType"`
	RegistryBaseURL string `json:"registryBaseUrl"`
	Identifier      string `json:"identifier"`
	Version         string `json:"version"`
	FileSHA256      string `json:"fileSha256"`
	RuntimeHint     string `json:"runtimeHint"`
	Transport       struct {
		Type string `json:"type"`
	} `json:"transport"`
	RuntimeArguments     []Argument `json:"runtimeArguments"`
	PackageArguments     []Argument `json:"packageArguments"`
	EnvironmentVariables []KeyValue `json:"environmentVariables"`
}

// Remote is the address of a running server.
type Remote struct {
	// Type is streamable-http or sse.
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []KeyValue       `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// Input is a value of the configuration of a server.
type Input struct {
	Description string `json:"description"`
	IsRequired  bool   `json:"isRequired"`
	IsSecret    bool   `json:"isSecret"`
	// Format is string, number, boolean or filepath; "" is string.
	Format string `json:"format"`
	// Value is the value, with names of variables in braces. A user cannot change it.
	Value       string   `json:"value"`
	Default     string   `json:"default"`
	Placeholder string   `json:"placeholder"`
	Choices     []string `json:"choices"`
}

// Template is an input with variables in its value.
type Template struct {
	Input
	Variables map[string]Input `json:"variables"`
}

// KeyValue is a variable of the environment, or a header.
type KeyValue struct {
	Template
	Name string `json:"name"`
}

// Argument is an argument of a command line.
type Argument struct {
	Template
	// Type is positional or named.
	Type string `json:"type"`
	// Name is the flag of a named argument, with its dashes.
	Name string `json:"name"`
	// ValueHint names a positional argument. It is not part of the command line.
	ValueHint  string `json:"valueHint"`
	IsRepeated bool   `json:"isRepeated"`
}

// Status is the state of an entry.
type Status string

// The values of Status. The publisher of a deprecated or deleted entry advises against its use.
const (
	Active     Status = "active"
	Deprecated Status = "deprecated"
	Deleted    Status = "deleted"
)

// Official is the state of an entry in the registry.
type Official struct {
	Status        Status    `json:"status"`
	StatusMessage string    `json:"statusMessage"`
	PublishedAt   time.Time `json:"publishedAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
	IsLatest      bool      `json:"isLatest"`
}

// Entry is a server in a registry.
type Entry struct {
	Server Server `json:"server"`
	Meta   struct {
		Official Official `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// Status returns the state of the entry. A registry that states none has active entries only.
func (e Entry) Status() Status {
	if e.Meta.Official.Status == "" {
		return Active
	}
	return e.Meta.Official.Status
}

var (
	serverName = regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`)
	version    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,254}$`)
)

// IsName reports whether a text has the form of a server's name: a namespace in reverse DNS form, a slash, and a name.
func IsName(text string) bool {
	return len(text) >= 3 && len(text) <= 200 && serverName.MatchString(text)
}

// IsVersion reports whether a text can be the version of a server or of a package. Ranges and tags such as latest are none.
func IsVersion(text string) bool { return version.MatchString(text) && text != "latest" }
