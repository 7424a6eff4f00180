package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// sessionCases are programs that run one after the other in one interpreter.
var sessionCases = []struct {
	name  string
	steps []Case
}{
	{"globals", []Case{
		{Python: "import math\nclass P:\n    def __init__(self, x): self.x = x\ndef double(p): return P(p.x * 2)\np = P(21)"},
		{Python: "q = double(p)\n[q.x, math.floor(1.5), type(q).__name__, __name__]", Value: `[42,1,"P","__main__"]`},
		{Python: "p = None\nimport sys\n[p is None, sys.modules['__main__'].q.x, sys.argv]", Value: `[true,42,["program.py"]]`},
	}},
	{"globals in node", []Case{
		{Node: "globalThis.rows = [1, 2]; globalThis.add = (x) => rows.push(x); export default 1"},
		{Node: "add(3); const fs = await import('node:fs'); globalThis.fs = fs; export default rows", Value: "[1,2,3]"},
		{Node: "export default [rows.length, typeof fs.readFileSync, typeof require('node:os').cpus, process.argv[1]]", Value: `[3,"function","function","program.ts"]`},
	}},
	{"faults have their own program's lines", []Case{
		{Python: "kept = 1\ndef fails(x):\n    return 1 / x\n\n\n"},
		{Python: "also = 2\n\nfails(0)", Status: sandbox.Failed, Check: wantFault(bridge.Fault{Type: "ZeroDivisionError", Message: "division by zero", Lines: []bridge.Line{{Line: 3, Source: "fails(0)"}}})},
		{Python: "import traceback\ntry: fails(0)\nexcept ZeroDivisionError as err: told = traceback.format_exc()\n[kept, also, 'return 1 / x' in told, 'try: fails(0)' in told]", Value: "[1,2,true,true]"},
		{Python: "\n\n1 +", Status: sandbox.Failed, Check: wantLine(3)},
	}},
	{"faults have their own program's lines in node", []Case{
		{Node: withSourceMap("globalThis.kept = 1;\nglobalThis.fails = () => {\n  throw new TypeError('no');\n};")},
		{Node: withSourceMap("\n\n\n\nfails();"), Status: sandbox.Failed, Check: wantLine(5)},
		{Node: "export default kept", Value: "1"},
	}},
	{"an exit keeps the rest", []Case{
		{Python: "x = 5\nraise SystemExit(3)", Status: sandbox.Exited, Check: wantExit(3)},
		{Python: "x", Value: "5"},
	}},
	{"an exit of node is the session's end", []Case{
		{Node: "globalThis.x = 5; process.exit(3)", Status: sandbox.Exited, Check: wantExit(3)},
		{Node: "export default typeof x", Value: `"undefined"`},
	}},
	{"the loop goes on", []Case{
		{Python: "import asyncio\nevent = asyncio.Event()\nasync def later():\n    await event.wait()\n    return 7\ntask = asyncio.ensure_future(later())\nawait asyncio.sleep(0)"},
		{Python: "event.set()\nawait task", Value: "7"},
	}},
	{"promises go on in node", []Case{
		{Node: "globalThis.wait = new Promise((resolve) => { globalThis.settle = resolve; }); export default 1"},
		{Node: "settle(7); export default await wait", Value: "7"},
	}},
	{"threads and pools", []Case{
		{Python: "from concurrent.futures import ThreadPoolExecutor\nimport time, threading\npool = ThreadPoolExecutor(3)\ndone = []\nfor i in range(6): pool.submit(lambda i=i: (time.sleep(0.02), done.append(i)))\nthreading.Thread(target=lambda: (time.sleep(0.05), done.append('t'))).start()"},
		{Python: "[len(done), pool.submit(lambda: 3).result()]", Value: "[7,3]"},
		{Python: "from sallyport import parallel, call\nparallel([lambda i=i: call('test.echo', {'x': i})['args']['x'] for i in range(40)]) == list(range(40))", Value: "true"},
	}},
	{"each has its own account", []Case{
		{Python: "from sallyport import call, emit\nemit('one')\nfirst = call('test.echo')['execution']\nprint('a')", Check: wantCounts("a\n", 1, "one")},
		{Python: "emit('two')\nsecond = call('test.echo')['execution']\nprint('b')\nfirst != second", Value: "true", Check: wantCounts("b\n", 1, "two")},
		{Python: "print('c')", Check: wantCounts("c\n", 0)},
	}},
	{"each has its own account in node", []Case{
		{Node: nodeImports + "globalThis.call = call; await emit('one'); globalThis.first = (await call('test.echo')).execution; console.log('a')", Check: wantCounts("a\n", 1, "one")},
		{Node: "console.log('b'); export default (await call('test.echo')).execution !== first", Value: "true", Check: wantCounts("b\n", 1)},
	}},
	{"threads left behind cannot call in between", []Case{
		{Python: "import threading, time\nfrom sallyport import call, ToolError\nseen = []\ndef work():\n    while len(seen) < 3:\n        try: call('test.slow' if not seen else 'test.echo')\n        except ToolError as err: seen.append(err.message); time.sleep(0.001)\nthreading.Thread(target=work, daemon=True).start()\ntime.sleep(0.05)"},
		{Python: "import time\nwhile not seen: time.sleep(0.001)\nseen[0]", Value: `"the program that made this call has ended"`},
		{Python: "call('test.echo', {'x': 1})['args']", Value: `{"x":1}`},
	}},
	{"calls left behind are nobody's in node", []Case{
		{Node: nodeImports + "globalThis.call = call; globalThis.left = call('test.slow').catch((error) => error.message); throw new Error('x')", Status: sandbox.Failed},
		{Node: "export default [await left, (await call('test.echo', { x: 1 })).args]", Value: `["the program that made this call has ended",{"x":1}]`},
	}},
	{"late rejections are nobody's in node", []Case{
		{Node: "setTimeout(() => Promise.reject(new Error('late')), 1); throw new Error('early')", Status: sandbox.Failed},
		{Node: "await new Promise((resolve) => setTimeout(resolve, 30)); export default 1", Value: "1"},
	}},
	{"memory comes back after a fault", []Case{
		{Python: "b = bytearray(1 << 40)", Status: sandbox.Failed},
		{Python: "try: bytearray(1 << 40)\nexcept MemoryError: x = 1\nx", Value: "1"},
	}},
	{"modules of the workspace", []Case{
		{Python: "open('/workspace/mine.py', 'w').write('X = 1')\nimport mine\nmine.X", Value: "1"},
		{Python: "open('/workspace/other.py', 'w').write('X = 2')\nimport other\n[mine.X, other.X]", Value: "[1,2]"},
	}},
}

