package config

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	store "sallyport/internal/secret"
)

func TestParseEnv(t *testing.T) {
	for in, want := range map[string]map[string]string{
		"":          {},
		"\n# c\n ":  {},
		"A=1":       {"A": "1"},
		"A=\nB=2\n": {"A": "", "B": "2"},
		"export A='va'\\''lue'\r\n  B=\"x $Y \\\"q\\\" \\$ \\n\" # c\r\n": {"A": "va'lue", "B": "x $Y \"q\" $ \n"},
		"A=https://x/?a=b&c=${D}#e\nexport\tB=a#b":                        {"A": "https://x/?a=b&c=${D}#e", "B": "a#b"},
		"A='two\nlines'\nB=\"three\n4\"' 5'\n":                            {"A": "two\nlines", "B": "three\n4 5"},
		"\ufeffA='$(x) \\n'":                                              {"A": "$(x) \\n"},
		"exported=1\nA=x # c":                                             {"exported": "1", "A": "x"},
	} {
		got, err := ParseEnv([]byte(in))
		if diff := cmp.Diff(want, map[string]string(got)); err != nil || diff != "" {
			t.Errorf("%q: %v %s", in, err, diff)
		}
	}
}

func TestParseEnvRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"A=1\n\n" + secret + "\n":     "line 3: must be NAME=value, without a space around the =",
		"A = " + secret:               "line 1: must be NAME=value, without a space around the =",
		secret + "=1":                 "line 1: must be NAME=value, without a space around the =",
		"A=x " + secret:               "line 1: a value with a space must be in quotes",
		"A=1\nB='" + secret + "\nC=1": "line 2: a quote is not closed",
		"A='1\n2'\nB=\"" + secret:     "line 3: a quote is not closed",
		"A=C:\\" + secret:             `line 1: a "\" cannot stand here; put it into single quotes`,
		"A=\"\\" + secret + "\"":      `line 1: a "\" cannot stand here; use single quotes for a plain one`,
		"A=" + secret + "\nA=2":       "line 2: A is there already, on line 1",
		"A='\x00'":                    "line 1: the value has a NUL byte",
	} {
		if got, err := ParseEnv([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", in, got, err, want)
		}
	}
}

// What is written is read again, by us and by a shell.
func TestMergeEnv(t *testing.T) {
	vars := Secrets{"A": "it's $HOME `x` \\ \"q\" # ü", "B": "two\nlines\n", "C": ""}
	data, err := MergeEnv([]byte("# mine\nOLD=1"), vars)
	if err != nil || !strings.HasPrefix(string(data), "# mine\nOLD=1\nexport A='it'\\''s") {
		t.Fatalf("%s %v", data, err)
	}
	got, err := ParseEnv(data)
	want := Secrets{"OLD": "1", "A": vars["A"], "B": vars["B"], "C": ""}
	if diff := cmp.Diff(map[string]string(want), map[string]string(got)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	file := filepath.Join(t.TempDir(), "env")
	writePrivate(t, file, string(data))
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$0" && printf '%s|%s|%s' "$A" "$B" "$C"`, file).Output()
	if diff := cmp.Diff(vars["A"]+"|"+vars["B"]+"|", string(out)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if again, err := MergeEnv(data, vars); err != nil || string(again) != string(data) {
		t.Errorf("twice: %s %v", again, err)
	}
	if _, err := MergeEnv(data, Secrets{"A": secret}); err == nil || err.Error() != "A has another value there already" {
		t.Error(err)
	}
}

// FuzzParseEnv: whatever it takes it writes so that it takes it again, and errors show nothing.
func FuzzParseEnv(f *testing.F) {
	for _, seed := range []string{"A=1\n", "export A='va'\\''lue'\nB=\"x\\n\" # c", "A = b", "A='\n", "\ufeffA=\\ b\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := ParseEnv(data)
		if err != nil {
			e, ok := errors.AsType[*lineError](err)
			if !ok || e.line < 1 || e.line > strings.Count(string(data), "\n")+1 {
				t.Errorf("%v", err)
			}
			return
		}
		out, err := MergeEnv(nil, vars)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		again, err := ParseEnv(out)
		if diff := cmp.Diff(map[string]string(vars), map[string]string(again)); err != nil || diff != "" {
			t.Errorf("%q: %v %s", out, err, diff)
		}
	})
}

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

// Load itself reads a real file, if nobody else can.
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
