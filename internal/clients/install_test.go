package clients_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/clients"
	"sallyport/internal/settingsfile"
	"sallyport/internal/testutil/golden"
)

func self() clients.Self {
	return clients.Self{Command: `/opt/sally port/bin/"sallyport"`, Args: []string{"serve", "--config", "/home/ada/.config/sallyport/upstreams.yaml"}}
}

// odd are files that are hard to edit; key is replaced by the client's own.
func odd() map[string]string {
	return map[string]string{
		"nothing": "", "blank": " \n", "empty": "{}", "empty with space": "{ }\n", "empty lines": "{\n}\n",
		"only another key":     "{\n\t\"a\": 1\n}\n",
		"no servers":           "{\n    \"KEY\": {},\n    \"z\": 1\n}\n",
		"null":                 "{\n  \"KEY\": null\n}\n",
		"on one line":          `{"KEY": {"x": {"command": "x"}}, "z": [1, 2]}`,
		"one line, comma":      `{"KEY": {"x": {"command": "x"},},}`,
		"comment in braces":    "{\n  \"KEY\": {\n    // none yet\n  }\n}\n",
		"comment at the end":   "{\n  \"KEY\": {\n    \"x\": {\"command\": \"x\"} // the last\n    // not this: \"y\": {}\n  } /* end */ // of all\n}\n",
		"trailing commas":      "// top\n{\n  \"KEY\": {\n    \"x\": {\"command\": \"x\"}, // the last\n  },\n}\n// bottom",
		"windows":              "{\r\n  \"KEY\": {\r\n    \"x\": {\"command\": \"x\"}\r\n  }\r\n}\r\n",
		"byte order mark":      "\ufeff{\n  \"KEY\": {}\n}\n",
		"escaped key":          "{\"KE\\u0059\": {\"x\": {\"command\": \"\\u0078\"}}, \"KEY\": {\n}}",
		"lists of Gemini":      "{\n  \"mcp\": {\"allowed\": [\"x\",], \"excluded\": [\"sallyport\", \"y\"]},\n  \"KEY\": {\"x\": {\"command\": \"x\"}}\n}\n",
		"lists of Claude Code": `{"disabledMcpServers": ["sallyport"], "projects": {"/work/shop": {"disabledMcpServers": [ "sallyport" /* x */, "x"]}}, "KEY": {}}`,
		"profiles of Zed":      `{"agent": {"profiles": {"p": {"context_servers": {"x": {"tools": {"a": true}}}}}}, "KEY": {"x": {"command": "x"}}}`,
		"numbers that are big": "{\"n\": 12345678901234567890.10, \"KEY\": {\n}}",
	}
}

// within reports whether all bytes of part stand in whole, in their order.
func within(part, whole []byte) bool {
	for _, b := range part {
		at := bytes.IndexByte(whole, b)
		if at < 0 {
			return false
		}
		whole = whole[at+1:]
	}
	return true
}

// checkInstall holds an installation to its promises: the client finds us and every server that it
// found before, all bytes are still there, twice is as good as once, and Remove takes it back.
func checkInstall(t *testing.T, c clients.Client, data []byte) []byte {
	t.Helper()
	made, err := c.Install(data, self(), place())
	if err != nil {
		return nil
	}
	if !within(bytes.TrimSpace(bytes.ReplaceAll(data, []byte("null"), nil)), made) && !bytes.Contains(data, []byte("{}")) && !bytes.Contains(bytes.ToLower(data), []byte(clients.OurName)) {
		t.Errorf("%s: bytes are lost from\n%s\nin\n%s", c.Name, data, made)
	}
	servers, _, err := clients.NewReader(place()).Read(c, "f", made)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", c.Name, err, made)
	}
	var us []clients.Server
	for _, s := range servers {
		if s.Label == clients.OurName {
			us = append(us, s)
		}
	}
	if len(us) != 1 || us[0].Entry.Command != self().Command && !us[0].Self {
		t.Fatalf("%s: we are not in\n%s", c.Name, made)
	}
	if again, err := c.Install(made, self(), place()); err != nil || !bytes.Equal(again, made) {
		t.Errorf("%s: %v, twice is\n%s\nafter\n%s", c.Name, err, again, made)
	}
	if by := c.BlockedBy(place(), c.UserFile(place()), made, self()); by != "" {
		t.Errorf("%s: blocked by %s in\n%s", c.Name, by, made)
	}
	if back, err := c.Remove(made, us...); err == nil && !within(bytes.ReplaceAll(back, []byte("{}"), nil), made) {
		t.Errorf("%s: removed, it is\n%s\nafter\n%s", c.Name, back, made)
	}
	return made
}

