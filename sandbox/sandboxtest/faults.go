package sandboxtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

var faultCases = []Case{
	{Name: "value of the last expression", Python: "x = [1, 2]\n{'a': x, 'b': None, 'é': 'ü'}", Value: `{"a":[1,2],"b":null,"é":"ü"}`},
	{Name: "no value", Python: "x = 1", Value: "-"},
	{Name: "a value that is no JSON", Python: "{1, 2}", Check: wantValue("text", "{1, 2}")},
	{Name: "a value in node", Node: "export default { a: [1, null], b: 'ü' }", Value: `{"a":[1,null],"b":"ü"}`},
	{Name: "a default export that is a function is called", Node: "export default async () => 5", Value: "5"},
	{Name: "a map in node is shown", Node: "export default new Map([[1, 2]])", Check: wantValue("text", "Map(1) { 1 => 2 }")},
	{Name: "await at the top level", Python: "import asyncio\nasync def f(): return 7\nx = await f()\nx + await asyncio.sleep(0, 1)", Value: "8"},
	{Name: "work that goes on after the module ends", Node: "setTimeout(() => console.log('late'), 100)", Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "late\n") }},
	{Name: "threads that go on after the program ends", Python: "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()", Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "late\n") }},
	{Name: "exit functions run", Python: "import atexit\natexit.register(print, 'bye')\nprint('hi')", Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "hi\nbye\n") }},
	{
		Name: "an exception has its type, message and lines", Python: "def f(x):\n    return 1 / x\n\nf(0)", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ZeroDivisionError", Message: "division by zero", Lines: []bridge.Line{{Line: 4, Source: "f(0)"}, {Line: 2, Function: "f", Source: "return 1 / x"}}}),
	},
	{
		Name: "a syntax error has its line", Python: "x = 1\ny = = 2", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "SyntaxError", Message: "invalid syntax", Lines: []bridge.Line{{Line: 2, Source: "y = = 2"}}}),
	},
	{
		Name: "a missing package", Python: "import numpy", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ModuleNotFoundError", Message: "No module named 'numpy'", Lines: []bridge.Line{{Line: 1, Source: "import numpy"}}, Hint: "only Python's standard library, servers and sallyport can be imported"}),
	},
	{
		Name: "an exception deep down is cut to its ends", Python: "def f(n):\n    return f(n + 1)\nf(0)", Status: sandbox.Failed,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "RecursionError" || len(o.Fault.Lines) != 10 {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "an exception in node", Node: "class Oops extends Error { name = 'Oops' }\nthrow new Oops('no')", Status: sandbox.Failed,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "Oops" || o.Fault.Message != "no" {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{Name: "a promise that nobody catches", Node: "setTimeout(async () => { throw new Error('late') }, 10)", Status: sandbox.Failed},
	{Name: "a thrown value that is no error", Node: "throw { code: 3 }", Status: sandbox.Failed, Check: wantFault(bridge.Fault{Type: "Thrown value", Message: `{"code":3}`})},
	{Name: "exit status", Python: "import sys\nprint('x')\nsys.exit(3)", Status: sandbox.Exited, Check: wantExit(3)},
	{Name: "exit with a message", Python: "import sys\nsys.exit('bad')", Status: sandbox.Exited, Check: wantExit(1)},
	{Name: "exit status 0 is an end", Python: "import sys\nprint('x')\nsys.exit()", Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "x\n") }},
	{Name: "exit without a word", Python: "import os\nos._exit(4)", Status: sandbox.Exited, Check: wantExit(4)},
	{Name: "what was printed before an exit in node is kept", Node: "console.log('x'.repeat(10000)); console.error('e'); process.exit(5)", Status: sandbox.Exited, Check: func(t *testing.T, o sandbox.Outcome) {
		if len(o.Stdout.Text) != 10001 || o.Stderr.Text != "e\n" {
			t.Errorf("stdout of %d, stderr %q", len(o.Stdout.Text), o.Stderr.Text)
		}
	}},
	{Name: "require and dynamic import in node", Node: "const os = require('os'); const fs = await import('node:fs'); export default [typeof os.cpus, fs.existsSync('/workspace')]", Value: `["function",true]`},
	{Name: "exit status in node", Node: "process.exit(5)", Status: sandbox.Exited, Check: wantExit(5)},
	{Name: "A14 killing itself", Python: "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", Status: sandbox.Crashed, Check: wantExit(137)},
	{Name: "a crash of the interpreter", Python: "import ctypes\nctypes.string_at(0)", Status: sandbox.Crashed, Check: wantExit(139)},
	{Name: "a fork that runs on reports nothing", Python: "import os, time\nif os.fork() == 0:\n    'child'\nelse:\n    time.sleep(0.3)\nos.getpid() == 1", Value: "true"},
}

func wantValue(kind, text string) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		if o.Value == nil || o.Value.Kind != kind || o.Value.Text != text {
			t.Errorf("value %+v, want %s %s", o.Value, kind, text)
		}
	}
}

func wantFault(want bridge.Fault) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		if diff := cmp.Diff(&want, o.Fault, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("fault (-want +got):\n%s", diff)
		}
	}
}

func wantExit(status int) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		if o.Exit != status {
			t.Errorf("exit status %d, want %d", o.Exit, status)
		}
	}
}
