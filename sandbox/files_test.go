//go:build linux

package sandbox_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// openWorkspace opens a workspace that lies beside a file that nobody may touch.
func openWorkspace(t *testing.T, opts workspace.Options) (*workspace.Dir, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	ws, err := workspace.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return ws, dir
}

// onDisk returns what a directory holds: contents of files by path, "/" for folders, what else it is for the rest.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case e.IsDir():
			found[name] = "/"
		case !e.Type().IsRegular():
			found[name] = e.Type().String()
		default:
			data, err := os.ReadFile(path)
			if found[name] = string(data); info.Mode()&0o111 != 0 {
				found[name] += " (executable)"
			}
			return err
		}
		if info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 {
			found[name] += " with odd bits"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// inWorkspace runs one program over a workspace.
func inWorkspace(t *testing.T, host sandboxtest.Runner, ws sandbox.Workspace, interpreter sandbox.Interpreter, code string) sandbox.Outcome {
	t.Helper()
	job := sandboxtest.Job(interpreter, code)
	job.Workspace = ws
	outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// TestFilesStay: what one program leaves, the next one finds, in either language.
func TestFilesStay(t *testing.T) {
	host, _ := newHost(t)
	big := strings.Repeat("0123456789abcdef", 3<<16) + "end" // in several messages
	for _, programs := range []struct {
		interpreter                  sandbox.Interpreter
		write, change, nothing, exit string
	}{
		{sandbox.Python, `import os
os.makedirs("a/b"); open("a/b/x.txt", "w").write("é"); open("run.sh", "w").write("#!"); os.chmod("run.sh", 0o4755); open("empty", "w")
open("big", "w").write("0123456789abcdef" * (3 << 16) + "end"); open("gone", "w").write("1"); os.mkdir("hollow")`,
			`import os
assert open("a/b/x.txt").read() == "é" and os.stat("run.sh").st_mode & 0o7777 == 0o755 and open("big").read()[-3:] == "end" and os.listdir("hollow") == []
os.remove("gone"); os.rename("a", "c"); open("empty", "a").write("full"); os.rmdir("hollow"); open("hollow", "w").write("a file")`,
			`sum(len(f) for _, _, f in __import__("os").walk("."))`,
			`import sys; open("last", "w").write("1"); sys.exit(3)`},
		{sandbox.Node, `import fs from "node:fs"; process.chdir("/workspace");
fs.mkdirSync("a/b", { recursive: true }); fs.writeFileSync("a/b/x.txt", "é"); fs.writeFileSync("run.sh", "#!"); fs.chmodSync("run.sh", 0o4755); fs.writeFileSync("empty", "");
fs.writeFileSync("big", "0123456789abcdef".repeat(3 << 16) + "end"); fs.writeFileSync("gone", "1"); fs.mkdirSync("hollow");`,
			`import fs from "node:fs"; process.chdir("/workspace");
if (fs.readFileSync("a/b/x.txt", "utf8") !== "é" || (fs.statSync("run.sh").mode & 0o7777) !== 0o755 || !fs.readFileSync("big", "utf8").endsWith("end")) throw new Error("not as it was");
fs.rmSync("gone"); fs.renameSync("a", "c"); fs.appendFileSync("empty", "full"); fs.rmdirSync("hollow"); fs.writeFileSync("hollow", "a file");`,
			`import fs from "node:fs"; export default fs.readdirSync("/workspace", { recursive: true }).filter((f) => fs.statSync("/workspace/" + f).isFile()).length`,
			`import fs from "node:fs"; fs.writeFileSync("/workspace/last", "1"); process.exit(3)`},
	} {
		t.Run(string(programs.interpreter), func(t *testing.T) {
			ws, dir := openWorkspace(t, workspace.Options{})
			run := func(code string, status sandbox.Status) sandbox.Outcome {
				t.Helper()
				outcome := inWorkspace(t, host, ws, programs.interpreter, code)
				if outcome.Status != status || len(outcome.Notes) > 0 {
					t.Fatalf("status %s, fault %+v, notes %q, stderr %s", outcome.Status, outcome.Fault, outcome.Notes, outcome.Stderr.Text)
				}
				return outcome
			}
			run(programs.write, sandbox.OK)
			want := map[string]string{"a": "/", "a/b": "/", "a/b/x.txt": "é", "run.sh": "#! (executable)", "empty": "", "big": big, "gone": "1", "hollow": "/"}
			if diff := cmp.Diff(want, onDisk(t, dir)); diff != "" {
				t.Fatalf("after the first program (-want +got):\n%s", diff)
			}
			run(programs.change, sandbox.OK)
			want = map[string]string{"c": "/", "c/b": "/", "c/b/x.txt": "é", "run.sh": "#! (executable)", "empty": "full", "big": big, "hollow": "a file"}
			if diff := cmp.Diff(want, onDisk(t, dir)); diff != "" {
				t.Fatalf("after the second program (-want +got):\n%s", diff)
			}
			before, err := ws.List()
			if err != nil {
				t.Fatal(err)
			}
			if outcome := run(programs.nothing, sandbox.OK); outcome.Value == nil || outcome.Value.Text != "5" {
				t.Errorf("value %+v, want 5 files", outcome.Value)
			}
			after, err := ws.List()
			if diff := cmp.Diff(before, after, cmp.AllowUnexported(workspace.File{})); err != nil || diff != "" {
				t.Errorf("a program that changed nothing: %v, %s", err, diff)
			}
			run(programs.exit, sandbox.Exited)
			if data, err := os.ReadFile(filepath.Join(dir, "last")); err != nil || string(data) != "1" {
				t.Errorf("of a program that ended itself: %q, %v", data, err)
			}
		})
	}
}

// fill puts n files of a size into a workspace.
func fill(tb testing.TB, ws *workspace.Dir, n, size int) {
	tb.Helper()
	files := make([]workspace.File, n)
	for i := range files {
		files[i] = workspace.File{Path: fmt.Sprintf("d%d/f%d", i%10, i), Size: int64(size), Content: io.NopCloser(bytes.NewReader(make([]byte, size)))}
	}
	if updated, err := ws.Update(workspace.Changes(files...)); err != nil || len(updated.Notes) > 0 {
		tb.Fatal(err, updated.Notes)
	}
}

// TestRescue: what a program has written is kept although it had to be stopped, whatever it does meanwhile.
func TestRescue(t *testing.T) {
	host, _ := newColdHost(t)
	const lost = "the program was stopped, and" // time is short, and a busy machine may need a second try
	for _, test := range []struct {
		name, code  string
		interpreter sandbox.Interpreter
		status      sandbox.Status
		limit       func(l *sandbox.Limits)
	}{
		{"python that hangs", `
import os, threading
open("new", "w").write("kept"); os.chmod("new", 0); os.remove("old"); open("changed", "a").write("!"); os.mkdir("closed"); open("closed/x", "w").write("1"); os.chmod("closed", 0)
for _ in range(8):
    if os.fork() == 0: break
while True: pass`, sandbox.Python, sandbox.TimedOut, func(l *sandbox.Limits) { l.Timeout = 2 * time.Second }},
		{"node that hangs", `import fs from "node:fs"; process.chdir("/workspace");
fs.writeFileSync("new", "kept"); fs.chmodSync("new", 0); fs.rmSync("old"); fs.appendFileSync("changed", "!"); fs.mkdirSync("closed"); fs.writeFileSync("closed/x", "1"); fs.chmodSync("closed", 0);
for (;;);`, sandbox.Node, sandbox.TimedOut, func(l *sandbox.Limits) { l.Timeout = 3 * time.Second }},
		{"python that floods", `
import os
open("new", "w").write("kept"); os.remove("old"); open("changed", "a").write("!"); os.mkdir("closed"); open("closed/x", "w").write("1")
while True: os.write(1, b"x" * 65536)`, sandbox.Python, sandbox.Flooded, nil},
		{"python in a call", `
import os
from sallyport import call
open("new", "w").write("kept"); os.remove("old"); open("changed", "a").write("!"); os.mkdir("closed"); open("closed/x", "w").write("1")
call("test.slow", {})`, sandbox.Python, sandbox.TimedOut, func(l *sandbox.Limits) { l.Timeout = 2 * time.Second }},
		{"node in a call", `import fs from "node:fs"; process.chdir("/workspace");
const { call } = globalThis[Symbol.for("sallyport")];
fs.writeFileSync("new", "kept"); fs.rmSync("old"); fs.appendFileSync("changed", "!"); fs.mkdirSync("closed"); fs.writeFileSync("closed/x", "1");
await call("test.slow");`, sandbox.Node, sandbox.TimedOut, func(l *sandbox.Limits) { l.Timeout = 3 * time.Second }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for try := 0; ; try++ {
				ws, dir := openWorkspace(t, workspace.Options{})
				for _, name := range []string{"old", "changed", "same"} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				job := sandboxtest.Job(test.interpreter, test.code)
				job.Workspace = ws
				if test.limit != nil {
					test.limit(&job.Limits)
				}
				outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
				if err != nil || outcome.Status != test.status {
					t.Fatalf("status %s, %v, fault %+v", outcome.Status, err, outcome.Fault)
				}
				if outcome.Stderr.Text != "" {
					t.Errorf("it said %q", outcome.Stderr.Text)
				}
				if try < 5 && len(outcome.Notes) == 1 && strings.HasPrefix(outcome.Notes[0], lost) {
					continue
				}
				want := map[string]string{"new": "kept", "changed": "changed!", "same": "same", "closed": "/", "closed/x": "1"}
				got := onDisk(t, dir)
				maps.DeleteFunc(got, func(path, _ string) bool { return strings.HasPrefix(path, ".out") }) // what it printed
				if diff := cmp.Diff(want, got); diff != "" || len(outcome.Notes) > 0 {
					t.Errorf("notes %q, files (-want +got):\n%s", outcome.Notes, diff)
				}
				return
			}
		})
	}
}

// TestWhatStaysInside (G01 to G04): what a program makes that is neither file nor folder, or
// has a name that cannot be shown, does not reach the host's disk, and the model is told.
func TestWhatStaysInside(t *testing.T) {
	host, _ := newHost(t)
	for interpreter, code := range map[sandbox.Interpreter]string{
		sandbox.Python: `
import os, socket
os.chdir("/workspace")
os.symlink("/etc/shadow", "report.txt"); os.symlink("/", "out"); os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
open("plain", "w").write("p"); os.link("plain", "hard"); os.chmod("hard", 0o6755)
open(b"\xff", "w"); open("a\nb", "w"); open("back\\slash", "w"); open("\u202egnp.exe", "w")
with open("holes", "wb") as f: f.truncate(3 << 20)`,
		sandbox.Node: `import fs from "node:fs"; process.chdir("/workspace");
fs.symlinkSync("/etc/shadow", "report.txt"); fs.symlinkSync("/", "out");
fs.writeFileSync("plain", "p"); fs.linkSync("plain", "hard"); fs.chmodSync("hard", 0o6755);
fs.writeFileSync(Buffer.from([255]), ""); fs.writeFileSync("a\nb", ""); fs.writeFileSync("back\\slash", ""); fs.writeFileSync("\u202egnp.exe", "");
fs.truncateSync(fs.openSync("holes", "w"), 3 << 20);`,
	} {
		ws, dir := openWorkspace(t, workspace.Options{})
		outcome := inWorkspace(t, host, ws, interpreter, code)
		want := map[string]string{"plain": "p (executable)", "hard": "p (executable)", "holes": strings.Repeat("\x00", 3<<20)}
		if diff := cmp.Diff(want, onDisk(t, dir)); outcome.Status != sandbox.OK || diff != "" {
			t.Errorf("%s: status %s, fault %+v, files (-want +got):\n%.2000s", interpreter, outcome.Status, outcome.Fault, diff)
		}
		notes := strings.Join(outcome.Notes, "\n")
		if !strings.Contains(notes, `"report.txt" (a link`) || strings.ContainsRune(notes, '\u202e') || !utf8.ValidString(notes) || len(outcome.Notes) > 12 {
			t.Errorf("%s: notes %q", interpreter, outcome.Notes)
		}
	}
}
