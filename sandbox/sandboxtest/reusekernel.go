package sandboxtest

import "sallyport/sandbox"

// smallRoom is limits that a program can reach fast.
func smallRoom(l *sandbox.Limits) {
	l.Workspace, l.Inodes, l.Memory = 16<<20, 500, 1<<30
}

func someMemory(l *sandbox.Limits) { l.Memory = 300 << 20 }

// useAll is Python that uses all processes, files and room there are, and returns how much that was.
const useAll = attempts + `
import time
def count(f, most):
    for n in range(most):
        try: f(n)
        except OSError: return n
    return most
def fork(n):
    if os.fork() == 0: time.sleep(60); os._exit(0)
def room(at):
    def write(n):
        with open(f"{at}/big{n}", "wb") as f: f.write(bytes(1 << 20))
    return count(write, 100)
sizes = [room("/workspace"), room("/tmp"), room("/dev/shm")]
for at in ("/workspace", "/tmp", "/dev/shm"):
    for name in os.listdir(at): os.unlink(at + "/" + name)
def name(n): open(f"/workspace/{n}", "w").close()
names = count(name, 1000)
keep = []
files = count(lambda n: keep.append(os.open("/dev/null", os.O_RDONLY)), 1000)
for f in keep: os.close(f)
forks = count(fork, 100)
[sizes, 490 <= names <= 500, 200 < files < 256, forks]`

const usedAll = `[[16,64,64],true,true,31]`

// passAll is Python that puts a text and a folder into every descriptor but the bridge's.
const passAll = attempts + `
import array, socket, stat, fcntl
open("/workspace/secret", "w").write("x")
folder = os.open("/workspace", os.O_RDONLY)
for fd in range(3, 64):
    if fd == folder: continue
    try: kind = os.readlink(f"/proc/self/fd/{fd}")
    except OSError: continue
    if kind.startswith("socket:"):
        s = socket.socket(fileno=os.dup(fd))
        if str(s.getpeername()).endswith(".sock"): continue
        attempt(lambda: s.sendmsg([b"left"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [folder]))], socket.MSG_DONTWAIT))
    elif kind.startswith(("pipe:", "anon_inode:[eventfd]")): os.set_blocking(fd, False); attempt(lambda: os.write(fd, (7).to_bytes(8, "little")))
attempt(lambda: fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND)); attempt(lambda: fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)); attempt(lambda: fcntl.fcntl(2, fcntl.F_SETOWN, os.getpid()))
for fd in range(3): attempt(lambda: fcntl.fcntl(fd, fcntl.F_SETSIG, 9)); attempt(lambda: fcntl.fcntl(fd, 1031, 4096)); attempt(lambda: fcntl.flock(fd, fcntl.LOCK_EX)); attempt(lambda: os.fchmod(fd, 0)); attempt(lambda: os.ftruncate(fd, 0))
0`

// findPassed is Python that reads from every descriptor but the bridge's.
const findPassed = attempts + `
import socket, fcntl, signal
found = []
for fd in range(3, 64):
    try: kind = os.readlink(f"/proc/self/fd/{fd}")
    except OSError: continue
    if kind.startswith("socket:"):
        s = socket.socket(fileno=os.dup(fd))
        if str(s.getpeername()).endswith(".sock"): continue
        try: found.append([kind, len(s.recvmsg(99, 999, socket.MSG_DONTWAIT)[0])])
        except OSError: pass
    elif kind.startswith(("pipe:", "anon_inode:[eventfd]")):
        os.set_blocking(fd, False)
        try: found.append([kind, len(os.read(fd, 8))])
        except OSError: pass
[found, [line for line in open("/proc/self/maps") if line.split()[1][1::2] == "ws"], [fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND) for fd in range(3)], [fcntl.fcntl(fd, fcntl.F_GETOWN) for fd in range(3)], [fcntl.fcntl(fd, fcntl.F_GETSIG) if hasattr(fcntl, "F_GETSIG") else 0 for fd in range(3)]]`

