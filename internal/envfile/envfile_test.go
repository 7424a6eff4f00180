package envfile_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/envfile"
)

const secret = "hunter2-secret"

func TestParse(t *testing.T) {
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
		got, err := envfile.Parse([]byte(in))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", in, err, diff)
		}
	}
}

func TestInvalid(t *testing.T) {
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
		if got, err := envfile.Parse([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", in, got, err, want)
		}
	}
}

// What is written is read again, by us and by a shell.
func TestMerge(t *testing.T) {
	vars := map[string]string{"A": "it's $HOME `x` \\ \"q\" # ü", "B": "two\nlines\n", "C": ""}
	data, err := envfile.Merge([]byte("# mine\nOLD=1"), vars)
	if err != nil || !strings.HasPrefix(string(data), "# mine\nOLD=1\nexport A='it'\\''s") {
		t.Fatalf("%s %v", data, err)
	}
	got, err := envfile.Parse(data)
	want := map[string]string{"OLD": "1", "A": vars["A"], "B": vars["B"], "C": ""}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$0" && printf '%s|%s|%s' "$A" "$B" "$C"`, file).Output()
	if diff := cmp.Diff(vars["A"]+"|"+vars["B"]+"|", string(out)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if again, err := envfile.Merge(data, vars); err != nil || string(again) != string(data) {
		t.Errorf("twice: %s %v", again, err)
	}
	if _, err := envfile.Merge(data, map[string]string{"A": secret}); err == nil || err.Error() != "A has another value there already" {
		t.Error(err)
	}
}

// FuzzParse: whatever it takes it writes so that it takes it again, and errors show nothing.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"A=1\n", "export A='va'\\''lue'\nB=\"x\\n\" # c", "A = b", "A='\n", "\ufeffA=\\ b\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := envfile.Parse(data)
		if err != nil {
			e, ok := errors.AsType[*envfile.LineError](err)
			if !ok || e.Line < 1 || e.Line > strings.Count(string(data), "\n")+1 {
				t.Errorf("%v", err)
			}
			return
		}
		out, err := envfile.Merge(nil, vars)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		again, err := envfile.Parse(out)
		if diff := cmp.Diff(vars, again); err != nil || diff != "" {
			t.Errorf("%q: %v %s", out, err, diff)
		}
	})
}
