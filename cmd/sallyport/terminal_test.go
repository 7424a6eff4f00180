//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/testutil/ptytest"
)

// TestTerminal: on a terminal, a command that takes long shows a progress, which it removes, and results have colours. With
// NO_COLOR, and in a pipe, there is nothing of that.
func TestTerminal(t *testing.T) {
	t.Parallel()
	home := testutil.ShortDir(t)
	writeFile(t, filepath.Join(home, "upstreams.yaml"), "upstreams:\n  slow: {command: sh, args: [-c, 'sleep 1; exec toyserver alpha']}\n  down: {command: 'false'}\n")
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+home, "TERM=xterm", "NO_COLOR=")
	args := []string{"upstreams", "test", "--config", filepath.Join(home, "upstreams.yaml")}
	fancy := onTerminal(t, append(env, "NO_COLOR="), args...)
	if !barDrawing.MatchString(fancy) {
		t.Errorf("no progress in %q", fancy)
	}
	shown := regexp.MustCompile(`\d+ ms`).ReplaceAllString(barDrawing.ReplaceAllString(fancy, ""), "# ms")
	golden.Check(t, "testdata/terminal/test.golden", strings.ReplaceAll(strings.ReplaceAll(shown, "\r\n", "\n"), "\x1b", "<esc>"))
	if plain := onTerminal(t, append(env, "NO_COLOR=1"), args...); strings.Contains(plain, "\x1b") || !strings.Contains(plain, "ok    slow: ") {
		t.Errorf("with NO_COLOR: %q", plain)
	}
	if plain := onTerminal(t, append(env, "TERM=dumb"), args...); strings.Contains(plain, "\x1b") {
		t.Errorf("on a dumb terminal: %q", plain)
	}
	cmd := exec.CommandContext(t.Context(), "sallyport", args...)
	cmd.Env = env
	if out, _ := cmd.CombinedOutput(); strings.ContainsAny(string(out), "\x1b\r") || !strings.Contains(string(out), "ok    slow: ") {
		t.Errorf("in a pipe: %q", out)
	}
	if fault := onTerminal(t, env, "skills", "nosuch"); !strings.HasPrefix(fault, "\x1b[31msallyport:\x1b[0m unknown command") {
		t.Errorf("an error is %q", fault)
	}
}

// onTerminal returns what a command prints on a terminal.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	person, terminal := ptytest.Open(t)
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `sallyport "$@"; echo END`, "sh"}, args...)...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := ptytest.ReadUntil(t, person, "END")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	text, _, _ = strings.Cut(text, "END")
	return text
}
