package sandboxtest

import (
	"os"
	"strings"
	"testing"

	"sallyport/sandbox"
)

// attempts is outcomes with a way to call the C library, and one to make system calls that it has no name for.
const attempts = outcomesHelper + `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def c(f, *args):
    n = f(*args)
    if n < 0: raise OSError(ctypes.get_errno(), "")
    return n
def sys(number, *args): return c(libc.syscall, *[ctypes.c_long(a) if isinstance(a, int) else a for a in (number, *args)])
def tried(**what): return {name: attempt(f) for name, f in what.items()}
`

// nodeAttempts is the like for node.
const nodeAttempts = `import fs from "node:fs"; import os from "node:os"; import net from "node:net"; import path from "node:path"; import { spawnSync } from "node:child_process";
const attempt = async (f) => { try { await f(); return "ok"; } catch (e) { return String(e.code ?? e.name); } };
const runs = (...args) => { const r = spawnSync(args[0], args.slice(1), { timeout: 8000 }); if (r.error) throw r.error; if (r.status !== 0) throw Object.assign(new Error(), { code: "status " + (r.signal ?? "not 0") }); };
const tried = async (what) => { const all = {}; for (const [name, f] of Object.entries(what)) all[name] = await attempt(f); return all; };
`

// hostAttacks are attacks on what the host has: its kernel's name, files, environment and sockets.
var hostAttacks = []Attack{
	{
		ID: "A01", Name: "the kernel is not the host's",
		Python: attempts + `
import platform
dmesg = ctypes.create_string_buffer(1 << 16)
libc.klogctl(3, dmesg, 1 << 16)
texts = [open("/proc/version").read(), os.uname().release, platform.version(), dmesg.value.decode()]
["gvisor" in texts[0], os.uname().release, os.uname().nodename, texts]`,
		Node: nodeAttempts + `const texts = [fs.readFileSync("/proc/version", "utf8"), os.release(), os.version(), os.hostname()];
export default [texts[0].includes("gvisor"), os.release(), os.hostname(), texts]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if got := value(o); !strings.HasPrefix(got, `[true,"4.19.0-gvisor","sandbox",`) || strings.Contains(got, hostRelease()) {
				t.Errorf("the kernel says %s", got)
			}
		},
	},
	{
		ID: "A02", Name: "files of the host by path", Soft: true,
		Python: attempts + `
paths = ["/etc/shadow", "/root/.ssh/id_rsa", "/root/.netrc", "/root/.bashrc", "@DIR@/settings/upstreams.yaml", "@DIR@/world-readable", "@DIR@/workspaces/other/notes.txt", "@STATE@", "/proc/@PID@/environ",
 "/proc/1/root@DIR@/world-readable", "/proc/self/root/../..@DIR@/world-readable", "/proc/self/cwd/../../..@DIR@/world-readable", "/../../..@DIR@/world-readable", "/proc/thread-self/root@DIR@/world-readable",
 "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/kallsyms", "/proc/self/mem/x", "/proc/self/map_files/0", "/boot", "/var/lib", "/srv", "/mnt", "/media", "/run/user", "/usr/local/etc", "/lost+found", "/.dockerenv"]
for i, p in enumerate(paths):
    os.symlink(p, f"/workspace/link{i}")
[{p: attempt(lambda: open(p, "rb").read(1)) for p in paths}, {i: attempt(lambda: open(f"/workspace/link{i}", "rb").read(1)) for i in range(len(paths))}]`,
		Node: nodeAttempts + `const paths = ["/etc/shadow", "/root/.ssh/id_rsa", "@DIR@/world-readable", "@DIR@/settings/upstreams.yaml", "@STATE@/x", "/proc/@PID@/environ", "/proc/1/root@DIR@/world-readable", "/proc/self/root/../..@DIR@/world-readable", "/var/lib"];
const all = {}; for (const p of paths) { all[p] = await attempt(() => fs.readFileSync(p)); fs.symlinkSync(p, "/workspace/link"); all["link " + p] = await attempt(() => fs.readFileSync("/workspace/link")); fs.unlinkSync("/workspace/link"); }
export default all`,
	},
	{
		ID: "A02", Name: "the secret is in no file that can be read",
		Python: `
import os
secret, found, seen = "@YRANAC@"[::-1].encode(), [], 0
for base in ("/", "/proc/self", "/proc/1"):
    for at, dirs, files in os.walk(base):
        if at == "/": dirs[:] = [d for d in dirs if d not in ("usr", "proc", "sys")]
        if at.startswith("/proc"): dirs[:] = [d for d in dirs if d not in ("task", "fd", "fdinfo", "root", "cwd")]
        for name in files:
            path = os.path.join(at, name)
            if name in ("mem", "clear_refs") or path.startswith("/dev/") and not path.startswith("/dev/shm"): continue
            try:
                with open(path, "rb") as f: data = f.read(8 << 20)
            except OSError: continue
            seen += 1
            if secret in data: found.append(path)
found, seen > 20, [k for k, v in os.environ.items() if secret.decode() in v]`,
		Value: `[[],true,[]]`,
	},
	{
		ID: "A02", Name: "no descriptor of the host is open",
		Python: `
import os, stat
odd = []
for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
    try: mode, target = os.fstat(fd).st_mode, os.readlink(f"/proc/self/fd/{fd}")
    except OSError: continue
    if stat.S_ISDIR(mode) and not target.startswith("/proc") or stat.S_ISBLK(mode) or target.startswith(("/tmp/sp-", "/var", "/root")): odd.append([fd, target])
    if stat.S_ISDIR(mode):
        try: odd.append(os.listdir(os.open("../../../../root", os.O_RDONLY, dir_fd=fd)))
        except OSError: pass
odd`,
		Value: `[]`,
	},
	{
		ID: "A13", Name: "sockets of the host",
		Python: attempts + `
import socket, stat
def connect(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.settimeout(3); s.connect(path)
names = ["/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "@DIR@/docker.sock", "\0@ABSTRACT@", "\0/tmp/.X11-unix/X0", "/run/sallyport/bridge.sock", "/run/sallyport/../sallyport/bridge.sock"]
os.symlink("@DIR@/docker.sock", "/tmp/docker.sock"); names.append("/tmp/docker.sock")
inside = []
for at, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(at, d) not in ("/proc", "/usr", "/sys")]
    inside += [os.path.join(at, f) for f in files + dirs if stat.S_ISSOCK(os.lstat(os.path.join(at, f)).st_mode)]
[[attempt(lambda: connect(n)) for n in names], [attempt(lambda: connect(n, socket.SOCK_DGRAM)) for n in names], [attempt(lambda: connect(n, socket.SOCK_SEQPACKET)) for n in names], inside]`,
		Node: nodeAttempts + `const connect = (at) => new Promise((ok, no) => net.connect(at).on("connect", ok).on("error", no));
export default [await attempt(() => connect("/var/run/docker.sock")), await attempt(() => connect("@DIR@/docker.sock")), await attempt(() => connect("\0@ABSTRACT@")), await attempt(() => connect("/run/sallyport/bridge.sock"))]`,
		Soft: true,
	},
	{
		ID: "A13", Name: "a socket of its own is not made on the host", Soft: true,
		Python: attempts + `
import socket
def bind(path):
    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
[attempt(lambda: bind(p)) for p in ("/run/sallyport/bridge.sock", "/run/sallyport/evil.sock", "@DIR@/evil.sock", "/servers/evil.sock", "/usr/share/evil.sock")]`,
	},
	{
		ID: "J13", Name: "no token of a cluster", Soft: true,
		Python: attempts + `
import socket
[[attempt(lambda: os.listdir(p)) for p in ("/var/run/secrets/kubernetes.io", "/run/secrets", "/var/run/secrets/kubernetes.io/serviceaccount", "/etc/kubernetes", "/var/lib/kubelet")], [k for k in os.environ if "KUBERNETES" in k]]`,
		Node: nodeAttempts + `export default [await attempt(() => fs.readdirSync("/var/run/secrets/kubernetes.io")), Object.keys(process.env).filter((k) => k.includes("KUBERNETES"))]`,
	},
	{
		// SALLYPORT_ZYGOTE has the limits of the program.
		ID: "A02", Name: "the declared environment and no other",
		Python: `import os; sorted(e for e in open("/proc/1/environ").read().split("\0")[:-1] if not e.startswith("SALLYPORT_ZYGOTE=")) + sorted(k for k in os.environ if k not in ("PATH", "HOME", "LANG", "TMPDIR", "MALLOC_ARENA_MAX") and not k.startswith("PIP_"))`,
		Node:   nodeAttempts + `export default fs.readFileSync("/proc/1/environ", "utf8").split("\0").slice(0, -1).filter((e) => !e.startsWith("SALLYPORT_ZYGOTE=")).sort().concat(Object.keys(process.env).filter((k) => !["PATH", "HOME", "LANG", "TMPDIR", "MALLOC_ARENA_MAX"].includes(k)))`,
		Value:  `["HOME=/workspace","LANG=C.UTF-8","MALLOC_ARENA_MAX=1","PATH=/usr/bin","TMPDIR=/tmp"]`,
	},
	{
		ID: "A02", Name: "nothing of the root can be changed", Soft: true,
		Python: attempts + `
places = ["/", "/usr", "/usr/bin", "/usr/lib", "/servers", "/servers/test", "/opt/sallyport", "/etc", "/run", "/run/sallyport", "/proc/sys/kernel", "/proc"]
files = ["/etc/passwd", "/servers/test/echo.py", "/opt/sallyport/guest.py", "/usr/bin/python3", "/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/randomize_va_space"]
def opened(p): os.close(os.open(p, os.O_WRONLY | os.O_TRUNC))
[[attempt(lambda: open(p + "/evil", "w")) for p in places], [attempt(lambda: opened(p)) for p in files], [attempt(lambda: os.unlink(p)) for p in files],
 [attempt(lambda: os.chmod(p, 0o4777)) for p in files[:4]], [attempt(lambda: os.utime(p)) for p in files[:4]], [attempt(lambda: os.rename(p, p + "x")) for p in files[:4]],
 [attempt(lambda: os.link(p, "/workspace/hard")) for p in files[:4]], [attempt(lambda: os.setxattr(p, "user.x", b"y")) for p in files[:4]], [attempt(lambda: os.symlink("/x", p + "/l")) for p in places]]`,
		Node: nodeAttempts + `const files = ["/etc/passwd", "/servers/test/echo.ts", "/opt/sallyport/guest.mjs", "/usr/bin/node", "/proc/sys/kernel/core_pattern"];
const all = []; for (const p of files) all.push(await attempt(() => fs.writeFileSync(p, "x")), await attempt(() => fs.unlinkSync(p)), await attempt(() => fs.renameSync(p, p + "x")), await attempt(() => fs.chmodSync(p, 0o4777)), await attempt(() => fs.writeFileSync(path.dirname(p) + "/evil", "x")));
export default all`,
	},
}

// hostRelease is the host's kernel.
func hostRelease() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "no release"
	}
	return strings.TrimSpace(string(data))
}
