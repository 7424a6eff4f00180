package sandboxtest

import (
	"slices"
	"strings"
	"testing"

	"sallyport/sandbox"
)

// Remains is an attack by a program on the programs that run after it in the same sandbox, and on those of other owners.
type Remains struct {
	ID, Name    string
	Interpreter sandbox.Interpreter
	// Limit changes the default limits of all programs.
	Limit func(l *sandbox.Limits)
	// Leave is the attack. Its value is not looked at, unless Refused is set: then no attempt in it may be "ok".
	Leave   string
	Refused bool
	// Find looks for what is left, and returns Want when it finds nothing.
	Find, Want string
	// Gone says that the attack takes its sandbox with it.
	Gone bool
	// Ahead says that the next program is run by a process that waited for it.
	Ahead bool
}

// ReuseAttacks are group R: attacks on the reuse of sandboxes.
func ReuseAttacks() []Remains {
	return slices.Concat(processRemains, kernelRemains, waitingRemains)
}

// lookAround is Python that lists the processes that a program sees, and tells whether it can signal another.
const lookAround = attempts + `
def others(): return [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
`

var processRemains = []Remains{
	{
		ID: "R01", Name: "daemons that write to the output of the next program", Interpreter: sandbox.Python,
		Leave: `import os, time, signal
r, w = os.pipe()
for n in range(2):
    if os.fork() == 0:
        os.setsid()
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
        if os.fork() == 0:
            os.write(w, b"x")
            while True: os.write(1, b"left"); os.write(2, b"left"); time.sleep(0.001)
        os._exit(0)
for n in range(2): os.read(r, 1)
0`,
		Find: lookAround + `
import time
time.sleep(0.1)
[others(), attempt(lambda: os.kill(-1, 0))]`,
		Want: `[[],"ESRCH"]`,
	},
	{
		ID: "R01", Name: "daemons of node", Interpreter: sandbox.Node,
		Leave: nodeAttempts + `const { spawn } = await import("node:child_process");
for (let n = 0; n < 4; n++) spawn("/usr/bin/sh", ["-c", "trap '' TERM HUP INT; while :; do echo left; sleep 0.01; done"], { detached: true, stdio: ["ignore", 1, 2] }).unref();
await new Promise((ok) => setTimeout(ok, 200)); process.exit(0)`,
		Find: nodeAttempts + `await new Promise((ok) => setTimeout(ok, 100)); export default [fs.readdirSync("/proc").filter((p) => +p && +p !== process.pid), await attempt(() => process.kill(-1, 0))]`,
		Want: `[[],"ESRCH"]`,
	},
	{
		ID: "R02", Name: "the zygote by its process number", Interpreter: sandbox.Python, Refused: true,
		Leave: attempts + `
import signal
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
text = ctypes.create_string_buffer(b"x" * 64); vector = Vector(ctypes.addressof(text), 64)
pids = [p for p in [os.getppid(), *range(2, 400)] if p != os.getpid()]
def each(f): return sorted({attempt(lambda: f(p)) for p in pids})
[os.getppid() == 0 or "ok", each(lambda p: sys(101, 16, p, 0, 0)), each(lambda p: sys(101, 0x4206, p, 0, 0)), each(lambda p: sys(311, p, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)),
 each(lambda p: open(f"/proc/{p}/mem", "r+b")), each(lambda p: open(f"/proc/{p}/maps")), each(lambda p: sys(434, p, 0)), each(lambda p: os.kill(p, signal.SIGKILL) if p else os.kill(2, 9)),
 each(lambda p: sys(302, p or 2, 7, 0, ctypes.byref(vector))), attempt(lambda: os.killpg(2, signal.SIGKILL)), attempt(lambda: os.kill(-1, signal.SIGKILL))]`,
		Find: `6 * 7`, Want: `42`,
	},
	{
		ID: "R02", Name: "the zygote of node by its process number", Interpreter: sandbox.Node, Refused: true,
		Leave: nodeAttempts + `const all = {}; const own = fs.readdirSync("/proc/self/task"); for (let p = 2; p < 300; p++) { if (own.includes(String(p))) continue; all["kill " + await attempt(() => process.kill(p, "SIGUSR1"))] = 1; all[await attempt(() => fs.openSync("/proc/" + p + "/mem", "r+"))] = 1; all[await attempt(() => fs.readdirSync("/proc/" + p + "/fd"))] = 1; }
export default [process.ppid === 0 ? "no parent" : "ok", Object.keys(all).map((k) => k === "kill ok" ? "ok" : k), await attempt(() => process.kill(-1, "SIGKILL"))]`,
		Find: `export default 6 * 7`, Want: `42`,
	},
	{
		ID: "R03", Name: "signals to the group, to the session, and by the end of a child", Interpreter: sandbox.Python,
		Leave: attempts + `
import signal
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGSTOP if 0 else signal.SIGCONT):
    attempt(lambda: os.kill(0, s)); attempt(lambda: os.killpg(os.getpgrp(), s))
    child = None
    try: child = sys(56, 0x8000 | s, 0, 0, 0, 0)
    except OSError: pass
    if child == 0: os._exit(0)
    other = sys(56, int(s), 0, 0, 0, 0)
    if other == 0: os._exit(0)
    attempt(lambda: os.waitpid(other, 0x40000000))
0`,
		Find: `import os, signal, time; time.sleep(0.2); [os.getpgrp(), os.getsid(0), signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL, len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), len(signal.sigpending())]`,
		Want: `[1,1,true,0,0]`,
	},
	{
		ID: "R05", Name: "lowered limits, priority, mask and folder", Interpreter: sandbox.Python,
		Leave: `import os, resource as r
os.umask(0o777); os.nice(5); os.chdir("/"); os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
for kind in (r.RLIMIT_STACK, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_DATA): r.setrlimit(kind, (1 << 20, 1 << 20))
r.setrlimit(r.RLIMIT_NPROC, (1, 1)); r.setrlimit(r.RLIMIT_NOFILE, (20, 20))
0`,
		Find: `import os, resource as r
[oct(os.umask(0)), os.nice(0), os.getcwd(), len(os.sched_getaffinity(0)) == os.cpu_count(), r.getrlimit(r.RLIMIT_NPROC), r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_FSIZE)[0] >> 20, r.getrlimit(r.RLIMIT_CPU)[0], r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_AS)[0] >> 20]`,
		Want: `["0o22",0,"/workspace",true,[31,32],[256,256],256,-1,[0,0],448]`,
	},
	{
		ID: "R11", Name: "files and variables that an interpreter reads", Interpreter: sandbox.Python,
		Leave: `import os, sys, builtins, json, site
evil = "raise SystemExit('taken')"
for at in ("/workspace", "/tmp", "/dev/shm", os.path.expanduser("~"), "/workspace/.local/lib/python3.11/site-packages"):
    os.makedirs(at, exist_ok=True)
    for name in ("sitecustomize.py", "usercustomize.py", "json.py", "colorsys.py", "sallyport.py", "servers.py", "guest.py", "sallyport_fault.py", "x.pth", "pyvenv.cfg"): open(at + "/" + name, "w").write(evil)
os.environ.update(PYTHONPATH="/workspace", PYTHONSTARTUP="/workspace/json.py", PYTHONHASHSEED="0", LD_PRELOAD="/workspace/x.so")
sys.path.insert(0, "/tmp"); sys.meta_path.clear(); sys.path_hooks.clear(); sys.modules["colorsys"] = sys; builtins.open = print; json.dumps = lambda *a, **k: '1'
sys.settrace(lambda *a: None); sys.stdout = None
0`,
		Find: `import os, sys, json, colorsys, servers, sallyport
[colorsys.__file__.startswith("/usr/lib"), json.dumps([2]), servers.__file__, sallyport.__file__.startswith("/opt/sallyport/"), [k for k in os.environ if k.startswith(("PYTHON", "LD_"))], "/tmp" in sys.path, os.listdir("/workspace"), os.listdir("/dev/shm"), sys.gettrace() is None]`,
		Want: `[true,"[2]","/servers/__init__.py",true,[],false,[],[],true]`,
	},
	{
		ID: "R11", Name: "files and prototypes that node reads", Interpreter: sandbox.Node,
		Leave: nodeAttempts + `for (const at of ["/workspace", "/tmp", "/dev/shm"]) { for (const dir of ["fs", "sallyport", "servers"]) { fs.mkdirSync(at + "/node_modules/" + dir, { recursive: true }); fs.writeFileSync(at + "/node_modules/" + dir + "/index.js", "process.exit(9)"); } fs.writeFileSync(at + "/package.json", '{"type":"commonjs"}'); }
process.env.NODE_OPTIONS = "--require /tmp/node_modules/fs/index.js"; process.env.NODE_PATH = "/tmp/node_modules";
Object.prototype.polluted = 1; Array.prototype.map = () => ["left"]; Function.prototype.call = Promise.prototype.then = null; fs.readFileSync = () => "left"; process.chdir("/tmp"); process.title = "left"; globalThis.JSON = null; process.exit(0)`,
		Find: nodeAttempts + `const again = await import("node:fs"); const x = {}; for (const k in {}) x[k] = 1;
export default [again.default === fs, x, [1].map((n) => n + 1), JSON.stringify([2]), fs.readFileSync("/proc/self/comm", "utf8").trim() === "left", Object.keys(process.env).filter((k) => k.startsWith("NODE_")), fs.readdirSync("/workspace"), fs.existsSync("/tmp/node_modules"), process.cwd()]`,
		Want: `[true,{},[2],"[2]",false,[],[],false,"/workspace"]`,
	},
	{
		ID: "R13", Name: "frames after the end", Interpreter: sandbox.Python,
		Leave: rawBridge + `
done = {"type": "done", "value": {"kind": "json", "text": "\"left\"", "size": 6}}
try:
    send(done); send(done)
    for n in range(40): send({"type": "call", "id": n, "tool": "test.echo", "args": {"late": n}})
    send(done)
except OSError: pass
os._exit(0)`,
		Find: `from servers.test import echo
echo("mine")`, Want: `"mine"`,
	},
	{
		ID: "R13", Name: "a value that comes before the end of a process with another status", Interpreter: sandbox.Python, Gone: true,
		Leave: rawBridge + `
send({"type": "done", "value": {"kind": "json", "text": "1", "size": 1}}); os._exit(205)`,
		Find: `6 * 7`, Want: `42`,
	},
	{
		ID: "R14", Name: "a program that goes on after its end", Interpreter: sandbox.Python, Gone: true,
		Leave: rawBridge + `
send({"type": "done", "value": {"kind": "json", "text": "1", "size": 1}})
for n in range(4): os.fork()
while True: pass`,
		Find: `6 * 7`, Want: `42`,
	},
	{
		ID: "R14", Name: "a program that takes memory after its end", Interpreter: sandbox.Python, Gone: true, Limit: smallMemory,
		Leave: rawBridge + `
send({"type": "done", "value": {"kind": "json", "text": "1", "size": 1}})
keep = []
while True: keep.append(os.memfd_create("x")); os.write(keep[-1], bytes(8 << 20))`,
		Find: `6 * 7`, Want: `42`,
	},
	{
		ID: "R15", Name: "the exit status of a step that failed", Interpreter: sandbox.Python, Gone: true,
		Leave: `import os; os._exit(205)`, Find: `6 * 7`, Want: `42`,
	},
	{
		ID: "R15", Name: "the exit status of a step that failed, in node", Interpreter: sandbox.Node, Gone: true,
		Leave: `process.kill(process.pid, "SIGKILL"); process.reallyExit(206)`, Find: `export default 6 * 7`, Want: `42`,
	},
}

// checkRefused fails the test if an attempt of an attack succeeded.
func (a Remains) checkRefused(t *testing.T, o sandbox.Outcome) {
	t.Helper()
	if a.Refused && (o.Value == nil || strings.Contains(o.Value.Text, `"ok"`)) {
		t.Errorf("an attempt succeeded: %s", show(o))
	}
}
