package settingsfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everything is an entry that has all keys, with texts that are hard to write down.
func everything() []Entry {
	return []Entry{
		{Name: "a", Description: "tools: \"all\" # of them", Command: "${BIN:-x}", Args: []string{"-y", "yes", "1", "", "two\nlines", "- a", "$${X}", "é\u2028"},
			Env: Values{"A": "no", "B_C": "0x1F", "D": "~", "E": "2026-11-21"}, Dir: "/x y",
			Isolate: &EntryIsolation{Hosts: []EntryHost{{Name: "api.test"}, {Name: "yes.test:8443", Header: Values{"Authorization": "Bearer ${EDGE}"}}}, PrivateHosts: []EntryHost{{Name: "in.test"}}}, Include: []string{"get_*"}, Exclude: []string{`rm\*`}, Timeout: "1m30s", Disabled: true},
		{Name: "B-2", URL: "https://${HOST}/mcp", Headers: Values{"X-Token": "${TOKEN}", "X": "${file:secret}${keyring:x}"}, Socket: "/run/x.sock", Transport: "sse",
			Auth: &EntryAuth{Type: "oauth", ClientID: "id", ClientSecret: "${S}", Scopes: []string{"a:b", "*"}, RedirectPort: 8123}},
	}
}

func TestEditFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "upstreams.yaml")
	f, err := Open(path, env)
	if err != nil || f.Changed() {
		t.Fatal(err)
	}
	for _, e := range everything() {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Save(); err != nil || f.Changed() {
		t.Fatal(err)
	}
	f, err = Open(path, env)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := f.Entries()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everything(), entries, cmp.AllowUnexported(EntryIsolation{})); diff != "" {
		t.Errorf("-want +got:\n%s\nin\n%s", diff, f.Data)
	}
	if !slices.Contains(entries[0].Texts(), "Bearer ${EDGE}") {
		t.Error("the texts lack the header of a host")
	}
	before := string(f.Data)
	for _, bad := range []Entry{{Name: "a", Command: "x"}, {Name: "B_2", Command: "x"}, {Name: "c"}, {Name: "ü", Command: "x"}, {Name: "c", Command: "x", Args: []string{"${"}},
		{Name: "c", Command: "x", Timeout: "soon"}, {Name: "c", URL: "ftp://x"}, {Name: "c", Command: "a\x00b"}} {
		if err := f.Add(bad); err == nil || string(f.Data) != before {
			t.Errorf("%v was added: %v", bad, err)
		}
	}
	if err := f.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("upstreams: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(); err == nil || !strings.Contains(err.Error(), "changed by someone else") {
		t.Errorf("saved over another edit: %v", err)
	}
}

// The file at the root of the project is edited as anyone's.
func TestEditOurOwn(t *testing.T) {
	data, err := os.ReadFile("../../upstreams.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &File{Path: "upstreams.yaml", Data: data, getenv: env}
	if err := f.Add(Entry{Name: "new", Command: "x"}); err != nil {
		t.Fatal(err)
	}
	with := string(f.Data)
	if err := f.Remove("new"); err != nil || string(f.Data) != string(data) {
		t.Errorf("%v, it came back as\n%s\nfrom\n%s", err, f.Data, with)
	}
	if err := f.Remove("memory"); err != nil || strings.Contains(string(f.Data), "server-memory") {
		t.Errorf("%v:\n%s", err, f.Data)
	}
}

// TestEditSecretsElsewhere: secrets whose values have rules may be references, whose values are not read for an edit.
func TestEditSecretsElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	settings := "upstreams: {}\nhttp: {tokens: {laptop: \"${keyring:laptop}\", ci: \"${CI_TOKEN}\"}}\nworkflows: {secrets: {builds: \"${BUILDS_SECRET}\"}}\n"
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(Entry{Name: "a", Command: "x"}); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"http: {tokens: {laptop: short}}\n", "http: {tokens: {\"\": \"${X}\"}}\n", "workflows: {secrets: {builds: short}}\n"} {
		if err := os.WriteFile(path, []byte("upstreams: {}\n"+wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, nil); err == nil {
			t.Errorf("no error for %s", wrong)
		}
	}
}

// TestSchemaComment keeps the comment that names a schema for editors: first in the file, whatever is edited.
func TestSchemaComment(t *testing.T) {
	const comment = "# yaml-language-server: $schema=upstreams.schema.json\n"
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	if err := os.WriteFile(path, []byte(comment+"upstreams:\n  x: {command: y}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, env)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetEnvFile("secrets.env"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(f.Data), comment+"env_file: ") {
		t.Errorf("the comment is not first:\n%s", f.Data)
	}
}

func env(name string) (string, bool) {
	value, ok := map[string]string{"SECRET": "s3cret", "EMPTY": "", "NEWLINE": "\n", "HOME": "/home/me", "REF": "${SECRET} $$ $SECRET"}[name]
	return value, ok
}