// Sessions runs programs one after the other in interpreters that are kept.
func Sessions(t *testing.T, runner Runner) {
	for at, session := range sessionCases {
		t.Run(strings.ReplaceAll(session.name, " ", "-"), func(t *testing.T) {
			for _, step := range session.steps {
				step.session = fmt.Sprintf("session-%d", at)
				step.run(t, runner)
			}
		})
	}
	t.Run("apart", func(t *testing.T) {
		for _, session := range []string{"a", "b", ""} {
			Case{session: session, Python: "x = globals().get('x', 0) + 1\nx", Value: "1"}.run(t, runner)
		}
		Case{session: "a", Python: "x", Value: "1"}.run(t, runner)
	})
}

func wantLine(line int) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		if o.Fault == nil || len(o.Fault.Lines) != 1 || o.Fault.Lines[0].Line != line {
			t.Errorf("fault %+v, want line %d", o.Fault, line)
		}
	}
}

// wantCounts checks what is counted of one program alone.
func wantCounts(stdout string, calls int, emitted ...string) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		var got []string
		for _, c := range o.Emitted {
			got = append(got, c.Text)
		}
		if o.Stdout.Text != stdout || o.Calls != calls || strings.Join(got, " ") != strings.Join(emitted, " ") {
			t.Errorf("stdout %q, %d calls, emitted %q", o.Stdout.Text, o.Calls, got)
		}
	}
}