func TestInstallOddFiles(t *testing.T) {
	for _, c := range clients.All() {
		for name, text := range odd() {
			key := map[string]string{"vscode": "servers", "zed": "context_servers"}[c.Name]
			if key == "" {
				key = "mcpServers"
			}
			if c.Name == "codex" || c.Name == "goose" {
				continue
			}
			text = strings.ReplaceAll(text, "KEY", key)
			if name == "escaped key" && key == "mcpServers" {
				text = strings.ReplaceAll(text, "KE\\u0059", "other")
			}
			if checkInstall(t, c, []byte(text)) == nil {
				t.Errorf("%s, %s: not installed", c.Name, name)
			}
		}
	}
	codex, goose := client(t, "codex"), client(t, "goose")
	for _, text := range []string{"", "model = \"x\"", "[a]\nb = 1\r\n", "[mcp_servers.x]\ncommand = \"x\"\n# end", "[[t]]\nx = \"\"\"\n[mcp_servers.sallyport]\n\"\"\"\n"} {
		if checkInstall(t, codex, []byte(text)) == nil {
			t.Errorf("codex: not installed in %q", text)
		}
	}
	for _, text := range []string{"", "# mine\n", "a: 1", "extensions: {}\n", "extensions:\n    x:\n        type: builtin\n# end\nz: |\n  # x\n"} {
		if checkInstall(t, goose, []byte(text)) == nil {
			t.Errorf("goose: not installed in %q", text)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	for _, test := range []struct{ client, text, want string }{
		{"cursor", `{"mcpServers": []}`, "something else than servers"},
		{"cursor", `{"mcpServers": {}, "mcpServers": {}}`, "twice"},
		{"cursor", `{"mcpServers": {"sallyport": {"command": "other"}}}`, "not ours"},
		{"cursor", `{"S3cret": nul}`, "not JSON"},
		{"cursor", `["S3cret"]`, "not JSON"},
		{"codex", `mcp_servers = {}`, "edit it by hand"},
		{"codex", "S3cret", "not TOML"},
		{"goose", "extensions: {a: {type: builtin}}", "written in braces"},
		{"goose", "a: [S3cret", "not YAML"},
		{"cursor", strings.Repeat("[", 10_000_000), "too deep"},
	} {
		made, err := client(t, test.client).Install([]byte(test.text), self(), place())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%s %.40q: %v, %s", test.client, test.text, err, made)
		}
	}
}

// TestInstall shows the diff of an installation that replaces all that it can, for each client.
// It shows no secret.
func TestInstall(t *testing.T) {
	for file, data := range fixtures(t) {
		t.Run(stem(file), func(t *testing.T) {
			c := client(t, stem(file))
			made := checkInstall(t, c, bytes.ReplaceAll(data, []byte(`"sallyport": {"command": "/opt/bin/sallyport"`), []byte(`"sally": {"command": "/opt/bin/sallyport"`)))
			if made == nil {
				t.Fatal("not installed")
			}
			servers, _, err := clients.NewReader(place()).Read(c, c.UserFile(place()), data)
			if err != nil {
				t.Fatal(err)
			}
			f, err := settingsfile.Open(filepath.Join(t.TempDir(), "f"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := clients.Merge(f, []clients.Found{{Client: c, Servers: servers[:len(servers)-1]}}); err != nil {
				t.Fatal(err)
			}
			replaced, err := clients.FindReplaced(f, servers)
			if err != nil || len(replaced) == 0 {
				t.Fatalf("%v, replaces %v", err, replaced)
			}
			us := clients.Self{Command: "/opt/bin/sallyport", Args: []string{"serve", "--config", "/x/upstreams.yaml"}}
			with, err := c.Install(data, us, place())
			if err != nil {
				t.Fatal(err)
			}
			without, err := c.Remove(with, replaced...)
			if err != nil {
				t.Fatal(err)
			}
			diff := clients.Diff("settings", data, without, servers)
			if strings.Contains(diff, "S3cret") {
				t.Errorf("a secret shows:\n%s", diff)
			}
			golden.Check(t, "testdata/install/"+c.Name+".txt", diff+"---\n"+strings.ReplaceAll(string(without), "S3cret", "s3cret"))
		})
	}
}

func TestFiles(t *testing.T) {
	env := map[string]string{"APPDATA": `C:\Users\ada\AppData\Roaming`}
	var b strings.Builder
	for _, system := range []string{"linux", "darwin", "windows"} {
		p := clients.System{OS: system, Home: "/home/ada", Dir: "/work/shop", Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok && system == "windows" }}
		for _, c := range clients.All() {
			b.WriteString(system + " " + c.Title + ": " + c.UserFile(p) + " " + c.ProjectFile(p) + "\n")
		}
	}
	golden.Check(t, "testdata/files.txt", b.String())
}

// TestGuess finds the client of a file by what is in it.
func TestGuess(t *testing.T) {
	for file, data := range fixtures(t) {
		c, ok := clients.Guess("/tmp/x", data, place())
		want := stem(file)
		switch want {
		case "claude-desktop", "cursor", "windsurf", "gemini":
			want = "claude-code"
		}
		if !ok || c.Name != want {
			t.Errorf("%s is guessed to be of %q", file, c.Name)
		}
	}
	if c, ok := clients.Guess("/a/b/.gemini/settings.json", nil, place()); !ok || c.Name != "gemini" {
		t.Errorf("guessed %q", c.Name)
	}
	if c, ok := clients.Guess("/a/package.json", []byte(`{"name": "x"}`), place()); ok {
		t.Errorf("guessed %q", c.Name)
	}
}

func TestDeepFiles(t *testing.T) {
	for _, c := range clients.All() {
		for _, piece := range []string{"[", "{\"a\":", "a=['[',", "a = [\"]\",", "[\"]\",", "- ", "a:\n ", "/*", "{a = [\"}}\", "} {
			text := strings.Repeat(piece, (1<<17)/len(piece))
			for _, start := range []string{"", "a = "} {
				_, _, _ = clients.NewReader(place()).Read(c, "f", []byte(start+text)) // ends, without a stack that overflows
			}
		}
	}
}

func fuzzFormat(f *testing.F, names ...string) {
	f.Helper()
	for file, data := range fixtures(f) {
		for _, name := range names {
			if stem(file) == name {
				f.Add(data)
			}
		}
	}
	for _, text := range odd() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip("larger than it needs to be")
		}
		for _, name := range names {
			checkRead(t, client(t, name), data)
		}
	})
}