var kernelRemains = []Remains{
	{
		ID: "R04", Name: "processes, files, inodes and room used up", Interpreter: sandbox.Python, Limit: smallRoom,
		Leave: useAll, Find: useAll, Want: usedAll,
	},
	{
		ID: "R04", Name: "memory of processes that are left", Interpreter: sandbox.Python, Limit: someMemory,
		Leave: "import os, time\nr, w = os.pipe()\nfor n in range(3):\n    if os.fork() == 0:\n        os.setsid(); keep = bytearray(50 << 20); os.write(w, b'x'); time.sleep(60)\nfor n in range(3): os.read(r, 1)\n0",
		Find:  "keep = bytearray(150 << 20)\nlen(keep) >> 20", Want: "150",
	},
	{
		ID: "R04", Name: "memory and room in node", Interpreter: sandbox.Node, Limit: smallRoom,
		Leave: `const fs = await import("node:fs"); const keep = []; for (let i = 0; i < 8; i++) keep.push(Buffer.alloc(4 << 20, 1)); try { for (let i = 0; i < 40; i++) fs.writeFileSync("/workspace/" + i, Buffer.alloc(1 << 20, 1)); } catch {} export default 0`,
		Find:  `const fs = await import("node:fs"); let n = 0; try { for (; n < 40; n++) fs.writeFileSync("/workspace/" + n, Buffer.alloc(1 << 20, 1)); } catch {} export default n`, Want: "16",
	},
	{
		ID: "R06", Name: "mounts, namespaces, System V segments and keys", Interpreter: sandbox.Python, Refused: true,
		Leave: attempts + `
flags = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x80]
def cloned(flag):
    n = sys(56, flag | 17, 0, 0, 0, 0)
    if n == 0: os._exit(0)
def names(): return os.open("/proc/self/ns/net", os.O_RDONLY)
[[attempt(lambda: sys(272, f)) for f in flags], [attempt(lambda: cloned(f)) for f in flags[:-1]], attempt(lambda: sys(435, ctypes.create_string_buffer(88), 88)), attempt(lambda: c(libc.mount, b"x", b"/tmp", b"tmpfs", 0, None)),
 attempt(lambda: c(libc.mount, b"/workspace", b"/tmp", None, 4096, None)), attempt(lambda: c(libc.mount, b"x", b"/", None, 1 << 19, None)), [attempt(lambda: c(libc.umount2, at, n)) for at in (b"/workspace", b"/run/sallyport", b"/proc", b"/tmp") for n in (0, 2, 8)],
 attempt(lambda: sys(155, b"/tmp", b"/tmp")), attempt(lambda: os.chroot("/workspace")), [attempt(lambda: sys(n, 0, 0, 0, 0, 0)) for n in (428, 429, 430, 431, 432, 433, 442)], attempt(lambda: sys(308, names(), 0)),
 attempt(lambda: sys(29, 77, 4096, 0o1666)), attempt(lambda: sys(248, b"user", b"left", b"x", 1, -3)), attempt(lambda: sys(249, b"user", b"left", 0, -3)), [attempt(lambda: sys(250, n, -3, 0, 0, 0)) for n in (0, 1, 6)],
 attempt(lambda: c(libc.sethostname, b"left", 4)), [attempt(lambda: open(p, "w")) for p in ("/proc/sys/kernel/hostname", "/proc/sys/fs/nr_open", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/ipv4/ip_forward", "/sys/x", "/dev/x", "/run/sallyport/x")],
 attempt(lambda: os.setuid(0)), attempt(lambda: os.setgroups([0])), attempt(lambda: sys(157, 24, 0, 0, 0, 0)), attempt(lambda: sys(126, ctypes.create_string_buffer((0x20080522).to_bytes(4, "little") + bytes(4)), ctypes.create_string_buffer(b"\xff" * 24)))]`,
		Find: attempts + `import socket
[os.listdir("/run/sallyport"), os.uname().nodename, len([line for line in open("/proc/self/mountinfo") if " /workspace " in line or " /tmp " in line]), attempt(lambda: sys(29, 77, 0, 0))]`,
		Want: `[[],"sandbox",4,"EPERM"]`,
	},
	{
		ID: "R07", Name: "descriptors passed by what the interpreter left open", Interpreter: sandbox.Python,
		Leave: passAll, Find: findPassed, Want: `[[],[],[0,0,0],[0,0,0],[0,0,0]]`,
	},
	{
		ID: "R07", Name: "texts passed by what node left open", Interpreter: sandbox.Node,
		Leave: nodeAttempts + `for (let fd = 3; fd < 64; fd++) { try { var kind = fs.readlinkSync("/proc/self/fd/" + fd); } catch { continue; } if (/^pipe:|eventfd/.test(kind)) await attempt(() => fs.writeSync(fd, Buffer.from([7, 0, 0, 0, 0, 0, 0, 0]))); } process.exit(0)`,
		Find: nodeAttempts + `const found = [], b = Buffer.alloc(8); for (let fd = 3; fd < 64; fd++) { try { var kind = fs.readlinkSync("/proc/self/fd/" + fd); } catch { continue; } if (!/^pipe:|eventfd/.test(kind) || !/flags:\t0*20?[0-9]*4[0-9]{3}$/m.test(fs.readFileSync("/proc/self/fdinfo/" + fd, "utf8"))) continue; try { found.push([fd, kind, fs.readSync(fd, b), b[0]]); } catch {} }
export default [found.filter((f) => f[3] === 7), fs.readFileSync("/proc/self/maps", "utf8").split("\n").filter((l) => /^\S+ .w.s/.test(l))]`, Want: `[[],[]]`,
	},
	{
		ID: "R08", Name: "names in the kernel", Interpreter: sandbox.Python,
		Leave: attempts + `
import socket
keep = []
for family, at in ((socket.AF_INET, ("127.0.0.1", 4321)), (socket.AF_INET, ("0.0.0.0", 4322)), (socket.AF_UNIX, "\0left"), (socket.AF_UNIX, "/tmp/left"), (socket.AF_UNIX, "/dev/shm/left")):
    s = socket.socket(family); attempt(lambda: (s.bind(at), s.listen())); keep.append(s)
attempt(lambda: sys(64, 77, 3, 0o1666)); attempt(lambda: sys(68, 77, 0o1666)); attempt(lambda: sys(240, b"left", 0o102, 0o666, 0))
open("/dev/shm/segment", "w").write("left"); os.mkfifo("/tmp/fifo")
if os.fork() == 0:
    os.setsid(); import time; time.sleep(60)
0`,
		Find: attempts + `
import socket
def reach(family, at):
    with socket.socket(family) as s: s.settimeout(2); s.connect(at)
[attempt(lambda: reach(socket.AF_INET, ("127.0.0.1", 4321))), attempt(lambda: reach(socket.AF_INET, ("127.0.0.1", 4322))), attempt(lambda: reach(socket.AF_UNIX, "\0left")), attempt(lambda: sys(64, 77, 3, 0)), attempt(lambda: sys(68, 77, 0)), attempt(lambda: sys(240, b"left", 2, 0, 0)) != "ok", os.listdir("/dev/shm"), os.listdir("/tmp")]`,
		Want: `["ECONNREFUSED","ECONNREFUSED","ECONNREFUSED","ENOENT","ENOENT",true,[],[]]`,
	},
	{
		ID: "R09", Name: "timers, watches and locks", Interpreter: sandbox.Python,
		Leave: attempts + `
import signal, fcntl
signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05); signal.setitimer(signal.ITIMER_PROF, 0.2, 0.05); signal.setitimer(signal.ITIMER_VIRTUAL, 0.2, 0.05)
timer = sys(283, 1, 0); watch = sys(294, 0)
for path in (b"/usr/lib", b"/servers", b"/opt/sallyport", b"/", b"/tmp", b"/dev", b"/proc"): attempt(lambda: sys(254, watch, path, 0xfff))
for path in ("/servers/__init__.py", "/usr/bin/env"):
    f = os.open(path, os.O_RDONLY); attempt(lambda: fcntl.flock(f, fcntl.LOCK_EX)); attempt(lambda: fcntl.lockf(f, fcntl.LOCK_SH)); attempt(lambda: fcntl.fcntl(f, 1024, 1))
class Event(ctypes.Structure): _fields_ = [("value", ctypes.c_long), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48)]
event, made = Event(0, 9, 0), ctypes.c_int()
attempt(lambda: sys(222, 1, ctypes.byref(event), ctypes.byref(made))); attempt(lambda: sys(223, made.value, 0, ctypes.byref((ctypes.c_long * 4)(0, 5 * 10**8, 60, 0)), 0))
0`,
		Find: attempts + `
import time, fcntl, signal
def lock(path):
    with open(path) as f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
time.sleep(0.7)
[signal.getitimer(signal.ITIMER_REAL), signal.getitimer(signal.ITIMER_PROF), attempt(lambda: lock("/servers/__init__.py")), attempt(lambda: lock("/usr/bin/env"))]`,
		Want: `[[0.0,0.0],[0.0,0.0],"ok","ok"]`,
	},
}
