package sandboxtest

import (
	"testing"

	"sallyport/sandbox"
)

// kernelAttacks are attacks on gVisor's kernel: mounts, devices, processes, capabilities, sockets, cgroups.
var kernelAttacks = []Attack{
	{
		ID: "A04", Name: "mounts and other roots", Soft: true,
		Python: attempts + `
os.makedirs("/workspace/m/old", exist_ok=True)
def mount(source, at, kind, flags=0, data=None): return lambda: c(libc.mount, source, at, kind, flags, data)
def outside():
    os.chroot("/workspace/m")
    for _ in range(64): os.chdir("..")
    os.chroot("."); os.listdir("/root")
tried(proc=mount(b"proc", b"/tmp", b"proc"), bind=mount(b"/", b"/workspace/m", None, 4096), remount=mount(None, b"/usr/lib", None, 32 | 4096), remount_root=mount(None, b"/", None, 32), tmpfs=mount(b"tmpfs", b"/workspace/m", b"tmpfs"),
 sysfs=mount(b"sysfs", b"/workspace/m", b"sysfs"), cgroup=mount(b"cgroup", b"/workspace/m", b"cgroup"), cgroup2=mount(b"cgroup2", b"/workspace/m", b"cgroup2"), devtmpfs=mount(b"x", b"/workspace/m", b"devtmpfs"),
 nine_p=mount(b"x", b"/workspace/m", b"9p", 0, b"trans=fd,rfdno=3,wfdno=3"), lisafs=mount(b"x", b"/workspace/m", b"lisafs"), gofer=mount(b"x", b"/workspace/m", b"gofer"), overlay=mount(b"x", b"/workspace/m", b"overlay", 0, b"lowerdir=/"), fuse=mount(b"x", b"/workspace/m", b"fuse"), ext4=mount(b"/dev/vda", b"/workspace/m", b"ext4"),
 move=mount(b"/servers", b"/workspace/m", None, 8192), umount=lambda: c(libc.umount2, b"/servers", 2), umount_usr=lambda: c(libc.umount2, b"/usr/lib", 2), umount_root=lambda: c(libc.umount2, b"/", 2),
 pivot_root=lambda: sys(155, b"/workspace/m", b"/workspace/m/old"), chroot=outside,
 open_tree=lambda: sys(428, -100, b"/", 1), move_mount=lambda: sys(429, -100, b"/", -100, b"/workspace/m", 0), fsopen=lambda: sys(430, b"proc", 0), fspick=lambda: sys(433, -100, b"/", 0), mount_setattr=lambda: sys(442, -100, b"/", 0, 0, 0),
 handle=lambda: sys(304, -1, b"\0" * 64, 0), root=lambda: os.listdir("/root"))`,
		Node: nodeAttempts + `fs.mkdirSync("/workspace/m"); export default await tried({ mount: () => runs("/usr/bin/mount", "-t", "tmpfs", "x", "/workspace/m"), bind: () => runs("/usr/bin/mount", "--bind", "/", "/workspace/m"), umount: () => runs("/usr/bin/umount", "-l", "/servers"), unshare: () => runs("/usr/bin/unshare", "-m", "/usr/bin/true"), chroot: () => runs("/usr/sbin/chroot", "/workspace/m"), root: () => fs.readdirSync("/root") })`,
	},
	{
		ID: "A05", Name: "devices", Soft: true,
		Python: attempts + `
import stat
def node(path, kind, major, minor): return lambda: os.mknod(path, kind | 0o600, os.makedev(major, minor))
made = [attempt(node(at + "/dev", kind, *number)) for at in ("/workspace", "/tmp", "/dev/shm", "/dev") for kind in (stat.S_IFCHR, stat.S_IFBLK) for number in ((1, 1), (1, 5), (8, 0), (10, 232), (254, 0))]
opened = {d: attempt(lambda: os.open("/dev/" + d, os.O_RDWR)) for d in ("kvm", "mem", "kmem", "port", "vda", "sda", "nvme0", "loop-control", "loop0", "dm-0", "mapper/control", "kmsg", "vhost-net", "vhost-vsock", "vsock", "input/event0", "dri/card0", "nvidia0", "nvidiactl", "fb0", "tty0", "console", "hpet", "rtc", "cpu/0/msr", "userfaultfd", "uinput", "sev", "sgx_enclave")}
def tunnel(): sys(16, os.open("/dev/net/tun", os.O_RDWR), 0x400454ca, ctypes.create_string_buffer(b"evil0".ljust(16, b"\0") + b"\1\0", 40))
def fuse(): c(libc.mount, b"x", b"/workspace", b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % os.open("/dev/fuse", os.O_RDWR))
[made, opened, attempt(tunnel), attempt(fuse)]`,
		Node: nodeAttempts + `export default [await attempt(() => runs("/usr/bin/mknod", "/workspace/dev", "c", "1", "5")), await attempt(() => fs.openSync("/dev/kvm", "r+")), await attempt(() => fs.openSync("/dev/mem", "r")), await attempt(() => fs.openSync("/dev/vda", "r"))]`,
	},
	{
		ID: "A05", Name: "only harmless devices are there",
		Python: `import os; sorted(d for d in os.listdir("/dev") if d not in ("fd", "stdin", "stdout", "stderr", "shm", "pts", "ptmx", "full", "null", "random", "tty", "urandom", "zero"))`,
		Value:  `["fuse","net"]`, // of gVisor's own kernel; what they could do needs capabilities
	},
	{
		ID: "A07", Name: "other processes cannot be seen or touched",
		Python: attempts + `
own = {os.getpid(), os.getppid()} | set(map(int, os.listdir("/proc/self/task")))
alive = [p for p in range(1, 8192) if p not in own and attempt(lambda: os.kill(p, 0)) != "ESRCH"]
listed = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in own]
class iovec(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(16)
here, there = iovec(ctypes.addressof(buffer), 16), iovec(0x400000, 16)
readable = [p for p in (2, 3, 100, @PID@) if p not in own and attempt(lambda: sys(310, p, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)) not in ("ESRCH", "EPERM", "ENOSYS")]
traced = [p for p in (2, 3, 100, @PID@) if p not in own and attempt(lambda: c(libc.ptrace, 16, p, 0, 0)) not in ("ESRCH", "EPERM")]
[alive, listed, readable, traced]`,
		Node:  nodeAttempts + `const own = new Set([process.pid, process.ppid, ...fs.readdirSync("/proc/self/task").map(Number)]), seen = []; for (let p = 2; p < 8192; p++) { if (own.has(p)) continue; try { process.kill(p, 0); seen.push(p); } catch (e) { if (e.code !== "ESRCH") seen.push(e.code); } } export default [seen, fs.readdirSync("/proc").filter((p) => +p > 1 && +p !== process.pid && +p !== process.ppid), [], []]`,
		Value: `[[],[],[],[]]`,
	},
	{
		ID: "A08", Name: "namespaces and what they would give", Soft: true,
		Python: attempts + `
import subprocess, socket
def child(code):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, code().encode()); os._exit(0)
    os.close(write); return os.read(read, 1000).decode()
def within():
    attempt(lambda: c(libc.unshare, 0x10000000 | 0x20000 | 0x40000000))
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", "0 65534 1"), ("gid_map", "0 65534 1")):
            open("/proc/self/" + name, "w").write(text)
    except OSError: pass
    def raw(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    def read(): open("/etc/shadow").read()
    def remount():
        c(libc.mount, None, b"/usr/lib", None, 32 | 4096, None); open("/usr/lib/evil", "w")
    def device(): os.mknod("/workspace/dev", 0o20600, os.makedev(1, 5)); open("/workspace/dev")
    def host(): os.chroot("/proc/1/root"); open("@DIR@/world-readable")
    def unmounted():
        c(libc.umount2, b"/servers", 2); open("/opt/../servers/evil", "w")
    def owner(): os.chown("/usr/bin/env", 0, 0)
    return str([attempt(f) for f in (read, remount, device, host, unmounted, owner)]).replace("'", '"')
import json
[json.loads(child(within)), attempt(lambda: c(libc.setns, 3, 0)), attempt(lambda: os.setuid(0)), attempt(lambda: os.setresuid(0, 0, 0)), attempt(lambda: os.setgroups([0])), attempt(lambda: os.chown("/workspace", 0, 0))]`,
		Node: nodeAttempts + `export default await tried({ root: () => process.setuid(0), groups: () => process.setgroups([0]), mounted: () => runs("/usr/bin/unshare", "-Urm", "/bin/sh", "-c", "mount -o remount,rw /usr/lib && touch /usr/lib/evil"), raw: () => runs("/usr/bin/unshare", "-Urn", "/bin/sh", "-c", "cat /etc/shadow") })`,
	},
	{
		ID: "A08", Name: "capabilities are none, and setuid gives none",
		Python: `import os, subprocess
caps = [line.split() for line in open("/proc/self/status") if line.startswith(("CapInh", "CapPrm", "CapEff", "CapBnd"))]
open("/workspace/id", "w").write("#!/bin/sh\nid -u\n"); os.chmod("/workspace/id", 0o6755)
setuid = [os.path.join("/usr/bin", f) for f in os.listdir("/usr/bin") if os.path.isfile(os.path.join("/usr/bin", f)) and os.stat(os.path.join("/usr/bin", f)).st_mode & 0o4000]
su = [f for f in setuid if subprocess.run([f, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.startswith("0\n")]
[sum(int(value, 16) for _, value in caps), subprocess.run(["/workspace/id"], capture_output=True, text=True).stdout, su, [line.split()[1] for line in open("/proc/self/status") if line.startswith(("Uid", "Gid"))]]`,
		Value: `[0,"65534\n",[],["65534","65534"]]`,
	},
	{
		ID: "A08", Name: "system calls of those who own the machine", Soft: true,
		Python: attempts + `
b = ctypes.create_string_buffer(4096)
tried(bpf=lambda: sys(321, 0, b, 128), add_key=lambda: sys(248, b"user", b"x", b"y", 1, -3), perf=lambda: sys(298, b, 0, -1, -1, 0), io_uring=lambda: sys(425, 1, b), userfaultfd=lambda: sys(323, 0), init_module=lambda: sys(175, b, 1, b""), finit_module=lambda: sys(313, 0, b"", 0),
 kexec=lambda: sys(246, 0, 0, 0, 0), reboot=lambda: sys(169, 0xfee1dead, 672274793, 0x4321fedc, 0), swapon=lambda: sys(167, b"/workspace/x", 0), settime=lambda: sys(227, 0, b), hostname=lambda: sys(170, b"evil", 4), domain=lambda: sys(171, b"evil", 4), iopl=lambda: sys(172, 3), ioperm=lambda: sys(173, 0, 1, 1),
 acct=lambda: sys(163, b"/workspace/x"), quotactl=lambda: sys(179, 0, 0, 0, 0), handle=lambda: sys(303, -100, b"/", b, b, 0), fanotify=lambda: sys(300, 0, 0), kcmp=lambda: sys(312, 1, 2, 0, 0, 0), realtime=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
 limits=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NPROC, (4096, 4096)), files=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (1 << 20, 1 << 20)), size=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (-1, -1)))`,
	},
	{
		ID: "A10", Name: "raw sockets and other families", Soft: true,
		Python: attempts + `
import socket
def made(family, kind=socket.SOCK_STREAM, protocol=0): return lambda: socket.socket(family, kind, protocol)
def vsock():
    s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(2); s.connect((2, 1024))
tried(packet=made(socket.AF_PACKET, socket.SOCK_RAW, 0x300), packet_dgram=made(socket.AF_PACKET, socket.SOCK_DGRAM), raw=made(socket.AF_INET, socket.SOCK_RAW, 1), raw_tcp=made(socket.AF_INET, socket.SOCK_RAW, 6), raw6=made(socket.AF_INET6, socket.SOCK_RAW, 58), header=made(socket.AF_INET, socket.SOCK_RAW, 255),
 vsock=vsock, alg=made(38, socket.SOCK_SEQPACKET), xdp=made(44, socket.SOCK_RAW), bluetooth=made(31, socket.SOCK_RAW, 1), can=made(29, socket.SOCK_RAW, 1), tipc=made(30), smc=made(43), kcm=made(41), rds=made(21), pppox=made(24),
 netfilter=made(16, socket.SOCK_RAW, 12), audit=made(16, socket.SOCK_RAW, 9), generic=made(16, socket.SOCK_RAW, 16), crypto=made(16, socket.SOCK_RAW, 21), selinux=made(16, socket.SOCK_RAW, 7))`,
	},
	{
		ID: "A10", Name: "routes and interfaces are the sandbox's own",
		Python: `import socket, os
[name for _, name in socket.if_nameindex()], [l.split()[0] for l in open("/proc/net/dev").read().splitlines()[2:]], open("/proc/net/route").read().count("\n") <= 1, "@ABSTRACT@" not in open("/proc/net/unix").read()`,
		Node:  nodeAttempts + `export default [Object.keys(os.networkInterfaces()), fs.readFileSync("/proc/net/dev", "utf8").trim().split("\n").slice(2).map((l) => l.trim().split(/\s+/)[0]), fs.readFileSync("/proc/net/route", "utf8").trim().split("\n").length <= 1, !fs.readFileSync("/proc/net/unix", "utf8").includes("@ABSTRACT@")]`,
		Value: `[["lo"],["lo:"],true,true]`,
	},
	{
		ID: "A11", Name: "cgroups", Soft: true,
		Python: attempts + `
os.makedirs("/workspace/cg")
files = ["/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/rdma/release_agent", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/devices/devices.allow", "/sys/kernel/uevent_helper", "/sys/power/state", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register", "/proc/self/oom_score_adj_"]
[[attempt(lambda: open(f, "w").write("1")) for f in files], [attempt(lambda: c(libc.mount, b"cgroup", b"/workspace/cg", kind, 0, data)) for kind, data in ((b"cgroup", b"memory"), (b"cgroup", b"rdma"), (b"cgroup2", None))], attempt(lambda: os.mkdir("/sys/fs/cgroup/evil"))]`,
		Node: nodeAttempts + `export default [await attempt(() => fs.writeFileSync("/sys/fs/cgroup/cgroup.procs", "1")), await attempt(() => fs.writeFileSync("/sys/fs/cgroup/memory/release_agent", "/x")), await attempt(() => fs.mkdirSync("/sys/fs/cgroup/evil")), await attempt(() => fs.writeFileSync("/proc/sys/kernel/core_pattern", "|/x"))]`,
	},
	{
		ID: "A14", Name: "signals to everybody reach only its own", Status: sandbox.Crashed,
		Python: attempts + `
import signal
pid = os.getpid()
if os.fork() == 0:
    for target in (-1, 1, os.getppid(), -os.getpgid(pid), pid): attempt(lambda: os.kill(target, signal.SIGKILL))
    os._exit(0)
signal.pause()`,
		Node:  nodeAttempts + `process.kill(process.pid, "SIGKILL"); await new Promise(() => setTimeout(() => {}, 5000));`,
		Check: func(t *testing.T, o sandbox.Outcome) { wantExit(137)(t, o) },
	},
	{
		ID: "A14", Name: "a program that stops itself is timed out", Status: sandbox.TimedOut, Limit: shortTimeout,
		Python: "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nimport time; time.sleep(60)",
		Node:   `process.kill(process.pid, "SIGSTOP"); await new Promise((ok) => setTimeout(ok, 60000))`,
	},
	{
		ID: "A14", Name: "signals to what is not its own", Soft: true,
		Python: attempts + `
import signal
[attempt(lambda: os.kill(p, signal.SIGKILL)) for p in (2, 3, 17, 100, @PID@, 65535, -2, -@PID@) if p not in (os.getpid(), os.getppid())]`,
		Node: nodeAttempts + `const all = []; for (const p of [@PID@, 65534, 65535]) if (p !== process.pid && p !== process.ppid) all.push(await attempt(() => process.kill(p, "SIGKILL"))); export default all`,
	},
}
