// Package clients reads and edits the settings of other MCP clients: the paths of
// their files, the formats of their servers, and how sallyport is added. Its main type
// is [Client]. It converts each server to a [Server] without secrets; what cannot be
// converted becomes a note. It starts no processes.
//
// client.go is the table of clients; read.go, fields.go and template.go read; lists.go
// finds the servers that a client does not start. secret.go finds secrets, variables.go
// and naming.go assign variables to them, and merge.go adds servers to the settings.
// edit.go, permit.go, json.go and toml.go edit a file without changing other bytes.
package clients

import (
	"path/filepath"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/settingsfile"
)

// System describes the system and the user of the settings: home directory and environment.
type System struct {
	// OS is as runtime.GOOS.
	OS string
	// Home is the user's home directory, Dir the absolute directory that projects are looked for in.
	Home, Dir string
	// Getenv is like os.LookupEnv; nil means an empty environment.
	Getenv func(string) (string, bool)
	// ReadFile reads further settings of a client, such as the lists of servers that it
	// does not start; nil means os.ReadFile.
	ReadFile func(string) ([]byte, error)
}

func (p System) env(name string) string {
	if p.Getenv == nil {
		return ""
	}
	value, _ := p.Getenv(name)
	return value
}

func (p System) home(parts ...string) string {
	return filepath.Join(append([]string{p.Home}, parts...)...)
}

// config returns a path below the directory for settings of programs on this system.
func (p System) config(parts ...string) string {
	base := p.home(".config")
	switch {
	case p.OS == "darwin":
		base = p.home("Library", "Application Support")
	case p.OS == "windows" && p.env("APPDATA") != "":
		base = p.env("APPDATA")
	case p.OS == "windows":
		base = p.home("AppData", "Roaming")
	case filepath.IsAbs(p.env("XDG_CONFIG_HOME")):
		base = p.env("XDG_CONFIG_HOME")
	}
	return filepath.Join(append([]string{base}, parts...)...)
}

// dotConfig is like config for programs that use ~/.config on a Mac too.
func (p System) dotConfig(parts ...string) string {
	if p.OS == "darwin" {
		p.OS = "linux"
	}
	return p.config(parts...)
}

// inDirOf returns a path below the directory in a variable, or else below the home directory.
func (p System) inDirOf(variable, folder, file string) string {
	if dir := p.env(variable); dir != "" {
		return filepath.Join(dir, file)
	}
	return p.home(folder, file)
}

// Server is one server of a client's settings.
type Server struct {
	// Label is its name in the client's settings.
	Label string
	// Entry is the upstream that it becomes. Its name is valid, but may clash with another.
	Entry settingsfile.Entry
	// Secrets are the values that were replaced in Entry, by the variables that replace them.
	Secrets config.Secrets
	// Notes are lines about what was changed or not imported. They have no values.
	Notes []string
	// Skip is why it does not become an upstream, "" if it does.
	Skip string
	// Self reports that it is Sallyport itself.
	Self bool

	at     []string // the keys that lead to it in the file
	client string
	getenv func(string) (string, bool)
	// entry and notes have marks in place of the names of variables.
	entry     settingsfile.Entry
	notes     []string
	variables []variable
}

// Self is the command by which a client starts sallyport, or the URL at which it reaches one.
type Self struct {
	// Command is the absolute path of the binary, Args are its arguments.
	Command string
	Args    []string
	// URL is the MCP endpoint of a gateway over HTTP, "" to start the command. TokenVariable is the environment variable with the
	// token for it, "" to send none.
	URL, TokenVariable string
}

// OurName is the name of sallyport's entry in every client's settings.
const OurName = "sallyport"

// isSelf reports whether an entry starts sallyport, directly or through another program.
func isSelf(e settingsfile.Entry) bool {
	if isSallyport(e.Command) {
		return true
	}
	for i, arg := range e.Args {
		if isSallyport(arg) && i+1 < len(e.Args) && e.Args[i+1] == "serve" {
			return true
		}
	}
	return false
}

func isSallyport(command string) bool {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "sallyport"
}
