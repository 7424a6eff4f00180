package gateway_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// desk is a gateway, and whose files it keeps.
type desk struct {
	t *testing.T
	g *gateway.Gateway
}

func (s desk) write(name, content string) {
	s.t.Helper()
	ctx := tool.WithPrincipal(s.t.Context(), "ada")
	if _, err := s.g.Workspaces.WriteFile(ctx, workspaces.FileWrite{Path: name, Verb: workspaces.FileReplace, Content: content}); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a file and wants each of the texts in what a model reads of it; "!text" must not be there.
func (s desk) run(p execution.Program, status sandbox.Status, want ...string) {
	s.t.Helper()
	e, err := s.g.Executor.Execute(tool.WithPrincipal(s.t.Context(), "ada"), p)
	if err != nil {
		s.t.Errorf("%s: %v", p.File, err)
		return
	}
	text := e.Text()
	ok := e.Status == status
	at := 0
	for _, part := range want {
		if absent, not := strings.CutPrefix(part, "!"); not {
			ok = ok && !strings.Contains(text, absent)
			continue
		}
		i := strings.Index(text[at:], part) // in this order
		ok = ok && i >= 0
		at += max(i, 0)
	}
	if !ok {
		s.t.Errorf("%s %s: want %s %q\n%s", p.File, e.Status, status, want, text)
	}
}

// TestCodeFiles: files run as programs, with their names and lines in errors, and find their neighbours.
func TestCodeFiles(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	s := desk{t, open(t, cfg, &gateway.Options{DataDir: t.TempDir()})}
	t.Run("python", func(t *testing.T) { t.Parallel(); pythonFiles(desk{t, s.g}) })
	t.Run("typescript", func(t *testing.T) { t.Parallel(); typescriptFiles(desk{t, s.g}) })
}

func pythonFiles(s desk) {
	s.write("py/app.py", "import json\n\ndef add(a, b):\n    return json.loads('1') + a - b\n")
	s.write("py/json.py", "def loads(text):\n    return int(text)\n")
	s.write("py/test_app.py", `import unittest
import app

class Adds(unittest.TestCase):
    def test_add(self):
        self.assertEqual(app.add(2, 3), 5)

unittest.main()
`)
	s.run(execution.Program{File: "py/test_app.py"}, sandbox.Exited, "FAIL: test_add", `File "/workspace/py/test_app.py", line 6, in test_add`, "0 != 5", "FAILED (failures=1)", "exited with status 1")
	s.write("py/app.py", "def add(a, b):\n    return a + b\n")
	s.run(execution.Program{File: "/workspace/py/test_app"}, sandbox.OK, "Ran 1 test", "OK", "!FAIL", "!exited")
	s.write("py/broken.py", "import app\n\ndef go():\n    app.add(1, '2')\n\ngo()\n")
	s.run(execution.Program{File: "py/broken.py"}, sandbox.Failed, "TypeError", "py/broken.py line 6: go()", "py/broken.py line 4 in go", "py/app.py line 2 in add: return a + b")
	s.write("py/syntax.py", "x = (\n")
	s.write("py/main.py", "import syntax\n")
	s.run(execution.Program{File: "py/syntax.py"}, sandbox.Failed, "SyntaxError", "py/syntax.py line 1")
	s.run(execution.Program{File: "py/main.py"}, sandbox.Failed, "SyntaxError", "py/main.py line 1", "py/syntax.py line 1")
	s.write("py/self.py", "import sys\n(__file__, __name__, sys.argv, sys.path[0])\n")
	s.run(execution.Program{File: "py/self.py"}, sandbox.OK, `["/workspace/py/self.py","__main__",["/workspace/py/self.py"],"/workspace/py"]`)
	// In a session, variables stay and files are loaded as they are now.
	s.write("py/mod.py", "x = 1\n")
	s.write("py/use.py", "import mod\nkept = globals().get('kept', 0) + mod.x\nkept\n")
	s.run(execution.Program{File: "py/use.py", Session: "s"}, sandbox.OK, "1")
	s.write("py/mod.py", "x = 10\n")
	s.run(execution.Program{File: "py/use.py", Session: "s"}, sandbox.OK, "11")
	gitWorks(s)
}

// gitWorks: a repository in the workspace outlives its program.
func gitWorks(s desk) {
	const git = `import subprocess
def git(*args): return subprocess.run(["git", "-C", "/workspace/repo", "-c", "user.name=a", "-c", "user.email=a@b", *args], capture_output=True, text=True)
`
	testutil.Program(s.t, "git")
	s.run(execution.Program{Code: `import os; os.makedirs("/workspace/repo", exist_ok=True)`}, sandbox.OK)
	s.run(execution.Program{Code: git + `git("init"); open("/workspace/repo/a.txt", "w").write("1"); git("add", "."); git("commit", "-m", "first").stdout`}, sandbox.OK, "first")
	s.run(execution.Program{Code: git + `(git("status", "--short").stdout, git("log", "--format=%s").stdout, git("fsck").returncode)`}, sandbox.OK, `["","first\n",0]`)
	s.run(execution.Program{Code: git + `open("/workspace/repo/a.txt", "w").write("2"); git("commit", "-am", "second"); git("gc").returncode`}, sandbox.OK, "0")
	s.run(execution.Program{Code: git + `(git("log", "--format=%s").stdout, git("fsck").returncode)`}, sandbox.OK, `["second\nfirst\n",0]`)
}

func typescriptFiles(s desk) {
	s.write("ts/lib/add.ts", "import { one } from \"./one.js\";\nexport function add(a: number, b: number): number {\n  return one - a - b;\n}\n")
	s.write("ts/lib/one.ts", "import { add } from \"./add\";\nexport const one: number = 1;\nexport const self = () => add;\n")
	s.write("ts/add.test.ts", `import test from "node:test";
import assert from "node:assert/strict";
import { add } from "./lib/add";
import data from "./data.json";

test("adds", () => {
  assert.equal(add(2, 3), data.sum);
});
test("is there", async () => {
  await new Promise((done) => setTimeout(done, 20));
  assert.ok(add);
});
`)
	s.write("ts/data.json", `{"sum": 5}`)
	s.run(execution.Program{File: "ts/add.test.ts"}, sandbox.Exited, "adds", "ts/add.test.ts:7", "is there", "pass 1", "fail 1", "exited with status 1")
	s.write("ts/lib/add.ts", "export const add = (a: number, b: number): number => a + b;\n")
	s.run(execution.Program{File: "ts/add.test.ts"}, sandbox.OK, "pass 2", "fail 0", "!exited")
	s.write("ts/broken.ts", "import { go } from \"./lib/go\";\n\ngo({} as any);\n")
	s.write("ts/lib/go.ts", "// a comment\nexport function go(x: any): void {\n  x.y.z();\n}\n")
	s.run(execution.Program{File: "ts/broken.ts"}, sandbox.Failed, "TypeError", "ts/broken.ts line 3: go({} as any);", "ts/lib/go.ts line 3 in go")
	s.write("ts/lib/go.ts", "export function go( {\n")
	s.run(execution.Program{File: "ts/broken.ts"}, sandbox.Failed, "SyntaxError", "ts/lib/go.ts line 2")
	s.write("ts/lib/go.ts", "export const other = 1;\n")
	s.run(execution.Program{File: "ts/broken.ts"}, sandbox.Failed, "ImportError: ts/lib/go.ts has no export go", "ts/broken.ts line 1")
	for name, code := range map[string]string{
		"ts/out.ts": `import x from "../../../etc/passwd.json"; x`, "ts/none.ts": `import x from "./none"; x`, "ts/abs.ts": `import x from "/etc/hostname.json"; x`,
		"ts/text.ts": `import x from "./data.txt"; x`, "ts/odd.ts": `import x from "./a\u202e"; x`,
	} {
		s.write(name, code)
		s.run(execution.Program{File: name}, sandbox.Failed, "!root:")
	}
	s.write("top.ts", `export const top = 7;`)
	s.run(execution.Program{Code: `import { top } from "./top"; top`, Language: "typescript"}, sandbox.OK, "7")
}
