package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// TestFollowLogs: lines of an upstream's stderr are shown when they are complete, each once, also those of the next process.
// No secret is in them, even if it is written in two parts.
func TestFollowLogs(t *testing.T) {
	t.Parallel()
	dir := testutil.ShortDir(t)
	writeText(t, filepath.Join(dir, "upstreams.yaml"), `upstreams:
  toy:
    command: sh
    args: [-c, "sh chatter.sh & exec toyserver alpha"]
    env: {KEY: hunter2-hunter2}
    cwd: .
    eager: true
`)
	writeText(t, filepath.Join(dir, "chatter.sh"), `printf 'tick\ntick\nhunter2-\n' >&2
until [ -e one ]; do sleep .02; done
printf 'tick\ntick\nhalf' >&2
until [ -e two ]; do sleep .02; done
printf ' hunter2-hunter2 whole\n' >&2
`)
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+dir)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sallyport", args...)
		cmd.Dir, cmd.Env = dir, env
		return cmd
	}
	serve := command("serve", "--http", "127.0.0.1:0")
	_, rest := startListening(t, serve)
	follow := command("upstreams", "logs", "toy", "--follow")
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !lines.Scan() || lines.Text() != text {
				t.Fatalf("line %q, want %q", lines.Text(), text)
			}
		}
	}
	want("tick", "tick", "hunter2-")
	writeText(t, filepath.Join(dir, "one"), "")
	want("tick", "tick")
	writeText(t, filepath.Join(dir, "two"), "")
	want("half [hidden] whole")
	if out, err := command("upstreams", "restart", "toy").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want("tick", "tick", "hunter2-", "tick", "tick", "half [hidden] whole")
	if err := stop(follow); err != nil {
		t.Errorf("an interrupt ends it with %v", err)
	}
	if err := stop(serve); err != nil {
		t.Error(err)
	}
	<-rest
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
