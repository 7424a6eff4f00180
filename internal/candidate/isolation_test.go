package candidate_test

import (
	"io/fs"
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
	run := func(line string) settingsfile.Entry {
		words := strings.Fields(line)
		return settingsfile.Entry{Command: words[0], Args: words[1:]}
	}
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
		"a folder of the home":   {npx(files, "${HOME}/docs"), "isolated, ${HOME}/docs rw"},
		"a folder of the system": {npx(files, "/tmp"), `"/tmp" cannot be mounted: the sandbox has other files there; mount a folder below /home, /opt, /srv or /var`},
		"an escaped dollar":      {npx(files, "/srv/$$a"), "isolated, /srv/$$a rw"},
		"an unknown argument":    {npx(thinking, "--file=/home/a/f"), "isolated, open, /home/a/f "},
		"an unknown variable":    {with(npx(thinking), settingsfile.Values{"LOG": "x"}), "isolated, open"},
		"a path as argument":     {npx(thinking, "~/notes"), "it uses the path ~/notes"},
		"a URL as argument":      {npx(thinking, "http://127.0.0.1:8080/x"), "it reaches 127.0.0.1:8080"},
		"files beside it":        {npx("@modelcontextprotocol/server-memory"), "it does not set the variable MEMORY_FILE_PATH"},
		"files of the user":      {with(npx("@modelcontextprotocol/server-memory"), settingsfile.Values{"MEMORY_FILE_PATH": "/home/a/m.json"}), "it uses the path /home/a/m.json"},
		"a working directory":    {in(npx(thinking), "/srv"), "isolated"},
		"hosts of its user":      {npx("n8n-mcp"), "isolated, open"},
		"a browser":              {npx("chrome-devtools-mcp"), "it starts a browser of this machine"},
		"a bridge":               {npx("mcp-remote", "https://x.example.com/mcp"), "it logs in with a browser of this machine; sallyport add URL needs no process"},

		"an unknown package":      {npx("@acme/server"), "isolated, open"},
		"its folders":             {npx("@acme/server", "/srv/a", "--db=/home/a/f", "/missing", "/srv/a/../a"), "isolated, open, /srv/a , /home/a/f "},
		"its reserved paths":      {npx("@acme/server", "/etc"), "it uses the path /etc"},
		"paths of each sandbox":   {npx("@acme/server", "/usr/bin/git", "/dev/null"), "isolated, open"},
		"a socket":                {npx("@acme/server", "/srv/s"), "it uses the path /srv/s"},
		"a file in /tmp":          {npx("@acme/server", "/tmp/f"), "it uses the path /tmp/f"},
		"its variables":           {with(npx("@acme/server"), settingsfile.Values{"KEY_FILE": "${HOME}/docs", "API": "https://u:p@API.example.com/v1?x", "DB": "postgres://u:${PW}@db.internal/x", "PATH": "/srv/a"}), "isolated, open, api.example.com, db.internal:5432, ${HOME}/docs "},
		"this machine":            {with(npx("@acme/server"), settingsfile.Values{"API": "http://localhost:1234"}), "it reaches localhost:1234 (API)"},
		"the working directory":   {in(npx("@acme/server", "./x"), "/srv/a"), "isolated, open, /srv/a "},
		"above it":                {in(npx("@acme/server", "../x"), "/srv/a"), "it uses the path ../x"},
		"no working directory":    {npx("@acme/server", "."), "it uses the path ."},
		"a package of a folder":   {npx("./server"), "./server is no package of a registry"},
		"a repository":            {run("uvx --from git+https://github.com/a/b b"), "git+https://github.com/a/b is no package of a registry"},
		"another repository":      {npx("a@github:a/b"), "a@github:a/b is no package of a registry"},
		"with a repository":       {run("uvx --with ./x b"), "./x is no package of a registry"},
		"an option of npx":        {npx("-c", "b"), `isolate does not know the option "-c" of npx; before the package it knows -y, --yes, -q, --quiet, --bun, --prefer-offline, -p, --package`},
		"a program of a package":  {npx("-p", "a@1", "b"), "isolated, open"},
		"other runners":           {run("pnpm dlx a /srv/a"), "isolated, open, /srv/a "},
		"npm":                     {run("npm exec -y -- a@^1 /srv/a"), "isolated, open, /srv/a "},
		"pipx":                    {run("pipx run a==1.2 /srv/a"), "isolated, open, /srv/a "},
		"a known one of pipx":     {run("pipx run mcp-server-time"), "isolated"},
		"extras and conditions":   {run("uvx --from a[b,c]>=1.2,<2 a"), "isolated, open"},
		"a program of the user":   {settingsfile.Entry{Command: "node", Args: []string{"/srv/x.js"}}, ""},
		"a script of a package":   {run("npm run start"), ""},
		"an image":                {run("docker run -i --rm mcp/clock /etc --url=https://a.example.com"), "isolated mcp/clock, open, a.example.com"},
		"an image of this place":  {run("docker run -i mcp/clock http://localhost:1"), "it reaches localhost:1"},
		"an image with a network": {run("docker run --network=host mcp/clock"), "it has the option --network of docker run: a server has the network of isolate.hosts only"},
	} {
		t.Run(name, func(t *testing.T) {
			got := machine.Isolate(c.entry)
			text := got.Reason
			if got.Entry.Isolate != nil {
				text = isolationText(got)
			} else if !got.Entry.Same(c.entry) {
				t.Errorf("it became %+v", got.Entry)
			}
			if text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
	other := machine
	other.Index = func(kind string) string { return "https://" + kind + ".example" }
	if got := other.Isolate(npx(thinking)).Entry.Isolate; got == nil || got.Registry != "https://npm.example" {
		t.Errorf("%+v, want the registry of the environment", got)
	}
}

// machine has a home and some files.
var machine = candidate.Machine{
	Index:  func(string) string { return "" },
	Getenv: func(name string) (string, bool) { return "/home/a", name == "HOME" },
	Stat: func(path string) (mode fs.FileMode, ok bool) {
		mode, ok = map[string]fs.FileMode{"/srv/a": fs.ModeDir, "/home/a/docs": fs.ModeDir, "/home/a/f": 0, "/etc": fs.ModeDir, "/tmp/f": 0, "/srv/s": fs.ModeSocket}[path]
		return mode, ok
	},
}

func isolationText(got candidate.Isolated) string {
	i := got.Entry.Isolate
	all := []string{strings.TrimSpace("isolated " + i.Image)}
	if got.Open {
		all = append(all, "open")
	}
	all = append(all, i.HostNames()...)
	for _, host := range i.PrivateHosts {
		all = append(all, host.Name)
	}
	for _, m := range i.Mounts {
		all = append(all, m.Path+" "+m.Mode)
	}
	return strings.Join(all, ", ")
}
