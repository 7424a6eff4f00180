package clients_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/clients"
)

// with is place with further files.
func with(files map[string]string) clients.System {
	p := place()
	p.ReadFile = func(file string) ([]byte, error) {
		if text, ok := files[file]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	return p
}

const (
	claudeUser     = "/home/ada/.claude.json"
	claudeProject  = "/work/shop/.mcp.json"
	claudeShared   = "/work/shop/.claude/settings.json"
	claudeLocal    = "/work/shop/.claude/settings.local.json"
	claudeSettings = "/home/ada/.claude/settings.json"
	claudeManaged  = "/etc/claude-code/managed-settings.json"
	geminiUser     = "/home/ada/.gemini/settings.json"
	geminiProject  = "/work/shop/.gemini/settings.json"
	geminiStates   = "/home/ada/.gemini/mcp-server-enablement.json"
	three          = `"mcpServers": {"a": {"command": "a"}, "b": {"url": "https://b.example.com/mcp"}, "my c": {"command": "c", "args": ["x"]}}`
)

// TestServersNotStarted: a server that its client does not start becomes a disabled
// upstream, wherever the client's settings say so.
func TestServersNotStarted(t *testing.T) {
	for _, test := range []struct {
		name, client, file, data string
		others                   map[string]string
		want                     string // the servers that are disabled
	}{
		{"nothing", "claude-code", claudeUser, `{` + three + `}`, nil, ""},
		{"disabled in this project", "claude-code", claudeUser, `{` + three + `, "projects": {"/work/shop": {"disabledMcpServers": ["a", "my_c"], "enabledMcpjsonServers": ["x"]}, "/work/other": {"disabledMcpServers": ["b"]}}}`, nil, "a, my c"},
		{"disabled everywhere", "claude-code", claudeUser, `{` + three + `, "disabledMcpServers": ["b"]}`, nil, "b"},
		{"a server of the project disabled", "claude-code", claudeUser, `{"projects": {"/work/shop": {` + three + `, "disabledMcpServers": ["b"]}}}`, nil, "b"},
		{"a list for .mcp.json only", "claude-code", claudeUser, `{` + three + `, "projects": {"/work/shop": {"disabledMcpjsonServers": ["a"]}}}`, nil, ""},
		{"rejected in ~/.claude.json", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeUser: `{"projects": {"/work/shop": {"disabledMcpjsonServers": ["a"], "enabledMcpjsonServers": [], "disabledMcpServers": ["b"]}}}`}, "a, b"},
		{"rejected in settings of the repository", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeShared: `{"disabledMcpjsonServers": ["a"]}`}, "a"},
		{"rejected, though all are approved", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"disabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": true}`}, "a"},
		{"rejected by the user", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeSettings: `{"disabledMcpjsonServers": ["b"]} // mine`}, "b"},
		{"some approved", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["a"]}`}, "b, my c"},
		{"approved in two files", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["a"]}`, claudeUser: `{"projects": {"/work/shop": {"enabledMcpjsonServers": ["b"]}}}`}, "my c"},
		{"all approved", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["a"]}`, claudeSettings: `{"enableAllProjectMcpServers": true}`}, ""},
		{"none approved", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enableAllProjectMcpServers": false}`}, "a, b, my c"},
		{"a repository cannot approve", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["a"]}`, claudeShared: `{"enableAllProjectMcpServers": true}`}, "b, my c"},
		{"a trusted repository can", "claude-code", claudeProject, `{` + three + `}`, map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["a"]}`, claudeShared: `{"enableAllProjectMcpServers": true}`, claudeUser: `{"projects": {"/work/shop": {"hasTrustDialogAccepted": true}}}`}, ""},
		{"denied by a rule", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeManaged: `{"deniedMcpServers": [{"serverUrl": "https://*.example.com/*"}, {"serverCommand": ["c", "x"]}]}`}, "b, my c"},
		{"denied by name", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeSettings: `{"deniedMcpServers": [{"serverName": "a"}, {"serverCommand": ["c"]}]}`}, "a"},
		{"allowed by names", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeSettings: `{"allowedMcpServers": [{"serverName": "a"}, {"serverName": "b"}]}`}, "my c"},
		{"allowed by commands", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeSettings: `{"allowedMcpServers": [{"serverName": "a"}, {"serverName": "b"}, {"serverCommand": ["c", "x"]}]}`}, "a"},
		{"allowed none", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeSettings: `{"allowedMcpServers": []}`}, "a, b, my c"},
		{"only managed rules", "claude-code", claudeUser, `{` + three + `}`, map[string]string{claudeManaged: `{"allowManagedMcpServersOnly": true}`, claudeSettings: `{"allowedMcpServers": []}`}, ""},
		{"a file of nobody", "claude-code", "/tmp/servers.json", `{` + three + `}`, map[string]string{claudeUser: `{"disabledMcpServers": ["a"]}`}, ""},

		{"nothing", "gemini", geminiUser, `{` + three + `}`, nil, ""},
		{"excluded", "gemini", geminiUser, `{"mcp": {"excluded": ["A "]}, ` + three + `}`, nil, "a"},
		{"allowed", "gemini", geminiUser, `{"mcp": {"allowed": ["b"]}, ` + three + `}`, nil, "a, my c"},
		{"allowed is empty", "gemini", geminiUser, `{"mcp": {"allowed": []}, ` + three + `}`, nil, ""},
		{"older names", "gemini", geminiUser, `{"allowMCPServers": ["a", "b"], "excludeMCPServers": ["b"], ` + three + `}`, nil, "b, my c"},
		{"turned off", "gemini", geminiUser, `{` + three + `}`, map[string]string{geminiStates: `{"a": {"enabled": false}, "b": {"enabled": true}}`}, "a"},
		{"the user's lists", "gemini", geminiProject, `{` + three + `}`, map[string]string{geminiUser: `{"mcp": {"allowed": ["a", "b"], "excluded": ["b"]}}`}, "b, my c"},
		{"the project's allow list", "gemini", geminiProject, `{"mcp": {"allowed": ["my c"]}, ` + three + `}`, map[string]string{geminiUser: `{"mcp": {"allowed": ["a"]}}`}, "a, b"},

		{"fields", "windsurf", "f", `{"mcpServers": {"a": {"command": "a", "disabled": true}, "b": {"command": "b"}}}`, nil, "a"},
		{"fields", "cursor", "f", `{"mcpServers": {"a": {"command": "a", "disabled": true}, "b": {"command": "b"}}}`, nil, "a"},
		{"fields", "zed", "f", `{"context_servers": {"a": {"command": "a", "enabled": false}, "b": {"command": "b", "enabled": true}}}`, nil, "a"},
		{"fields", "codex", "f", "[mcp_servers.a]\ncommand = \"a\"\nenabled = false\n[mcp_servers.b]\ncommand = \"b\"\n", nil, "a"},
		{"fields", "goose", "f", "extensions:\n  a: {type: stdio, cmd: a, enabled: false}\n  b: {type: stdio, cmd: b, enabled: true}\n", nil, "a"},
		{"no lists", "vscode", "f", `{"servers": {"a": {"command": "a"}}, "mcp": {"allowed": ["b"]}}`, nil, ""},
		{"no lists", "claude-desktop", "f", `{"mcpServers": {"a": {"command": "a"}}, "disabledMcpServers": ["a"]}`, nil, ""},
	} {
		servers, _, err := clients.NewReader(with(test.others)).Read(client(t, test.client), test.file, []byte(test.data))
		if err != nil {
			t.Fatal(err)
		}
		var off []string
		for _, s := range servers {
			if s.Entry.Disabled {
				off = append(off, s.Label)
			}
		}
		if got := strings.Join(off, ", "); got != test.want {
			t.Errorf("%s, %s: disabled are %q, want %q", test.client, test.name, got, test.want)
		}
	}
}

