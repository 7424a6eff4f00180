package gateway_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// workshop opens a gateway that runs programs, with notes and calc behind it and
// the upstreams "git", which is down, and "github", which is not.
func workshop(t *testing.T, log *slog.Logger) *gateway.Gateway {
	t.Helper()
	down := newSite(t)
	down.down.Store(true)
	cfg := withRunsc(t, settings(map[string]*site{"my-notes": newSite(t, notes), "calc": newSite(t, calc), "git": down, "github": newSite(t, calc)}))
	cfg.Sandbox.Timeout = 20 * time.Second
	return open(t, cfg, &gateway.Options{Logger: log})
}

func execute(t *testing.T, g *gateway.Gateway, language, code string) execution.Result {
	t.Helper()
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: language})
	if err != nil {
		t.Fatalf("execute: %v", err)
	}
	return e
}

func wantText(t *testing.T, e execution.Result, status sandbox.Status, parts ...string) {
	t.Helper()
	if e.Status != status {
		t.Errorf("status %q, want %q:\n%s", e.Status, status, e.Text())
	}
	for _, part := range parts {
		if !strings.Contains(e.Text(), part) {
			t.Errorf("it does not say %q:\n%s", part, e.Text())
		}
	}
}

// TestPrograms runs one after another in sandboxes of one gateway: what one
// writes through an upstream, the next one reads.
func TestPrograms(t *testing.T) {
	t.Parallel()
	log := &records{}
	g := workshop(t, slog.New(log))
	e := execute(t, g, "", `from servers.my_notes import create_note
from servers.calc import add
for i in range(3):
    create_note(f"note {i}", text=str(add(i, 0.5)))
"written"`)
	wantText(t, e, sandbox.OK)
	if e.Text() != "written" || e.Calls != 6 || e.Language != "python" {
		t.Errorf("execution %+v", e)
	}
	t.Run("calls carry the execution", func(t *testing.T) {
		calls := log.find("tool call")
		if len(calls) != 6 {
			t.Errorf("%d calls in the log", len(calls))
		}
		for _, c := range calls {
			if c["execution"] != e.ID || c["outcome"] != "ok" || len(c) != 4 {
				t.Errorf("in the log: %v", c)
			}
		}
	})
	e = execute(t, g, "TypeScript", `import { list_notes } from "servers/my_notes";
import { add } from "servers/calc";
interface Note { title: string; text: string }
const { notes } = await list_notes();
let sum: any = 0;
for (const note of notes as Note[]) sum = await add({ a: Number(sum), b: Number(note.text) });
({ titles: notes.map((n: Note) => n.title), sum })`)
	wantText(t, e, sandbox.OK)
	if want := `{"titles":["note 0","note 1","note 2"],"sum":"4.5"}`; e.Text() != want || e.Language != "typescript" {
		t.Errorf("got %s, want %s", e.Text(), want)
	}
	t.Run("calls that a test answers", func(t *testing.T) {
		var asked tool.Call
		folder := t.TempDir()
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "from servers.calc import add\nopen('/workspace/x', 'w').write('y')\nadd(a=1, b=2)", Folder: folder, Stub: func(_ context.Context, call tool.Call) (tool.Result, error) {
			asked = call
			return tool.Result{Content: []tool.Content{{Type: "text", Text: "seven"}}}, nil
		}})
		if err != nil || e.Text() != "seven" || asked.Tool.String() != "calc.add" || asked.Execution != e.ID {
			t.Errorf("got %q, %v after %+v", e.Text(), err, asked)
		}
		if kept, err := os.ReadFile(filepath.Join(folder, "x")); string(kept) != "y" {
			t.Errorf("in its folder: %q, %v", kept, err)
		}
	})
	for _, test := range []struct {
		name, language, code string
		status               sandbox.Status
		want                 []string
	}{
		{"a misspelt upstream", "python", "from servers.my_nots import create_note", sandbox.Failed, []string{"did you mean servers.my_notes?", "line 1: from servers.my_nots"}},
		{"a misspelt upstream", "typescript", `import { create_note } from "servers/my_nots"; await create_note({})`, sandbox.Failed, []string{"did you mean servers/my_notes?", "line 1"}},
		{"a misspelt tool", "python", "x = 1\nfrom servers.my_notes import creat_note", sandbox.Failed, []string{"did you mean create_note?", "line 2"}},
		{"a misspelt tool", "typescript", "const x = 1;\nimport { creat_note } from 'servers/my_notes';\nawait creat_note({})", sandbox.Failed, []string{"did you mean create_note?", "line 2"}},
		{"a misspelt tool of a package", "python", "from servers import my_notes\nmy_notes.creat_note(title='x')", sandbox.Failed, []string{"did you mean create_note?", "line 2"}},
		{"a misspelt parameter", "python", "from servers.my_notes import create_note\ncreate_note(titel='x')", sandbox.Failed, []string{"did you mean title?", "line 2"}},
		{"a misspelt parameter", "typescript", "import { create_note } from 'servers/my_notes';\nawait create_note({ titel: 'x' } as any)", sandbox.Failed, []string{"did you mean title?", "line 2"}},
		{"a wrong type", "typescript", "import { create_note } from 'servers/my_notes';\nawait create_note({ title: 7 } as any)", sandbox.Failed, []string{"title: expected string, got number 7: write \"7\"", "line 2"}},
		{"a tool by its id", "python", "from sallyport import call\ncall('calc.ad', {'a': 1, 'b': 2})", sandbox.Failed, []string{"there is no tool calc.ad", "did you mean calc.add?"}},
		{"an upstream that is down", "python", "from servers.git import log", sandbox.Failed, []string{"hint: upstream git is not available: HTTP 503"}},
		{"an upstream that is down", "typescript", "import { log } from 'servers/git'; await log({})", sandbox.Failed, []string{"hint: upstream git is not available: HTTP 503"}},
		{"its package", "python", "from servers import git\ngit.log()", sandbox.Failed, []string{"hint: upstream git is not available: HTTP 503"}},
		{"its package", "typescript", "import * as git from 'servers/git';\nawait git.log({})", sandbox.Failed, []string{"hint: upstream git is not available: HTTP 503"}},
		{"an upstream whose name begins like it", "python", "from servers.github import ad", sandbox.Failed, []string{"did you mean add?"}},
		{"a tool that fails", "python", "from servers.calc import fail\nfail()", sandbox.Failed, []string{"ToolError: no such ledger", "line 2: fail()"}},
		{"an image", "python", "from servers.calc import picture\np = picture()\n(p.mime, p.data.hex(), p)", sandbox.OK, []string{"image/png", "89504e472e2e2e2e"}},
		{"an image", "typescript", "import { picture } from 'servers/calc';\nconst p: any = await picture();\n[p.mime, p.data.length, p.data[0]]", sandbox.OK, []string{`["image/png",8,137]`}},
		{"a syntax error", "python", "x = 1\nif x\n  pass", sandbox.Failed, []string{"SyntaxError", "line 2: if x"}},
		{"a syntax error", "typescript", "const x = 1;\nconst y = ;", sandbox.Failed, []string{"SyntaxError", "line 2: const y = ;"}},
		{"big integers", "python", "from servers.calc import echo\necho(n=9007199254740993)['n']", sandbox.OK, []string{"9007199254740993"}},
		{"too slow", "python", "while True: pass", sandbox.TimedOut, []string{"stopped: it ran longer than 1 s"}},
	} {
		t.Run(test.name+" in "+test.language, func(t *testing.T) {
			t.Parallel()
			p := execution.Program{Language: test.language, Code: test.code}
			if test.status == sandbox.TimedOut {
				p.Timeout = time.Second
			}
			e, err := g.Executor.Execute(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, e, test.status, test.want...)
			checkClean(t, e.Text(), 2000)
			if test.name == "an upstream whose name begins like it" && strings.Contains(e.Text(), "503") {
				t.Errorf("another upstream is blamed:\n%s", e.Text())
			}
		})
	}
}

