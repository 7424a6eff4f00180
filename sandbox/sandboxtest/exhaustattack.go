package sandboxtest

import (
	"strings"
	"testing"

	"sallyport/sandbox"
)

func smallMemory(l *sandbox.Limits) { l.Memory = 200 << 20 }

// wantFaultType wants an exception of that kind.
func wantFaultType(kinds ...string) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		for _, kind := range kinds {
			if o.Fault != nil && o.Fault.Type == kind {
				return
			}
		}
		t.Errorf("fault %+v, want %v", o.Fault, kinds)
	}
}

// memoryAttacks are programs that want all memory there is, each in another way.
var memoryAttacks = []Attack{
	{
		ID: "C01", Name: "arrays", Limit: smallMemory, Status: sandbox.Failed, NodeStatus: sandbox.OutOfMemory,
		Python: "b = []\nwhile 1: b.append(bytearray(4 << 20))",
		Node:   "const b = []; for (;;) b.push(new Uint8Array(4 << 20).fill(1));",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Status == sandbox.Failed {
				wantFaultType("MemoryError")(t, o)
			}
		},
	},
	{
		ID: "C01", Name: "by many processes", Limit: smallMemory, Status: sandbox.OutOfMemory,
		Python: "import os, time\nfor i in range(20):\n    if os.fork() == 0:\n        b = bytearray(60 << 20)\n        time.sleep(30)\ntime.sleep(30)",
		Node:   `const { spawn } = await import("node:child_process"); for (let i = 0; i < 20; i++) spawn("/usr/bin/python3", ["-c", "b = bytearray(60 << 20); import time; time.sleep(30)"]); await new Promise((ok) => setTimeout(ok, 15000))`,
	},
	{
		ID: "C01", Name: "in files", Limit: smallMemory, Status: sandbox.OutOfMemory,
		Python: "import time\nfor at in ('/workspace', '/tmp', '/dev/shm'):\n    try:\n        for i in range(30): open(f'{at}/{i}', 'wb').write(bytes(8 << 20))\n    except OSError: pass\ntime.sleep(10)",
		Node:   `const fs = await import("node:fs"); for (const at of ["/workspace", "/tmp", "/dev/shm"]) try { for (let i = 0; i < 30; i++) fs.writeFileSync(at + "/" + i, Buffer.alloc(8 << 20, 1)); } catch {} await new Promise((ok) => setTimeout(ok, 10000))`,
	},
	{
		ID: "C01", Name: "without names", Limit: smallMemory, Status: sandbox.OutOfMemory,
		Python: "import os, time\nkeep = []\nfor i in range(60):\n    f = os.memfd_create('x'); os.write(f, bytes(8 << 20)); keep.append(f)\ntime.sleep(10)",
	},
	{
		ID: "C01", Name: "shared", Limit: smallMemory, Status: sandbox.OutOfMemory,
		Python: "import os, mmap, time\nfor i in range(12):\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 60 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n        for at in range(0, 60 << 20, 4096): m[at] = 1\n        time.sleep(30)\ntime.sleep(30)",
	},
	{
		ID: "C01", Name: "in the interpreter's heap", Limit: smallMemory, Status: sandbox.Failed, NodeStatus: sandbox.OutOfMemory,
		Python: "d = {}\nwhile True: d[len(d)] = str(len(d)) * 1000",
		Node:   "let a = []; for (;;) a = [a, { b: String(Math.random()) + 'x' }];",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Status == sandbox.Failed {
				wantFaultType("MemoryError")(t, o)
			}
		},
	},
	{
		ID: "C01", Name: "all at once", Limit: smallMemory, Status: sandbox.Failed, NodeStatus: sandbox.OutOfMemory,
		Python: "b = bytearray(1 << 40)", Node: "const b = new Uint8Array(2 ** 32).fill(1);",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Status == sandbox.Failed {
				wantFaultType("MemoryError")(t, o)
			}
		},
	},
	{
		ID: "C01", Name: "a number without end", Limit: func(l *sandbox.Limits) { smallMemory(l); shortTimeout(l) }, Status: sandbox.TimedOut,
		Python: "10 ** 10 ** 10", Node: "let n = 3n; for (;;) n = n * n % (2n ** 100000n) + 3n;",
	},
}

