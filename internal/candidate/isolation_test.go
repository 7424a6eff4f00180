package candidate_test

import (
	"strings"
	"testing"

	"sallyport/internal/candidate"
	"sallyport/internal/settingsfile"
)

// TestIsolation isolates servers whose needs are known, and no server that may need more.
func TestIsolation(t *testing.T) {
	npx := func(args ...string) settingsfile.Entry {
		return settingsfile.Entry{Name: "x", Command: "npx", Args: append([]string{"-y"}, args...)}
	}
	with := func(e settingsfile.Entry, env settingsfile.Values) settingsfile.Entry {
		e.Env = env
		return e
	}
	in := func(e settingsfile.Entry, dir string) settingsfile.Entry {
		e.Dir = dir
		return e
	}
	const files, thinking = "@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-sequential-thinking"
	for name, c := range map[string]struct {
		entry settingsfile.Entry
		want  string // what it reaches, or the reason
	}{
		"no needs":               {npx(thinking), "isolated"},
		"any version":            {npx(thinking + "@latest"), "isolated"},
		"a path of npx":          {settingsfile.Entry{Command: "/usr/bin/npx", Args: []string{"--yes", thinking}}, "isolated"},
		"folders":                {npx(files, "/srv/a/", "/srv/b", "/srv/a"), "isolated, /srv/a rw, /srv/b rw"},
		"a host and a secret":    {with(npx("@notionhq/notion-mcp-server"), settingsfile.Values{"NOTION_TOKEN": "${NOTION_TOKEN}"}), "isolated, api.notion.com"},
		"a relative folder":      {npx(files, "docs"), "its folder docs is not an absolute path"},
		"a folder by a variable": {npx(files, "${DOCS}"), "its folder ${DOCS} is not an absolute path"},
		"an escaped dollar":      {npx(files, "/srv/$$a"), "isolated, /srv/$$a rw"},
		"an unknown argument":    {npx(thinking, "--file=/etc/passwd"), "its argument --file is not known"},
		"an unknown variable":    {with(npx(thinking), settingsfile.Values{"LOG": "x"}), "its variable LOG is not known"},
		"a reserved variable":    {with(npx(thinking), settingsfile.Values{"NODE_OPTIONS": "--require=/x.js"}), "its variable NODE_OPTIONS is not known"},
		"a path as argument":     {npx(thinking, "~/notes"), "it uses the path ~/notes"},
		"a URL as argument":      {npx(thinking, "http://127.0.0.1:8080/x"), "it reaches 127.0.0.1:8080"},
		"files beside it":        {npx("@modelcontextprotocol/server-memory"), "it does not set the variable MEMORY_FILE_PATH"},
		"files of the user":      {with(npx("@modelcontextprotocol/server-memory"), settingsfile.Values{"MEMORY_FILE_PATH": "/home/a/m.json"}), "it uses the path /home/a/m.json"},
		"a working directory":    {in(npx(thinking), "/srv"), "isolated"},
		"hosts of its user":      {npx("chrome-devtools-mcp"), "what it needs is not known"},
		"an unknown package":     {npx("@acme/server"), "what it needs is not known"},
		"a package of a folder":  {npx("./server"), "what it needs is not known"},
		"another way of npx":     {npx("-p", "a", "b"), "what it needs is not known"},
		"no package":             {settingsfile.Entry{Command: "node", Args: []string{"/srv/x.js"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := candidate.Isolation(c.entry, func(string) string { return "" })
			if got != nil {
				reason = isolationText(got)
			}
			if reason != c.want {
				t.Errorf("%s, want %s", reason, c.want)
			}
		})
	}
	got, _ := candidate.Isolation(npx(thinking), func(kind string) string { return "https://" + kind + ".example" })
	if got == nil || got.Registry != "https://npm.example" {
		t.Errorf("%+v, want the registry of the environment", got)
	}
}

func isolationText(i *settingsfile.EntryIsolation) string {
	all := append([]string{"isolated"}, i.HostNames()...)
	for _, m := range i.Mounts {
		all = append(all, m.Path+" "+m.Mode)
	}
	return strings.Join(all, ", ")
}
