//go:build linux

package main

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
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

// TestBackupTerminal: a backup whose reader is slow, and a restore whose source is slow, show how far they are.
func TestBackupTerminal(t *testing.T) {
	t.Parallel()
	home := testutil.ShortDir(t)
	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise) // it never fails
	writeFile(t, filepath.Join(home, "data", "workspaces", "noise"), string(noise))
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR="+home, "TERM=xterm", "NO_COLOR=")
	pipe := filepath.Join(home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var saved []byte
	shown := pipeOnTerminal(t, env, `cd "$1"; sallyport backup --data data - >pipe`, home, "writing the backup, ", func(wait func()) error {
		f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without a writer yet
		if err != nil {
			return err
		}
		wait()
		saved, err = io.ReadAll(f)
		return errors.Join(err, f.Close())
	})
	shown += pipeOnTerminal(t, env, `cd "$1"; sallyport restore --data new - <pipe`, home, "restoring, 0 MiB, ", func(wait func()) error {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(saved[:9000])
		wait()
		_, rest := f.Write(saved[9000:])
		return errors.Join(err, rest, f.Close())
	})
	if left := barDrawing.ReplaceAllString(shown, ""); strings.Count(left, " 1 files, ") != 2 || strings.Contains(left, "\x1b") {
		t.Errorf("the bars leave %q", left)
	}
	if data, err := os.ReadFile(filepath.Join(home, "new", "workspaces", "noise")); err != nil || string(data) != string(noise) {
		t.Errorf("what was restored: %d bytes, %v", len(data), err)
	}
}

// pipeOnTerminal returns what a script prints on a terminal while use works with the other end of its pipe: wait waits until
// the terminal shows a text.
func pipeOnTerminal(t *testing.T, env []string, script, dir, until string, use func(wait func()) error) string {
	t.Helper()
	person, ended := startOnTerminal(t, env, script, dir)
	var shown string
	if err := use(func() { shown = ptytest.ReadUntil(t, person, until) }); err != nil {
		t.Fatal(err)
	}
	return shown + ended()
}

// onTerminal returns what a command prints on a terminal.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	_, ended := startOnTerminal(t, env, `sallyport "$@"`, args...)
	return ended()
}

// startOnTerminal starts a script on a terminal. ended waits for its end, and returns what it prints.
func startOnTerminal(t *testing.T, env []string, script string, args ...string) (person *os.File, ended func() string) {
	t.Helper()
	person, terminal := ptytest.Open(t)
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script + "; echo END", "sh"}, args...)...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return person, func() string {
		text := ptytest.ReadUntil(t, person, "END")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		text, _, _ = strings.Cut(text, "END")
		return text
	}
}
