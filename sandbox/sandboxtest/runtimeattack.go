package sandboxtest

import (
	"strings"
	"testing"

	"sallyport/sandbox"
)

// runtimeAttacks are attacks on the interpreter and the guest: files and modules that would become the runtime.
var runtimeAttacks = []Attack{
	{
		ID: "A16", Name: "files that interpreters read are not read",
		Python: `import os, sys, subprocess
body = "open('/tmp/taken', 'a').write(__file__ if '__file__' in globals() else 'x')\n"
for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "json.py", "servers.py", "sallyport.py", "typing.py", "colorsys.py", "encodings.py", "site.py", "pythonrc.py", "__main__.py", "test.py"):
    open("/workspace/" + name, "w").write(body)
for name in ("evil.pth", "pyvenv.cfg", "python311._pth", "python3._pth", ".pythonrc", "pip.conf", ".pdbrc"):
    open("/workspace/" + name, "w").write("import os; open('/tmp/taken', 'a').write('pth')\n")
os.makedirs("/workspace/.local/lib/python3.11/site-packages"); open("/workspace/.local/lib/python3.11/site-packages/evil.pth", "w").write("import os; open('/tmp/taken', 'a').write('pth')\n")
os.makedirs("/workspace/servers/test"); open("/workspace/servers/__init__.py", "w").write(body); open("/workspace/servers/test/__init__.py", "w").write(body); open("/workspace/servers/test/echo.py", "w").write(body)
os.environ.update(PYTHONPATH="/workspace", PYTHONSTARTUP="/workspace/pythonrc.py", PYTHONHOME="/workspace", LD_PRELOAD="/workspace/evil.so")
import json, typing, colorsys, servers, sallyport
from servers.test import echo
[servers.__file__, sallyport.__file__.startswith("/opt/sallyport/"), json.__file__.startswith("/usr/lib"), colorsys.__file__.startswith("/usr/lib"), echo(3), os.path.exists("/tmp/taken")]`,
		Value: `["/servers/__init__.py",true,true,true,3,false]`,
	},
	{
		ID: "A16", Name: "files that node reads are not read",
		Node: nodeAttempts + `const evil = "require('fs').writeFileSync('/tmp/taken', 'x')";
for (const name of ["deno.json", "bunfig.toml", ".npmrc", ".noderc", ".env", "tsconfig.json"]) fs.writeFileSync("/workspace/" + name, "{}");
fs.writeFileSync("/workspace/package.json", JSON.stringify({ type: "commonjs", imports: { "#x": "./evil.js", "node:fs": "./evil.js" }, exports: "./evil.js" }));
for (const dir of ["node_modules/ws", "node_modules/fs", "node_modules/servers", "node_modules/sallyport", "servers/test"]) { fs.mkdirSync("/workspace/" + dir, { recursive: true }); fs.writeFileSync("/workspace/" + dir + "/index.js", evil); fs.writeFileSync("/workspace/" + dir + "/package.json", '{"main":"index.js"}'); }
process.env.NODE_OPTIONS = "--require /workspace/node_modules/ws/index.js"; process.env.NODE_PATH = "/workspace/node_modules";
const again = await import("node:fs"), json = await import("node:util");
export default [again.default === fs, typeof json.inspect, fs.existsSync("/tmp/taken")]`,
		Value: `[true,"function",false]`,
	},
	{
		ID: "A17", Name: "the guest taken over in its process hurts only itself",
		Python: `import sys, json, builtins, types
class Evil(types.ModuleType):
    def __getattr__(self, name): return lambda *a, **k: "forged"
real = json.dumps
sys.modules["json"] = Evil("json"); sys.modules["os"] = Evil("os")
json.dumps = lambda *a, **k: real({"type": "done", "value": {"kind": "json", "text": "\"forged\"", "size": 8}})
builtins.print = builtins.compile = builtins.exec = lambda *a, **k: None
sys.stdout = sys.stderr = None
1`,
		Status: anyStatus, Check: func(t *testing.T, o sandbox.Outcome) {
			if got := value(o); got != "1" && got != `"forged"` && got != "-" {
				t.Errorf("value %s", got)
			}
		},
	},
	{
		ID: "A17", Name: "prototypes changed under the guest of node",
		Node: `Object.prototype.toJSON = () => "forged"; Array.prototype.map = Array.prototype.push = () => { throw new Error("evil"); }; Object.prototype.type = "done"; Object.prototype.then = undefined;
globalThis.JSON = { stringify: () => "{}", parse: () => ({}) }; Promise.prototype.then = Promise.prototype.then; globalThis.Buffer = null; process.exit = () => {}; console.log = null;
export default 1`,
		// Whatever it does to itself, it ends, and no one else notices.
		NodeStatus: anyStatus,
	},
	{
		ID: "A17", Name: "an end that is forged is bounded and cleaned", Status: sandbox.Failed,
		Python: rawBridge + `
send({"type": "done", "fault": {"type": "E" * 10**6, "message": "\x1b]0;evil\x07" * 10**5, "hint": "h" * 10**5, "lines": [{"line": -1, "function": "f" * 10**4, "source": "s" * 10**4}] * 100}})
time.sleep(30)`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			f := o.Fault
			if len(f.Type) > 256 || len(f.Message) > 16<<10 || len(f.Hint) > 2<<10 || len(f.Lines) > 20 {
				t.Errorf("fault: type of %d, message of %d, hint of %d, %d lines", len(f.Type), len(f.Message), len(f.Hint), len(f.Lines))
			}
		},
	},
	{
		ID: "A17", Name: "a value that is forged is bounded", Limit: func(l *sandbox.Limits) { l.Value = 1000 },
		Python: rawBridge + `
send({"type": "done", "value": {"kind": "json\x1b[31m", "text": "x" * 10**6, "size": -5}})
time.sleep(30)`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Value == nil || len(o.Value.Text) > 1000 || strings.ContainsRune(o.Value.Kind, 0x1b) {
				t.Errorf("value: %.200s", show(o))
			}
		},
	},
	{
		ID: "A19", Name: "what is executed stays inside",
		Python: `import os, subprocess, shutil, ctypes
out = lambda *args, **more: subprocess.run(args, capture_output=True, text=True, timeout=8, **more).stdout.split()
shutil.copy("/usr/bin/id", "/tmp/id"); os.chmod("/tmp/id", 0o6755)
open("/workspace/x", "w").write("#!/proc/self/exe\nimport os; print(os.uname().release)\n"); os.chmod("/workspace/x", 0o4755)
open("/workspace/y", "w").write("#!/usr/bin/python3\nimport os; print(os.uname().release)\n"); os.chmod("/workspace/y", 0o4755)
open("/workspace/evil.so", "w").write("no library")
memory = os.memfd_create("evil"); os.write(memory, open("/usr/bin/uname", "rb").read())
def registered():
    try: open("/proc/sys/fs/binfmt_misc/register", "w").write(":evil:M::MZ::/workspace/x:"); return "registered"
    except OSError: return "not registered"
[out("/tmp/id", "-u"), out("/workspace/y"), out(f"/proc/self/fd/{memory}", "-r", pass_fds=[memory]), out("/usr/bin/uname", "-r", env={"LD_PRELOAD": "/workspace/evil.so"}), registered()]`,
		Value: `[["65534"],["4.19.0-gvisor"],["4.19.0-gvisor"],["4.19.0-gvisor"],"not registered"]`,
		Node:  nodeAttempts + `fs.copyFileSync("/usr/bin/id", "/tmp/id"); fs.chmodSync("/tmp/id", 0o6755); const out = (...a) => spawnSync(a[0], a.slice(1), { encoding: "utf8" }).stdout.trim().split("\n"); export default [out("/tmp/id", "-u"), out("/usr/bin/uname", "-r"), out("/usr/bin/uname", "-r"), out("/usr/bin/uname", "-r"), await attempt(() => fs.writeFileSync("/proc/sys/fs/binfmt_misc/register", ":evil:M::MZ::/x:")) === "ok" ? "registered" : "not registered"]`,
	},
	{
		ID: "A19", Name: "names and modes that trap a host that reads the workspace",
		Python: `import os
for name in ("-rf", "$(touch pwn)", "a;touch pwn", "x\ny", "\x1b[31m", "é" * 120, "a" * 255, "..x", "CON", "core"):
    open("/workspace/" + name, "w").write("#!/bin/sh\ntouch /tmp/pwn\n"); os.chmod("/workspace/" + name, 0o6777)
os.makedirs("/workspace/.git/hooks"); open("/workspace/.git/hooks/post-checkout", "w").write("#!/bin/sh\ntouch /tmp/pwn\n"); os.chmod("/workspace/.git/hooks/post-checkout", 0o755)
open("/workspace/.git/config", "w").write("[core]\n\tfsmonitor = touch /tmp/pwn\n"); open("/workspace/.envrc", "w").write("touch /tmp/pwn"); os.mkfifo("/workspace/fifo"); os.symlink("/etc/shadow", "/workspace/link"); os.symlink("/", "/workspace/out")
len(os.listdir("/workspace"))`,
		Value: `15`,
	},
}
