// Package clients knows the settings of other MCP clients: where their files lie,
// how servers are written in them, and how ours is put in. Its main type is
// [Client]. What is read becomes a [Server] in our own words, with every secret
// taken out of it; what cannot be kept is a note. Nothing is ever started.
//
// client.go is the table of clients; read.go, fields.go and template.go read;
// secret.go and names.go find what is secret and give it a variable; edit.go,
// json.go and toml.go change a file and keep every other byte of it.
package clients

import (
	"path/filepath"
	"strings"

	"sallyport/internal/config"
)

// Place is the machine and the moment: where homes are and what is set.
type Place struct {
	// OS is as runtime.GOOS.
	OS string
	// Home is the user's home directory, Dir the absolute directory that projects are looked for in.
	Home, Dir string
	// Getenv is as os.LookupEnv; nil has no variable.
	Getenv func(string) (string, bool)
}

func (p Place) env(name string) string {
	if p.Getenv == nil {
		return ""
	}
	value, _ := p.Getenv(name)
	return value
}

func (p Place) home(parts ...string) string {
	return filepath.Join(append([]string{p.Home}, parts...)...)
}

// config is a path below where programs of this system keep their settings.
func (p Place) config(parts ...string) string {
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
func (p Place) dotConfig(parts ...string) string {
	if p.OS == "darwin" {
		p.OS = "linux"
	}
	return p.config(parts...)
}

// below is a path below the directory that a variable names, else below the home directory.
func (p Place) below(variable, folder, file string) string {
	if dir := p.env(variable); dir != "" {
		return filepath.Join(dir, file)
	}
	return p.home(folder, file)
}

// Server is one server of a client's settings.
type Server struct {
	// Label is its name as it was written.
	Label string
	// Entry is the upstream that it becomes. Its name fits our rules; it may clash with another.
	Entry config.Entry
	// Secrets are the values that were taken out of Entry, by the variable that stands there now.
	Secrets config.Secrets
	// Notes say, a line each and without values, what was changed or not carried over.
	Notes []string
	// Skip says why it does not become an upstream, "" if it does.
	Skip string
	// Self says that it is Sallyport.
	Self bool

	at []string // the keys that lead to it in the file
}

// Self is how a client starts us.
type Self struct {
	// Command is the absolute path of our binary, Args are its arguments.
	Command string
	Args    []string
}

// OurName is the name of our entry in every client's settings.
const OurName = "sallyport"

// isSelf recognises us by the name of the program, also behind another one that starts it.
func isSelf(e config.Entry) bool {
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