// TestPermit: after an installation the client starts sallyport, and with the replaced
// servers removed its allow lists have no name without a server.
func TestPermit(t *testing.T) {
	const servers = `"mcpServers": {"toy": {"command": "toy"}, "other": {"command": "other"}}`
	for _, test := range []struct{ client, before, want string }{
		{"gemini", `{"mcp": {"allowed": ["toy", "other"]}, ` + servers + `}`, `{"mcp": {"allowed": ["other", "sallyport"]}, `},
		{"gemini", `{"mcp": {"allowed": ["Toy"], "excluded": ["x", "sallyport"]}, ` + servers + `}`, `{"mcp": {"allowed": ["sallyport"], "excluded": ["x"]}, `},
		{"gemini", `{"mcp": {"allowed": []}, ` + servers + `}`, `{"mcp": {"allowed": []}, `},
		{"gemini", `{"allowMCPServers": ["toy"], "excludeMCPServers": ["Sallyport"], ` + servers + `}`, `{"allowMCPServers": ["sallyport"], "excludeMCPServers": [], `},
		{"gemini", "{\"mcp\": {\n  // mine\n  \"allowed\": [\n    \"toy\", // the toy\n    \"other\",\n  ],\n}, " + servers + "}", "{\"mcp\": {\n  // mine\n  \"allowed\": [\n    // the toy\n    \"other\",\n    \"sallyport\",\n  ],\n}, "},
		{"claude-code", `{"disabledMcpServers": ["sallyport"], "projects": {"/work/shop": {"disabledMcpServers": ["toy", "sallyport"]}, "/x": {"disabledMcpServers": ["sallyport"]}}, ` + servers + `}`,
			`{"disabledMcpServers": [], "projects": {"/work/shop": {"disabledMcpServers": ["toy"]}, "/x": {"disabledMcpServers": ["sallyport"]}}, `},
		{"zed", `{"agent": {"profiles": {"few": {"name": "Few", "enable_all_context_servers": false, "context_servers": {"toy": {"tools": {"a": true}}}}, "none": {"context_servers": {}}, "write": {"context_servers": {"toy": {}}}}}, ` + servers + `}`,
			`{"agent": {"profiles": {"few": {"name": "Few", "enable_all_context_servers": false, "context_servers": {"sallyport": {"tools": {"search_tools": true, "execute_code": true}}}}, "none": {"context_servers": {}}, "write": {"context_servers": {"toy": {}}}}}, `},
		{"cursor", `{"mcp": {"allowed": ["toy"]}, ` + servers + `}`, `{"mcp": {"allowed": ["toy"]}, `},
	} {
		c := client(t, test.client)
		key := "mcpServers"
		if test.client == "zed" {
			key = "context_servers"
		}
		data := []byte(strings.Replace(test.before, "mcpServers", key, 1))
		made := checkInstall(t, c, data)
		found, _, err := clients.NewReader(place()).Read(c, "f", data)
		if err != nil || made == nil {
			t.Fatalf("%v, %s", err, made)
		}
		for _, s := range found {
			if s.Label == "toy" {
				if made, err = c.Remove(made, s); err != nil {
					t.Fatal(err)
				}
			}
		}
		head := made[:bytes.LastIndex(made, []byte(`"`+key+`": {`))]
		if diff := cmp.Diff(test.want, string(head)); diff != "" {
			t.Errorf("%s: %s", test.client, diff)
		}
	}
}

