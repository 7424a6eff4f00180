package clients

import (
	"path/filepath"
	"slices"
	"time"
)

// format is the format of a file.
type format string

const (
	jsonFormat format = "JSON"
	tomlFormat format = "TOML"
	yamlFormat format = "YAML"
)

// Client is one program with MCP servers in its settings.
type Client struct {
	// Name is its name on the command line, Title its own name.
	Name, Title string

	format format
	// key is the top-level key of the servers.
	key string
	// timeoutUnit is the unit of the key timeout; 0: unknown.
	timeoutUnit time.Duration
	// bareVariables: $NAME is a variable, as ${NAME} is.
	bareVariables bool
	// noPlaceholders: the client expands no placeholders.
	noPlaceholders bool
	// urlTransport is what a url without a type means; "" is auto.
	urlTransport string
	// extra are members of our entry in addition to command and args.
	extra [][2]string
	// remote is the form of an entry with a URL.
	remote remoteForm
	user   func(System) string
	// project is relative to the project's directory; "" if there is no such file.
	project string
}

// All returns the known clients, sorted by name.
func All() []Client {
	return []Client{
		{Name: "claude-code", Title: "Claude Code", format: jsonFormat, key: "mcpServers", timeoutUnit: time.Millisecond,
			extra: [][2]string{{"type", "stdio"}}, remote: remoteForm{url: "url", kind: "http", variable: "${NAME}"}, project: ".mcp.json",
			user: func(p System) string { return p.inDirOf("CLAUDE_CONFIG_DIR", "", ".claude.json") }},
		{Name: "claude-desktop", Title: "Claude Desktop", format: jsonFormat, key: "mcpServers", noPlaceholders: true,
			user: func(p System) string { return p.config("Claude", "claude_desktop_config.json") }},
		{Name: "codex", Title: "Codex", format: tomlFormat, key: "mcp_servers", noPlaceholders: true, remote: remoteForm{url: "url"}, project: ".codex/config.toml",
			user: func(p System) string { return p.inDirOf("CODEX_HOME", ".codex", "config.toml") }},
		{Name: "cursor", Title: "Cursor", format: jsonFormat, key: "mcpServers", remote: remoteForm{url: "url", variable: "${env:NAME}"}, project: ".cursor/mcp.json",
			user: func(p System) string { return p.home(".cursor", "mcp.json") }},
		{Name: "gemini", Title: "Gemini CLI", format: jsonFormat, key: "mcpServers", timeoutUnit: time.Millisecond, bareVariables: true,
			urlTransport: "sse", remote: remoteForm{url: "httpUrl", variable: "$NAME"}, project: ".gemini/settings.json",
			user: func(p System) string { return p.home(".gemini", "settings.json") }},
		{Name: "goose", Title: "Goose", format: yamlFormat, key: "extensions", timeoutUnit: time.Second, bareVariables: true,
			remote: remoteForm{url: "uri", kind: "streamable_http", variable: "$NAME"},
			user:   func(p System) string { return gooseFile(p) }},
		{Name: "vscode", Title: "VS Code", format: jsonFormat, key: "servers", extra: [][2]string{{"type", "stdio"}},
			remote:  remoteForm{url: "url", kind: "http", variable: "${env:NAME}"},
			project: ".vscode/mcp.json", user: func(p System) string { return p.config("Code", "User", "mcp.json") }},
		{Name: "windsurf", Title: "Windsurf", format: jsonFormat, key: "mcpServers", remote: remoteForm{url: "serverUrl", variable: "${env:NAME}"},
			user: func(p System) string { return p.home(".codeium", "windsurf", "mcp_config.json") }},
		{Name: "zed", Title: "Zed", format: jsonFormat, key: "context_servers", timeoutUnit: time.Second, noPlaceholders: true,
			extra: [][2]string{{"source", "custom"}}, remote: remoteForm{url: "url"}, project: ".zed/settings.json",
			user: func(p System) string { return zedFile(p) }},
	}
}

func gooseFile(p System) string {
	if p.OS == "windows" {
		return p.config("Block", "goose", "config", "config.yaml")
	}
	return p.dotConfig("goose", "config.yaml")
}

func zedFile(p System) string {
	if p.OS == "windows" {
		return p.config("Zed", "settings.json")
	}
	return p.dotConfig("zed", "settings.json")
}

// Find returns the client with a name.
func Find(name string) (Client, bool) {
	all := All()
	at := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if at < 0 {
		return Client{}, false
	}
	return all[at], true
}

// UserFile returns the path of the user's own settings.
func (c Client) UserFile(p System) string { return c.user(p) }

// ProjectFile returns the path of the settings of the project in p.Dir, "" if the client has none.
func (c Client) ProjectFile(p System) string {
	if c.project == "" {
		return ""
	}
	return filepath.Join(p.Dir, filepath.FromSlash(c.project))
}

// projectDir returns the project that a file belongs to, "" if it is the user's.
func (c Client) projectDir(file string, p System) string {
	if c.project == "" || file == c.UserFile(p) {
		return ""
	}
	suffix := string(filepath.Separator) + filepath.FromSlash(c.project)
	if dir := file[:max(0, len(file)-len(suffix))]; dir+suffix == file {
		return dir
	}
	return ""
}

// Guess returns the client that a file belongs to, by its path or else by its keys.
// The format that several clients share counts as that of Claude Code.
func Guess(file string, data []byte, p System) (Client, bool) {
	for _, c := range All() {
		if file == c.UserFile(p) || c.projectDir(file, p) != "" {
			return c, true
		}
	}
	for _, name := range []string{"claude-code", "vscode", "zed", "codex", "goose"} {
		c, _ := Find(name)
		if sections, err := c.parse(data, p); err == nil && sections.found {
			return c, true
		}
	}
	return Client{}, false
}
