package typecheck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/gateway/typecheck"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// lab is a checker in a real sandbox, with the wrappers of a few tools.
type lab struct {
	*typecheck.Checker
	host  *sandbox.Host
	state string
	tree  map[string][]byte

	starts atomic.Int32
	mu     sync.Mutex
	last   io.Closer
}

// tools are an upstream that has one of everything.
func tools(names ...string) []codegen.Upstream {
	up := codegen.Upstream{ID: "github", Title: "GitHub"}
	for _, name := range append([]string{"create_issue"}, names...) {
		up.Tools = append(up.Tools, tool.Tool{ID: tool.ID{Upstream: "github", Name: name}, Wire: name, Input: json.RawMessage(`{
			"type": "object", "required": ["repo", "title"], "properties": {"repo": {"type": "string"}, "title": {"type": "string"},
			"labels": {"type": "array", "items": {"type": "string"}}, "state": {"enum": ["open", "closed"]}}}`)})
	}
	return []codegen.Upstream{up}
}

func tree(ups []codegen.Upstream) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range codegen.Generate(ups) {
		files[f.Path] = f.Data
	}
	return files
}

func newLab(t testing.TB, language typecheck.Language, files map[string][]byte) *lab {
	t.Helper()
	path := filepath.Join(testutil.Checkers(t), map[typecheck.Language]string{typecheck.Python: "pyright", typecheck.TypeScript: "typescript"}[language])
	install, err := typecheck.Find(language, path)
	if err != nil {
		t.Fatal(err)
	}
	install.Files["sallyport.ts"] = runtime.TypeScript
	l := &lab{state: testutil.ShortDir(t), tree: files}
	l.host, err = sandbox.New(sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: l.state, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.host.Publish(files); err != nil {
		t.Fatal(err)
	}
	service := sandbox.Service{
		Args: install.Args, Dir: typecheck.Dir, Files: install.Files, Mounts: map[string]string{typecheck.Folder: install.Folder},
		Memory: install.Memory, Processes: 64, OpenFiles: 256,
	}
	if install.Node {
		service.Interpreter = sandbox.Node
	}
	l.Checker = typecheck.New(language, func(context.Context) (io.ReadWriteCloser, error) {
		started := service
		started.ID = fmt.Sprintf("check-%d", l.starts.Add(1))
		server, err := l.host.Serve(started)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last = server
		return server, nil
	}, &typecheck.Options{Logger: testutil.Logger(t), Backoff: time.Millisecond})
	t.Cleanup(func() {
		l.Close()
		testutil.NoProcesses(t, l.state) // the host is open: nothing is left of the checker alone
		if err := l.host.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// check waits as long as it takes.
func (l *lab) check(t testing.TB, code string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	var lines []string
	for _, w := range l.Check(code).Warnings(ctx) {
		lines = append(lines, fmt.Sprintf("%d: %s", w.Line, w.Message))
	}
	if ctx.Err() != nil {
		t.Error("the check does not end")
	}
	return lines
}

func (l *lab) expect(t *testing.T, code string, want ...string) {
	t.Helper()
	if got := l.check(t, code); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("of\n%s\nit says %q, want %q", code, got, want)
	}
}

// TestServers has one server of each language do everything: its start takes more processor time than all checks.
func TestServers(t *testing.T) {
	for language, wrong := range languages {
		t.Run(string(language), func(t *testing.T) {
			l := newLab(t, language, tree(tools()))
			for _, part := range []struct {
				name string
				test func(t *testing.T, l *lab, language typecheck.Language, wrong string)
			}{
				{"findings", findings}, {"many programs", manyPrograms}, {"changed tree", changedTree},
				{"hostile programs", hostilePrograms}, {"killed server", killedServer},
			} {
				t.Run(part.name, func(t *testing.T) { part.test(t, l, language, wrong) })
			}
		})
	}
}

func findings(t *testing.T, l *lab, language typecheck.Language, _ string) {
	t.Helper()
	map[typecheck.Language]func(*testing.T, *lab){typecheck.Python: pythonFindings, typecheck.TypeScript: typeScriptFindings}[language](t, l)
}

func pythonFindings(t *testing.T, l *lab) {
	t.Helper()
	for _, test := range []struct {
		code string
		want []string
	}{
		{"from servers.github import create_issue\ncreate_issue(repo='a', titel='b')", []string{`2: there is no parameter "titel"; did you mean "title"?`, `2: "title" must be given`}},
		{"from servers.github import create_issue\nn = 1\ncreate_issue(repo=n, title='b')", []string{`3: "repo" must be str, not Literal[1]`}},
		{"from servers import github\ngithub.create_isue(repo='a', title='b')", []string{`2: github has no "create_isue"`}},
		{"from servers.github import creat_issue", []string{`1: there is no "creat_issue" to import`}},
		{"import json\njson.dumsp({})\n'x'.uper()", []string{`2: json has no "dumsp"`, `3: Literal['x'] has no attribute "uper"`}},
		{"import re\nprint(re.match('a', 'b').group(0))", []string{`2: "group" is not a known attribute of "None"`}},
		{"if len('x') > 3:\n  y = 1\nprint(y, z)", []string{`3: "z" is not defined`, `3: "y" is possibly unbound`}},
		{"import asyncio\nasync def f(): return 1\nasync def g():\n  f()\nawait g()", []string{`4: await is missing`}},
		// Nothing is wrong with these.
		{"import asyncio, json\nfrom servers.github import create_issue\nfrom servers import github\nfrom sallyport import parallel, ToolError\n" +
			"async def f(i: int): return await create_issue.aio(repo='a', title=str(i))\nrs = await asyncio.gather(*[f(i) for i in range(3)])\n" +
			"try:\n  r = github.create_issue(repo='a', title='b', labels=['x'], state='open')\n  print(r['id'], r.x)\nexcept ToolError as e:\n  print(e.kind)\n" +
			"out = {}\nfor x in parallel(lambda: 1, lambda: 2): out[x] = x\njson.dumps(out)\nrs", nil},
		{"x = 1\nx / 0", nil},
		{"def f(:\n", nil}, // the guest's own message is enough
		{"", nil},
	} {
		l.expect(t, test.code, test.want...)
	}
}

func typeScriptFindings(t *testing.T, l *lab) {
	t.Helper()
	for _, test := range []struct {
		code string
		want []string
	}{
		{"import { create_issue } from 'servers/github';\nawait create_issue({ repo: 'a', titel: 'b' });", []string{`2: "titel" is not a property here; did you mean "title"?`}},
		{"import { create_issue } from 'servers/github';\nawait create_issue({ repo: 1, title: 'b' });", []string{`2: string is expected, not number`}},
		{"import { create_issue } from 'servers/github';\nawait create_issue({ repo: 'a' });", []string{`2: "title" must be given`}},
		{"import * as github from 'servers/github';\nawait github.create_isue({ repo: 'a', title: 'b' });", []string{`2: servers/github has no "create_isue"; did you mean "create_issue"?`}},
		{"import { create_issue } from 'servers/github';\nconst r = create_issue({ repo: 'a', title: 'b' });\nr.id", []string{`3: a Promise has no "id": is await missing?`}},
		{"const names = ['a'];\nnames.psuh('b');\nmissing(1);", []string{`2: Property 'psuh' does not exist on type 'string[]'`, `3: Cannot find name 'missing'`}},
		{"const m = 'a'.match(/b/);\nm.length", []string{`2: 'm' is possibly 'null'`}},
		// Nothing is wrong with these.
		{"import { create_issue } from 'servers/github';\nimport * as github from 'servers/github';\nimport { parallel, ToolError } from 'sallyport';\nimport { readFileSync } from 'node:fs';\nimport path from 'path';\n" +
			"const out = {};\nconst list = [];\nfor (const i of [1, 2]) { out[i] = i; list.push(i); }\nconst r = await create_issue({ repo: 'a', title: 'b', state: 'open' });\nconsole.log(r.id, r[0].x, path.join('a', 'b'), readFileSync, new URL('x:y').href, Buffer.from('x'));\n" +
			"try { await github.create_issue({ repo: 'a', title: 'b', labels: ['x'] }); } catch (e) { console.log(e.message, e instanceof ToolError); }\nsetTimeout(() => {}, 1);\nfunction f(x) { return x.y; }\nconst t = await parallel(() => f(1));\nt", nil},
		{"export default 1", nil},
		{"null.x", nil},
		{"", nil},
	} {
		l.expect(t, test.code, test.want...)
	}
}

// languages are a program per language that has one fault, which no cache knows for another's.
var languages = map[typecheck.Language]string{
	typecheck.Python:     "from servers.github import create_issue\ncreate_issue(repo='%d', title=1)",
	typecheck.TypeScript: "import { create_issue } from 'servers/github';\nawait create_issue({ repo: '%d', title: 1 });",
}

func manyPrograms(t *testing.T, l *lab, _ typecheck.Language, wrong string) {
	t.Helper()
	for i := range 100 {
		if got := l.check(t, fmt.Sprintf(wrong, i)); len(got) != 1 || !strings.HasPrefix(got[0], "2: ") {
			t.Fatalf("program %d: %q", i, got)
		}
	}
	if n := l.starts.Load(); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// killedServer: the next program but one is checked again.
func killedServer(t *testing.T, l *lab, _ typecheck.Language, wrong string) {
	t.Helper()
	for range 3 {
		if got := l.check(t, fmt.Sprintf(wrong, 1)); len(got) != 1 {
			t.Fatalf("%q", got)
		}
		files, _ := filepath.Glob(filepath.Join(l.state, "host-*", "check-*", "sentry.pid"))
		if len(files) != 1 {
			t.Fatalf("sandboxes: %v", files)
		}
		var pid int
		data, err := os.ReadFile(files[0])
		if _, scanErr := fmt.Sscan(string(data), &pid); err != nil || scanErr != nil {
			t.Fatal(err, scanErr)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		testutil.Eventually(t, "the checker is back", time.Minute, func() bool { return len(l.check(t, fmt.Sprintf(wrong, 2))) == 1 })
	}
}

// changedTree: what Publish shows is what programs are checked against.
func changedTree(t *testing.T, l *lab, language typecheck.Language, wrong string) {
	t.Helper()
	starts := l.starts.Load()
	added := "from servers.github import added\nadded(repo='a', title=1)"
	if language == typecheck.TypeScript {
		added = "import { added } from 'servers/github';\nawait added({ repo: 'a', title: 1 });"
	}
	if got := l.check(t, fmt.Sprintf(wrong, 1)); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	before := l.check(t, added)
	ups := tools("added")
	l.publish(t, tree(ups))
	if got := l.check(t, added); len(got) != 1 || strings.Join(got, "") == strings.Join(before, "") || !strings.HasPrefix(got[0], "2: ") {
		t.Errorf("of a tool that was added: %q, before %q", got, before)
	}
	ups[0].Tools[0].Input = json.RawMessage(`{"type": "object", "properties": {"repo": {"type": "string"}, "title": {"type": "integer"}}}`)
	l.publish(t, tree(ups))
	if got := l.check(t, fmt.Sprintf(wrong, 1)); len(got) > 0 {
		t.Errorf("of a tool that takes a number now: %q", got)
	}
	l.publish(t, tree(tools()))
	if got := l.check(t, fmt.Sprintf(wrong, 1)); len(got) != 1 {
		t.Errorf("of the tool as it was: %q", got)
	}
	if got := l.check(t, added); len(got) == 0 || !strings.HasPrefix(got[0], "1: ") {
		t.Errorf("of a tool that has gone: %q", got)
	}
	if n := l.starts.Load(); n != starts {
		t.Errorf("it was started %d times", n-starts)
	}
}

// publish shows another tree and tells the checker.
func (l *lab) publish(t *testing.T, next map[string][]byte) {
	t.Helper()
	if err := l.host.Publish(next); err != nil {
		t.Fatal(err)
	}
	l.NotifyChanges(typecheck.Changes(l.tree, next))
	l.tree = maps.Clone(next)
}

// hostilePrograms neither see the host nor stop the checker for those that come after them.
func hostilePrograms(t *testing.T, l *lab, language typecheck.Language, wrong string) {
	t.Helper()
	secret := filepath.Join(testutil.ShortDir(t), "secret.ts")
	if err := os.WriteFile(secret, []byte("export const canary_0123456789: string = 1;\ncanary_abcdef\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	programs := map[typecheck.Language][]string{
		typecheck.TypeScript: {
			"/// <reference path=\"" + secret + "\" />\nmissing();",
			"/// <reference path=\"/etc/passwd\" />\nmissing();",
			"/// <reference types=\"" + filepath.Dir(secret) + "\" />\nmissing();",
			"import { canary } from \"" + secret + "\";\nimport x from \"/etc/shadow\";\nimport y from \"/proc/self/environ\";\ncanary.x; x.y(); y.z();",
			"import { canary } from \"" + strings.Repeat("../", 20) + secret[1:] + "\";\ncanary.x.y",
			"type T<N extends number, A extends any[] = []> = A['length'] extends N ? A : T<N, [...A, any, ...A]>;\nconst x: T<99999> = 1;\n" +
				"type U<S extends string> = S extends `${infer A}${infer B}` ? U<`${B}${A}${B}${A}`> : S;\nconst y: U<'abcdefghijklmnopqrstuvwxyz'> = 1;",
			"type A = " + strings.Repeat("{a:'x'|'y'}&", 2000) + "{};\nconst a: A = 1;",
			"let x = " + strings.Repeat("[", 60000) + strings.Repeat("]", 60000) + ";\nmissing();",
			"let x = " + strings.Repeat("{a:", 40000) + "1" + strings.Repeat("}", 40000) + ";",
			strings.Repeat("missing();\n", 11000),
			strings.Repeat("x", 1<<20),
		},
		typecheck.Python: {
			"import sys; sys.path.insert(0, '" + filepath.Dir(secret) + "')\nfrom secret import canary\nmissing()",
			"# pyright: strict, reportMissingImports=true\nfrom ....etc import passwd\nmissing()",
			"x = " + strings.Repeat("[", 60000) + strings.Repeat("]", 60000) + "\nmissing()",
			"x = " + strings.Repeat("(lambda: ", 5000) + "1" + strings.Repeat(")", 5000),
			"from typing import *\n" + "T = Union[int, str]\n" + strings.Repeat("T = Union[Tuple[T, T], List[T]]\n", 40) + "x: T = 1\nx.y",
			"def f(x):\n" + strings.Repeat("  if x: x = [x]\n  else: x = (x, x)\n", 200) + "  return x.y\nf(1).z",
			"x = {" + strings.Repeat("'a': {'b': 1}, ", 5000) + "}\nx.y",
			strings.Repeat("missing()\n", 12000),
			strings.Repeat("x", 1<<20),
		},
	}
	l.check(t, "")
	for _, program := range programs[language] {
		begin := time.Now()
		got := strings.Join(l.check(t, program), "\n")
		t.Logf("%.60q: %d ms, %.200q", program, time.Since(begin).Milliseconds(), got)
		if strings.Contains(got, "canary_") || strings.Contains(got, "root:") {
			t.Errorf("a file of the host is told: %s", got)
		}
		testutil.Eventually(t, "the next program is checked", time.Minute, func() bool { return len(l.check(t, fmt.Sprintf(wrong, 1))) == 1 })
	}
	t.Logf("%d starts", l.starts.Load())
}
