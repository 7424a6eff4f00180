package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	store "sallyport/internal/secret"
)

func TestEnvFile(t *testing.T) {
	c, err := sources.Parse("/etc/s/upstreams.yaml", []byte(`
upstreams: {a: {command: x, args: ["${FROM_FILE}", "${SECRET}", "${EMPTY:-d}"]}}
env_file: good.env
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{secret, secret, "d"}, c.Upstreams[0].Args); diff != "" {
		t.Error(diff)
	}
	if c.EnvFile != "/etc/s/good.env" || !cmp.Equal(c.Files, []string{"/etc/s/good.env"}) {
		t.Errorf("%s %v", c.EnvFile, c.Files)
	}
}

// Load reads a real file if other users cannot.
func TestLoadReadsEnvFile(t *testing.T) {
	dir := t.TempDir()
	file, vars := filepath.Join(dir, "upstreams.yaml"), filepath.Join(dir, "s.env")
	write(t, file, "env_file: s.env\nupstreams: {a: {command: x, args: ['${TOKEN}']}}")
	writePrivate(t, vars, "TOKEN="+secret)
	for mode, want := range map[os.FileMode]string{0o600: "", 0o400: "", 0o644: ":1:11: others can read " + vars + "; run: chmod 600 " + vars, 0o620: "chmod 600"} {
		if err := os.Chmod(vars, mode); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, nil)
		if want == "" && (err != nil || c.Upstreams[0].Args[0] != secret) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

func writePrivate(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A reference without a value is the fault of its upstream, or of serving HTTP, alone.
func TestMissingReferencesStayWhereTheyAre(t *testing.T) {
	c, err := sources.Parse("upstreams.yaml", []byte(`upstreams:
  a: {url: "https://${UNSET}/${UNSET}", headers: {A: "${keyring:nobody}"}, transport: "${UNSET}", timeout: 90s}
  b: {command: x}
http:
  tokens: {ci: "${UNSET_TOKEN}", ok: "${SECRET}-0"}
`))
	if err != nil {
		t.Fatal(err)
	}
	a := c.Upstreams[0]
	if want := `the variable UNSET is not set; the keyring has no "nobody"`; a.Problem != want || a.Transport != "auto" || c.Upstreams[1].Problem != "" {
		t.Errorf("%q %v", a.Problem, a)
	}
	want := `upstreams.yaml:5:17: the variable UNSET_TOKEN is not set (http); set it, or give a default: ${UNSET_TOKEN:-...}
  5 |   tokens: {ci: "${UNSET_TOKEN}", ok: "${SECRET}-0"}
                      ^`
	if diff := cmp.Diff(want, c.HTTP.Problem); diff != "" {
		t.Error(diff)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(c.HTTP.Tokens); got != "[ok]" {
		t.Errorf("tokens %s: one whose value is the text of a reference could be guessed", got)
	}
}

// The keyring may take seconds to say that it is not there.
func TestNoKeyringIsAskedOnce(t *testing.T) {
	asked := 0
	s := Sources{Keyring: func(string) (string, error) { asked++; return "", fmt.Errorf("read: %w", store.ErrNoKeyring) }}
	c, err := s.Parse("f", []byte(`upstreams: {a: {command: x, args: ["${keyring:a}", "${keyring:b}"]}, b: {command: x, args: ["${keyring:c}"]}}`))
	if err != nil || asked != 1 || c.Upstreams[0].Problem == "" || c.Upstreams[1].Problem == "" {
		t.Errorf("asked %d times; %v", asked, err)
	}
}