// checkRead: whatever a file says, what is made of it loads, and all that is removed is what was to be removed.
func checkRead(t *testing.T, c clients.Client, data []byte) {
	t.Helper()
	servers, _, err := clients.NewReader(place()).Read(c, "f", data)
	if err != nil {
		return
	}
	f, err := settingsfile.Open(filepath.Join(os.TempDir(), "there-is-no-such-file"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := clients.Merge(f, []clients.Found{{Client: c, Servers: servers}})
	if err != nil || len(rows) != len(servers) {
		t.Fatalf("%v, %d rows of %d", err, len(rows), len(servers))
	}
	for _, row := range rows {
		for name, value := range row.Secrets {
			if len(value) > 8 && !strings.Contains(name, value) && row.Outcome == clients.Added && strings.Contains(strings.Join(row.Entry.Texts(), "\n"), "="+value) {
				t.Errorf("the secret %q is in %q", value, row.Entry.Texts())
			}
		}
	}
	checkInstall(t, c, data)
	if made, err := c.Remove(data, servers...); err == nil && !within(made, data) && len(servers) > 0 && c.Name != "goose" {
		t.Errorf("removing all of\n%s\nleft\n%s", data, made)
	}
}

func FuzzJSON(f *testing.F) {
	fuzzFormat(f, "claude-code", "vscode", "zed", "gemini", "cursor", "windsurf", "claude-desktop")
}

func FuzzTOML(f *testing.F) { fuzzFormat(f, "codex") }

func FuzzYAML(f *testing.F) { fuzzFormat(f, "goose") }