// resourceAttacks are programs that want everything else: processes, files, room, output, calls, time.
var resourceAttacks = []Attack{
	{
		ID: "C02", Name: "processes", Limit: func(l *sandbox.Limits) { l.Processes = 32 },
		Python: "import os, errno\nn = 0\nwhile True:\n    try: pid = os.fork()\n    except OSError as e:\n        code = errno.errorcode[e.errno]; break\n    if pid == 0:\n        import time; time.sleep(30); os._exit(0)\n    n += 1\n[code, 20 < n < 32]",
		Value:  `["EAGAIN",true]`,
	},
	{
		ID: "C04", Name: "descriptors of every kind",
		Python: "import errno, os, socket\ndef full(f):\n    keep = []\n    try:\n        while True: keep.append(f())\n    except OSError as e: return errno.errorcode[e.errno], len(keep) < 256\nfull(lambda: open('/dev/null')), full(socket.socket), full(lambda: [os.fdopen(f) for f in os.pipe()]), full(lambda: open('/servers/test/echo.py')), full(lambda: os.fdopen(os.dup(1)))",
		Value:  `[["EMFILE",true],["EMFILE",true],["EMFILE",true],["EMFILE",true],["EMFILE",true]]`,
	},
	{
		ID: "C04", Name: "descriptors in node",
		Node:  `const fs = await import("node:fs"); const keep = []; let code; try { for (;;) keep.push(fs.openSync("/dev/null")); } catch (e) { code = e.code; } export default [code, keep.length < 256]`,
		Value: `["EMFILE",true]`,
	},
	{
		ID: "C05", Name: "the workspace by size", Limit: func(l *sandbox.Limits) { l.Workspace = 32 << 20 },
		Python: "import errno, os\ntry:\n    for i in range(30): open(f'/workspace/{i}', 'wb').write(bytes(10 << 20))\nexcept OSError as e:\n    n = errno.errorcode[e.errno]\nn, sum(os.stat('/workspace/' + f).st_size for f in os.listdir('/workspace')) <= 32 << 20",
		Node:   `const fs = await import("node:fs"); let code; try { for (let i = 0; i < 30; i++) fs.writeFileSync("/workspace/" + i, Buffer.alloc(10 << 20)); } catch (e) { code = e.code; } export default [code, fs.readdirSync("/workspace").reduce((n, f) => n + fs.statSync("/workspace/" + f).size, 0) <= 32 << 20]`,
		Value:  `["ENOSPC",true]`,
	},
	{
		ID: "C05", Name: "the largest file", Limit: func(l *sandbox.Limits) { l.Workspace, l.FileSize = 32<<20, 16<<20 },
		Python: "import errno, os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ndef name(f):\n    try: f(); return 'made'\n    except OSError as e: return errno.errorcode[e.errno]\nf = open('/workspace/x', 'wb')\ndef seek(): f.seek(1 << 40); f.write(b'x'); f.flush()\n[name(lambda: f.truncate(1 << 40)), name(lambda: os.posix_fallocate(f.fileno(), 0, 1 << 40)), name(seek), os.stat('/workspace/x').st_size < 32 << 20]",
		Value:  `["EFBIG","EFBIG","EFBIG",true]`,
	},
	{
		ID: "C07", Name: "output by other ways", Status: sandbox.Flooded,
		Python: "import os, subprocess\nsubprocess.Popen(['/usr/bin/yes', 'A' * 4000], stderr=1).wait()",
		Node:   `const { spawnSync } = await import("node:child_process"); spawnSync("/usr/bin/yes", ["A".repeat(4000)], { stdio: ["ignore", 2, 2] })`,
		Check:  wantCut,
	},
	{
		ID: "C07", Name: "output without end", Status: sandbox.Flooded,
		Python: "import sys\nwhile 1: sys.stdout.write('A' * 65536)",
		Node:   `const s = "A".repeat(65536); for (;;) process.stdout.write(s);`,
		Check:  wantCut,
	},
	{
		ID: "C08", Name: "output that is no text", Status: sandbox.Flooded,
		Python: "import sys\nfor i in range(40):\n    sys.stderr.buffer.write(b'\\xff\\x00\\x1b[2J' * 10**6); sys.stdout.buffer.write(b'\\xed\\xa0\\x80\\xc3' * 10**6)",
		Node:   `const fs = await import("node:fs"); const b = Buffer.alloc(1e7, 0xff); for (let i = 0; i < 40; i++) { try { fs.writeSync(2, b); } catch {} try { fs.writeSync(1, b); } catch {} }`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if strings.ContainsRune(o.Stderr.Text+o.Stdout.Text, 0) || len(o.Stderr.Text) > 60<<10 || len(o.Stdout.Text) > 60<<10 {
				t.Errorf("kept %d and %d bytes", len(o.Stdout.Text), len(o.Stderr.Text))
			}
		},
	},
	{
		ID: "C10", Name: "daemons that outlive the program",
		Python: "import os, time, signal\nr, w = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n        os.write(w, b'x'); time.sleep(3600)\n    os._exit(0)\nos.wait(); os.read(r, 1).decode()",
		Value:  `"x"`,
	},
	{
		ID: "C10", Name: "asleep beyond the limit with children", Status: sandbox.TimedOut, Limit: shortTimeout,
		Python: "import os, time, signal\nfor s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM): signal.signal(s, signal.SIG_IGN)\nfor i in range(5):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(3600)\ntime.sleep(3600)",
		Node:   `const { spawn } = await import("node:child_process"); process.on("SIGTERM", () => {}); for (let i = 0; i < 5; i++) spawn("/usr/bin/sleep", ["3600"], { detached: true, stdio: "ignore" }).unref(); await new Promise((ok) => setTimeout(ok, 3600e3))`,
	},
	{
		ID: "C10", Name: "busy beyond the limit with children", Status: sandbox.TimedOut, Limit: shortTimeout,
		Python: "import os\nfor i in range(6):\n    try: os.fork()\n    except BlockingIOError: pass\nwhile True: pass", // the limit of processes ends the forks of some
		Node:   `const { Worker } = await import("node:worker_threads"); for (let i = 0; i < 4; i++) new Worker("for (;;);", { eval: true }); for (;;);`,
	},
	{
		ID: "C11", Name: "a flood of calls", Limit: func(l *sandbox.Limits) { l.Calls = 300 },
		Python: "from sallyport import call, ToolError\ndef many():\n    n = 0\n    try:\n        for i in range(100000):\n            call('test.echo', {}); n += 1\n    except ToolError as e: return [n, e.kind]\nmany()",
		Node:   nodeImports + `let n = 0, kind; try { for (let i = 0; i < 100000; i++) { await call("test.echo", {}); n++; } } catch (e) { kind = e.kind; } export default [n, kind]`,
		Value:  `[300,"limit"]`,
		Check:  wantCalls(300),
	},
	{
		ID: "C11", Name: "a flood of calls at once", Limit: func(l *sandbox.Limits) { l.Calls, l.Concurrency = 300, 4 },
		Python: rawBridge + `
import threading
def flood():
    for i in range(2000): send({"type": "call", "id": i, "tool": "test.echo", "args": {"i": i}})
threading.Thread(target=flood).start()
answers = [receive() for _ in range(2000)]
[sum(a["type"] == "result" for a in answers), sum(a["type"] == "error" and a["error"]["kind"] == "limit" for a in answers), len({a["id"] for a in answers})]`,
		Node:  nodeImports + `const all = await Promise.allSettled(Array.from({ length: 2000 }, (_, i) => call("test.echo", { i }))); export default [all.filter((a) => a.status === "fulfilled").length, all.filter((a) => a.reason?.kind === "limit").length, 2000]`,
		Value: `[300,1700,2000]`,
		Check: wantCalls(300),
	},
}

func wantCut(t *testing.T, o sandbox.Outcome) {
	if len(o.Stdout.Text) > 60<<10 || len(o.Stderr.Text) > 60<<10 || o.Stdout.Cut+o.Stderr.Cut < 1<<20 {
		t.Errorf("kept %d and %d bytes, cut %d", len(o.Stdout.Text), len(o.Stderr.Text), o.Stdout.Cut+o.Stderr.Cut)
	}
}

func wantCalls(n int) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		if o.Calls != n {
			t.Errorf("%d calls, want %d", o.Calls, n)
		}
	}
}