// TestGuestIsNotBelieved has a program that reports its own end, in no measure.
func TestGuestIsNotBelieved(t *testing.T) {
	t.Parallel()
	g := workshop(t, nil)
	for _, test := range []struct{ name, done, want string }{
		{"a value without end", `{"type": "done", "value": {"kind": "text", "text": "v" * 5_000_000, "size": 1}}`, "bytes cut"},
		{"a fault without end", `{"type": "done", "fault": {"type": "T" * 200_000, "message": "m" * 200_000, "hint": "h" * 200_000, "lines": [{"line": 1, "source": "s" * 1000}] * 100}}`, "TTT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := execute(t, g, "python", "import sallyport, os\nsallyport._bridge.send("+test.done+")\nos._exit(0)")
			if size := len(e.Text()); size > 20<<10 || !strings.Contains(e.Text(), test.want) {
				t.Errorf("%d bytes: %.300s", size, e.Text())
			}
			if e.Fault != nil && len(e.Fault.Type)+len(e.Fault.Message)+len(e.Fault.Hint) > 20_000 {
				t.Errorf("the fault is %d, %d, %d bytes", len(e.Fault.Type), len(e.Fault.Message), len(e.Fault.Hint))
			}
		})
	}
}

func TestExecuteRefusesWhatMakesNoSense(t *testing.T) {
	g, _ := office(t)
	for _, test := range []struct {
		program execution.Program
		want    string
	}{
		{execution.Program{Code: "1", Language: "ruby"}, `unknown language "ruby" (use python or typescript)`},
		{execution.Program{Code: "1", Language: "\x1b[2J"}, `unknown language "" (`},
		{execution.Program{}, "code must be 1 to 1048576 bytes, not 0"},
		{execution.Program{Code: " \n\t"}, "code is blank"},
		{execution.Program{Code: strings.Repeat("#", 1<<20+1)}, "code must be 1 to 1048576 bytes, not 1048577"},
	} {
		_, err := g.Executor.Execute(t.Context(), test.program)
		wantError(t, err, tool.Invalid, test.want)
	}
}

