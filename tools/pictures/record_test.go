//go:build linux

// Package pictures records what a terminal shows of real runs, for the pictures of docs/pictures: `make pictures`.
package pictures

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/ptytest"
)

const (
	settings = `upstreams:
  filesystem:
    description: the orders of this year
    command: node
    cwd: orders
    args: ["MODULES/@modelcontextprotocol/server-filesystem/dist/index.js", "."]
approval: {wait: 60s}
policy:
  rules:
    - {name: moves are looked at, tools: [filesystem.move_file], then: ask, message: others read these files}
`
	totals = `import csv
from collections import Counter
from servers.filesystem import list_directory, read_text_file

totals = Counter()
for entry in list_directory(".")["content"].splitlines():
    text = read_text_file(entry.removeprefix("[FILE] "))["content"]
    for row in csv.DictReader(text.splitlines()):
        totals[row["customer"]] += float(row["amount"])
[f"{name}: {total:.2f}" for name, total in totals.most_common(3)]
`
	tidy = `from servers.filesystem import move_file
move_file("2026-01.csv", "january.csv")
`
)

// desk is a folder with orders, programs and settings, in which commands run.
type desk struct {
	dir       string
	sallyport string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	sallyport := os.Getenv("SALLYPORT_TEST_PICTURES")
	if sallyport == "" {
		t.Skip("`make pictures` sets SALLYPORT_TEST_PICTURES, a folder with sallyport and runsc")
	}
	d := &desk{dir: testutil.ShortDir(t), sallyport: sallyport}
	files := map[string]string{
		"upstreams.yaml": strings.ReplaceAll(settings, "MODULES", testutil.Upstreams(t)), "totals.py": totals, "tidy.py": tidy,
	}
	for month := range 12 {
		files[fmt.Sprintf("orders/2026-%02d.csv", month+1)] = orders(month)
	}
	for name, text := range files {
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func orders(month int) string {
	var b strings.Builder
	b.WriteString("day,customer,amount\n")
	for i, customer := range []string{"Camilleri", "Farrugia", "Debono", "Zammit"} {
		fmt.Fprintf(&b, "2026-%02d-%02d,%s,%d.%02d\n", month+1, 3+5*i, customer, 480-61*i+7*month, (37*month+11*i)%100)
	}
	return b.String()
}

// command returns a command line of the folder, for a shell.
func (d *desk) command(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = d.dir
	cmd.Env = []string{
		"PATH=" + d.sallyport + ":" + os.Getenv("PATH"), "HOME=" + d.dir, "TERM=xterm-256color",
		"XDG_CACHE_HOME=" + filepath.Join(d.dir, "cache"), "XDG_DATA_HOME=" + filepath.Join(d.dir, "data"),
	}
	return cmd
}

// show runs a command in a terminal of 100 columns and returns what it shows there, prompt and command before it. A
// person presses keys until the command ends, if there are keys.
func (d *desk) show(t *testing.T, line string, keys func() string) string {
	t.Helper()
	person, terminal := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	cmd := d.command(t, line+`; printf '\n%s' the-`+`end`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for keys != nil {
			select {
			case <-ended:
				return
			case <-time.After(300 * time.Millisecond):
				_, _ = person.WriteString(keys())
			}
		}
	})
	shown := ptytest.ReadUntil(t, person, "the-end")
	close(ended)
	work.Wait()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, shown)
	}
	shown = strings.ReplaceAll(strings.TrimSuffix(shown, "the-end"), "\r", "")
	return "\x1b[32m$\x1b[0m \x1b[36m" + line + "\x1b[0m\n" + strings.Trim(shown, "\n") + "\n"
}

// keep writes what a terminal has shown to NAME.ansi.
func keep(t *testing.T, name string, shown ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+".ansi"), []byte(strings.Join(shown, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSession searches for tools and runs a program that calls them.
func TestSession(t *testing.T) {
	d := newDesk(t)
	search := d.show(t, "sallyport search --limit 2 list directory, read text file", nil)
	program := d.show(t, "cat totals.py", nil)
	run := d.show(t, "sallyport exec totals.py", nil)
	if !strings.Contains(search, "list_directory(path: str)") || !strings.Contains(search, "read_text_file(path: str") || !strings.Contains(run, "Camilleri: ") {
		t.Errorf("%s\n%s", search, run)
	}
	keep(t, "session", search, program, run)
}

// TestApproval has a person allow a call for which a program waits.
func TestApproval(t *testing.T) {
	d := newDesk(t)
	var said bytes.Buffer
	program := d.command(t, "exec sallyport exec tidy.py")
	program.Stdout, program.Stderr = &said, &said
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		result <- program.Wait()
		close(result)
	}()
	watched := d.show(t, "sallyport approvals watch", func() string {
		select {
		case err := <-result:
			if err != nil {
				t.Errorf("%v: %s", err, &said)
			}
			return "q"
		default:
			return "y"
		}
	})
	if !strings.Contains(watched, "filesystem.move_file") {
		t.Error(watched)
	}
	keep(t, "approval", watched)
}