// TestBlockedBy: what install cannot change is told.
func TestBlockedBy(t *testing.T) {
	for _, test := range []struct {
		client, file, data string
		others             map[string]string
		want               string
	}{
		{"claude-code", claudeUser, "", map[string]string{claudeSettings: `{"deniedMcpServers": [{"serverName": "sallyport"}]}`}, "deniedMcpServers in " + claudeSettings},
		{"claude-code", claudeUser, "", map[string]string{claudeManaged: `{"allowedMcpServers": [{"serverName": "x"}]}`}, "allowedMcpServers in " + claudeManaged},
		{"claude-code", claudeProject, "", map[string]string{claudeLocal: `{"disabledMcpjsonServers": ["sallyport"]}`}, "disabledMcpjsonServers in " + claudeLocal},
		{"claude-code", claudeProject, "", map[string]string{claudeLocal: `{"enabledMcpjsonServers": ["x"]}`}, ""},
		{"gemini", geminiUser, "", map[string]string{geminiStates: `{"sallyport": {"enabled": false}}`}, "enabled in " + geminiStates},
		{"gemini", geminiProject, "", map[string]string{geminiUser: `{"mcp": {"excluded": ["sallyport"]}}`}, "mcp.excluded in " + geminiUser},
		{"gemini", geminiUser, `{"mcp": {"allowed": ["x"], "excluded": ["sallyport"]}}`, nil, ""},
	} {
		c, p := client(t, test.client), with(test.others)
		made, err := c.Install([]byte(test.data), self(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.BlockedBy(p, test.file, made, self()); got != test.want {
			t.Errorf("%s: blocked by %q, want %q", test.client, got, test.want)
		}
	}
}
