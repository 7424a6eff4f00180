package examplecmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/examples"
	"sallyport/internal/walkthrough"
)

func newApp(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cache := t.TempDir()
	env := func(name string) (string, bool) {
		if name == "XDG_CACHE_HOME" {
			return cache, true
		}
		return os.LookupEnv(name)
	}
	return &app{&cli.App{Env: env, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}}, &out
}

func example(t *testing.T, steps ...walkthrough.Step) []examples.Example {
	t.Helper()
	chosen, err := choose([]string{"1"})
	if err != nil {
		t.Fatal(err)
	}
	chosen[0].Steps = steps
	return chosen
}

// TestWrong: an example that prints something else, fails, or does not fail as its page says is reported, and leaves nothing.
func TestWrong(t *testing.T) {
	for name, step := range map[string]walkthrough.Step{
		"other text": {Commands: "echo no\n", Prints: "yes\n", Compared: true},
		"fails":      {Commands: "echo yes\nfalse\n", Prints: "yes\n", Compared: true},
		"succeeds":   {Commands: "echo yes\n", Prints: "yes\n", Compared: true, Fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			a, out := newApp(t)
			err := a.runAll(t.Context(), example(t, step))
			if err == nil || !strings.Contains(out.String(), "NOT AS EXPECTED") || !strings.Contains(out.String(), "it should print:\nyes") {
				t.Errorf("%v\n%s", err, out)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if left, _ := filepath.Glob(filepath.Join(a.CacheDir(), "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
	a, out := newApp(t)
	if err := a.runAll(t.Context(), example(t, walkthrough.Step{Commands: "cat main.py | head -n 1\nfalse\n", Prints: "from ...\n", Compared: true, Fails: true})); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCopy: the files of an example are written to a new folder only.
func TestCopy(t *testing.T) {
	t.Chdir(t.TempDir())
	a, _ := newApp(t)
	for i, args := range [][]string{{"12"}, {"12"}, {"12", "mine"}} {
		cmd := a.copyCommand()
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); (err != nil) != (i == 1) {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, dir := range []string{"12-custom-workflow-and-plugin", "mine"} {
		if _, err := os.Stat(filepath.Join(dir, "workflows", "triage.yaml")); err != nil {
			t.Error(err)
		}
	}
	if _, err := choose([]string{"16"}); err == nil {
		t.Error("there is an example 16")
	}
}