func TestWithoutRunsc(t *testing.T) {
	sites := map[string]*site{"my-notes": newSite(t, notes)}
	cfg := settings(sites)
	cfg.Sandbox.Runsc = "/nowhere/runsc"
	g := open(t, cfg, nil)
	for _, language := range []string{"python", "typescript"} {
		_, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1", Language: language})
		wantError(t, err, tool.Internal, "programs cannot be run", "/nowhere/runsc", "sallyport doctor")
	}
	if found := search(t, g, toolsearch.Request{Query: "create note"}); len(found.Tools) == 0 {
		t.Errorf("found %+v", found)
	}
	if _, err := call(t, g, "my_notes.list_notes", ""); err != nil {
		t.Error(err)
	}
}

func TestProgramTimeoutOnlyShortens(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout, cfg.Sandbox.Memory, cfg.Sandbox.Output, cfg.Sandbox.Calls = 30*time.Second, 300*config.MiB, 5*config.KiB, 7
	g := open(t, cfg, nil)
	for ask, want := range map[time.Duration]time.Duration{0: 30 * time.Second, -1: 30 * time.Second, time.Hour: 30 * time.Second, 10_000 * time.Second: 10 * time.Second, 60_000 * time.Second: 30 * time.Second, 7200 * time.Second: 30 * time.Second, 9 * time.Second: 9 * time.Second} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1 +", Language: "typescript", Timeout: ask}) // not even started
		if err != nil {
			t.Fatal(err)
		}
		if e.Limits.Timeout != want || e.Limits.Memory != 300<<20 || e.Limits.Output != 5<<10 || e.Limits.Calls != 7 || e.Limits.Processes != cfg.Sandbox.Processes {
			t.Errorf("asked for %v, got %+v", ask, e.Limits)
		}
	}
}

func TestExecuteIsCanceled(t *testing.T) {
	t.Parallel()
	g := open(t, withRunsc(t, settings(nil)), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	e, err := g.Executor.Execute(ctx, execution.Program{Code: "while True: pass"})
	if err != nil || e.Status != sandbox.Canceled || e.Text() != "canceled" || time.Since(begin) > 10*time.Second {
		t.Errorf("%+v, %v, after %v", e, err, time.Since(begin))
	}
}
