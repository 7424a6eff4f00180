package suite

import (
	"path/filepath"

	"sallyport/tools/upstreams"
)

// Servers are the upstreams of the tasks. They are started in [World.Dir], and reach nothing outside of it.
func (w *World) Servers() []Server {
	list := []Server{
		{Name: "everything", Description: "test server with one tool of every kind", Package: "@modelcontextprotocol/server-everything", Args: []string{"dist/index.js", "stdio"}},
		{Name: "filesystem", Description: "read, write and search the files of one folder", Package: "@modelcontextprotocol/server-filesystem", Args: []string{"dist/index.js", w.Files()}},
		{Name: "memory", Description: "a knowledge graph of people and services", Package: "@modelcontextprotocol/server-memory", Args: []string{"dist/index.js"}, Env: map[string]string{"MEMORY_FILE_PATH": w.Memory()}},
		{Name: "sqlite", Description: "the shop's database", Package: "mcp-server-sqlite", Args: []string{"dist/cli.js"}, Env: map[string]string{"SQLITE_DB_PATH": w.Database()}},
		{Name: "git", Description: "git repositories", Package: "@cyanheads/git-mcp-server", Args: []string{"dist/index.js"}, Env: map[string]string{
			"GIT_BASE_DIR": w.Files(), "MCP_LOG_LEVEL": "fatal", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
		}},
	}
	for i := range list {
		s := &list[i]
		s.Command, s.Version = "node", upstreams.Versions()[s.Package]
		s.Args[0] = filepath.Join(w.Modules, filepath.FromSlash(s.Package), s.Args[0])
	}
	return list
}
