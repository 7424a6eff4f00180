package folder_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/plugin/folder"
)

// write writes the files of a plugin, and returns its folder.
func write(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, text := range files {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestManifestErrors(t *testing.T) {
	const head = "name: a\nversion: 1.0.0\n"
	for text, want := range map[string]string{
		"":                                    `plugin.yaml: is empty`,
		"name: a\ntools: [f]\n":               `plugin.yaml:1:1: the key "version" is missing`,
		"name: A\nversion: 1.0.0\n":           `plugin.yaml:1:7: "A" cannot name a plugin`,
		head:                                  `plugin.yaml:1:1: the plugin offers nothing`,
		head + "tols: [f]\n":                  `plugin.yaml:3:1: unknown key "tols"; did you mean "tools"?`,
		head + "tools: [f, f]\n":              `plugin.yaml:3:12: "f" is listed twice`,
		head + "tools: [_f]\n":                `plugin.yaml:3:9: "_f" is not the name of a function`,
		head + "tools: [f]\nread_only: [g]\n": `plugin.yaml:4:12: "g" is not in tools`,
		head + "hooks:\n  - {run: f}\n":       `plugin.yaml:4:5: a hook has one of "before" and "after"`,
		head + "hooks:\n  - {before: [crm], run: f}\n":                `plugin.yaml:4:15: "crm" is not a pattern of tools`,
		head + "hooks:\n  - {before: [], run: f}\n":                   `plugin.yaml:4:14: it needs from 1 to 64 patterns`,
		head + "hooks:\n  - {after: [a.*], run: f, on_failure: no}\n": `"on_failure"`,
		head + "recognizers:\n  - {kind: email, run: f}\n":            `plugin.yaml:4:12: "email" is a kind already`,
		head + "checks:\n  - {run: f, languages: [perl]}\n":           `cannot be "perl"`,
		head + "renderers:\n  - {run: f}\n":                           `the key "tools" is missing`,
		head + "tools: [f]\nhosts: [https://a.example]\n":             `is not a host`,
		head + "tools: [f]\nfiles: [../etc]\n":                        `is not the name that the file gets`,
		head + "tools: [f]\ntimeout: 1h\n":                            `plugin.yaml:4:10: timeout must be from 100ms to 10m0s`,
		head + "tools: [f]\nmemory: 8MiB\n":                           `plugin.yaml:4:9: memory must be from 64MiB to 2GiB`,
		head + "tools: &a [f]\nsteps: *a\n":                           `anchors are not supported`,
		head + "tools: [f]\ndescription: \"a\\nb\"\n":                 `description is one line`,
		head + "tools: [f]\nentry: run.sh\n":                          `"entry" cannot be "run.sh"`,
	} {
		if _, err := folder.ParseManifest("plugin.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte("name: a\nversion: 1.0.0\ntools: [f]\nhooks:\n  - {before: [a.*], run: f}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := folder.ParseManifest("plugin.yaml", data)
		if err == nil && (!folder.ValidName(m.Name) || len(m.Functions()) == 0) {
			t.Errorf("%q is accepted: %+v", data, m)
		}
	})
}

func TestReadRefuses(t *testing.T) {
	manifest := map[string]string{"plugin.yaml": "name: a\nversion: 1.0.0\ntools: [f]\n", "main.py": "def f(): pass\n"}
	dir := write(t, "a", manifest)
	if p, err := folder.Read(dir); err != nil || p.Entry != "main.py" {
		t.Fatalf("%+v, %v", p.Entry, err)
	}
	if _, err := folder.Read(write(t, "b", manifest)); err == nil || !strings.Contains(err.Error(), `the name is "a", but the folder is "b"`) {
		t.Errorf("another name: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Read(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a link: %v", err)
	}
	large := write(t, "a", map[string]string{"plugin.yaml": manifest["plugin.yaml"], "main.py": strings.Repeat("#", 5<<20)})
	if _, err := folder.Read(large); err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestLock(t *testing.T) {
	dir := write(t, "a", map[string]string{"plugin.yaml": "name: a\nversion: 1.0.0\nhooks:\n  - {before: [\"b.*\"], run: f}\n", "main.py": "", "sub/x y.txt": "1", ".hidden": "1", "__pycache__/x.pyc": "1"})
	p, err := folder.Read(dir)
	if err == nil {
		err = folder.Approve(p, "0123456789abcdef0123456789abcdef")
	}
	if err != nil {
		t.Fatal(err)
	}
	lock, err := folder.ReadLock(filepath.Dir(dir))
	r := lock["a"]
	if err != nil || len(r.Files) != 3 || !slices.Equal(r.Guards, []string{"b.*"}) || r.Offer != "0123456789abcdef0123456789abcdef" || len(p.Changes(r)) != 0 {
		t.Errorf("%+v, %v, %v", r, p.Changes(r), err)
	}
	p.Content["new.py"], p.Content["main.py"] = nil, []byte("1")
	delete(p.Content, "plugin.yaml")
	if got := p.Changes(r); !slices.Equal(got, []string{"main.py changed", "new.py is new", "plugin.yaml is gone"}) {
		t.Errorf("changes: %q", got)
	}
	if err := folder.Forget(filepath.Dir(dir), "a"); err != nil {
		t.Fatal(err)
	}
	if lock, err := folder.ReadLock(filepath.Dir(dir)); err != nil || len(lock) != 0 {
		t.Errorf("%+v, %v", lock, err)
	}
	for text, want := range map[string]string{
		"version 2\n":                    `line 1: "version 2" is not "version 1"`,
		"version 1\n<<<<<<< HEAD\n":      "line 2:",
		"version 1\na file main.py 00\n": "line 2:",
		"version 1\na guards b.*\n":      "line 2: a name must be in double quotes",
		"version 1\na offer 00\n":        "line 2:",
		"version 1\n../x file \"a\" 0123456789abcdef0123456789abcdef\n": "line 2:",
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(dir), folder.LockName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := folder.ReadLock(filepath.Dir(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
