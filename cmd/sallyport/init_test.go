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

// barDrawing is one drawing of a progress bar, or its removal.
var barDrawing = regexp.MustCompile(`\r\x1b\[K((\[[#.]{20}\] \d/\d )?[a-zA-Z0-9 ,]+, \d+ s)?`)

// TestInitTerminal: a user answers the questions at a terminal, with one answer that is not understood. The bars leave nothing.
func TestInitTerminal(t *testing.T) {
	testutil.Runsc(t)
	home := testutil.ShortDir(t)
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	writeFile(t, cursor, `{"mcpServers": {"tickets": {"command": "toyserver", "args": ["alpha"], "env": {"TOY_TOKEN": "hunter2hunter2"}}, "other": {"command": "toyserver", "args": ["beta"]}}}`)
	tools := filepath.Join(home, "tools")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(part("SALLYPORT_TEST_RUNSC", ".cache/bin/runsc"), filepath.Join(tools, "runsc")); err != nil {
		t.Fatal(err)
	}
	person, terminal := ptytest.Open(t)
	cmd := exec.CommandContext(t.Context(), "sallyport", "init")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+home, "TMPDIR="+home, "SALLYPORT_TEST_SNAPSHOTS=", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus",
		"PATH="+tools+":"+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	answer := func(question, line string) {
		t.Helper()
		shown.WriteString(ptytest.ReadUntil(t, person, question))
		if _, err := person.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	answer("Numbers, all or none [all]: ", "the first")
	answer("Numbers, all or none [all]: ", "2")
	answer("Cursor\r\nNumbers, all or none [all]: ", "")
	answer("[y/N] ", "y")
	shown.WriteString(ptytest.ReadUntil(t, person, "Your settings: "))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &shown)
	}
	text := shown.String()
	if !barDrawing.MatchString(text) {
		t.Error("no progress bar is drawn")
	}
	text = strings.ReplaceAll(barDrawing.ReplaceAllString(text, ""), "\r\n", "\n")
	text = times.ReplaceAllString(strings.ReplaceAll(text, home, "HOME"), "#")
	golden.Check(t, "testdata/init/terminal.golden", text+"\n")
	if strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("a bar leaves something: %q", text)
	}
	data, err := os.ReadFile(cursor)
	if err != nil || strings.Contains(string(data), `"tickets"`) || !strings.Contains(string(data), `"other"`) || !strings.Contains(string(data), `"sallyport"`) {
		t.Errorf("the client has %s, %v", data, err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
