package settingsfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Chdir(work)
	vars := map[string]string{"HOME": home}
	find := func(explicit string) string {
		path, err := Find(explicit, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v is not fs.ErrNotExist", err)
			}
			return err.Error()
		}
		return path
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	inHome := filepath.Join(home, ".config/sallyport/upstreams.yaml")
	expect(find(""), "no settings yet: run sallyport init (looked for upstreams.yaml and "+inHome+"; --config names another file)")
	writeFile(t, inHome, "")
	expect(find(""), inHome)
	vars["XDG_CONFIG_HOME"] = "relative/is/ignored"
	expect(find(""), inHome)
	inXDG := filepath.Join(home, "xdg/sallyport/upstreams.yaml")
	vars["XDG_CONFIG_HOME"] = filepath.Join(home, "xdg")
	writeFile(t, inXDG, "")
	expect(find(""), inXDG)
	writeFile(t, "upstreams.yaml", "")
	expect(find(""), "upstreams.yaml")
	vars["SALLYPORT_CONFIG"] = "named.yaml"
	expect(find(""), "no settings: named.yaml, named by $SALLYPORT_CONFIG, does not exist; correct the path, or run sallyport init --config named.yaml")
	writeFile(t, "named.yaml", "")
	expect(find(""), "named.yaml")
	expect(find("flag.yaml"), "no settings: flag.yaml, named by --config, does not exist; correct the path, or run sallyport init --config flag.yaml")
	writeFile(t, "flag.yaml", "")
	expect(find("flag.yaml"), "flag.yaml")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
