package sandboxtest

import (
	"strings"
	"testing"

	"sallyport/sandbox"
)

// outcomesHelper is Python that tries several things and returns the result of each: "ok" or the error's name.
const outcomesHelper = `
import os, errno
def attempt(what):
    try:
        what()
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    except Exception as e:
        return type(e).__name__
`

var isolationCases = []Case{
	{
		Name:   "A01 the kernel is gVisor's",
		Python: `"gvisor" in open("/proc/version").read()`,
		Value:  "true",
	},
	{
		Name: "A02 no secret of the host can be read",
		Python: outcomesHelper + `
files = ("/etc/shadow", "/root/.bashrc", "/root/.ssh/id_rsa", "/etc/hostname", "/proc/1/root/etc/shadow", "/proc/self/root/../etc/shadow", "/../../etc/shadow")
folders = ("/root", "/home", "/var", "/work", "/mnt", "/usr/local", "/usr/etc", "/usr/src")
[attempt(lambda: open(p).read()) for p in files], [attempt(lambda: os.listdir(p)) for p in folders]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if strings.Contains(value(o), "ok") {
				t.Errorf("something of the host can be read: %s", value(o))
			}
		},
	},
	{
		Name:   "A02 etc holds nothing of the host",
		Python: `import os; sorted(os.listdir("/etc")), sorted(os.listdir("/run")), os.listdir("/run/sallyport")`,
		Value:  `[["gitconfig","group","hosts","nsswitch.conf","passwd"],["sallyport"],[]]`,
	},
	{
		Name:   "D01 no environment of the host",
		Python: `import os; open("/proc/1/environ").read().count("canary") + str(dict(os.environ)).count("canary"), sorted(os.environ)`,
		Value:  `[0,["HOME","LANG","PATH","PIP_BREAK_SYSTEM_PACKAGES","PIP_DISABLE_PIP_VERSION_CHECK","PIP_NO_INDEX","PIP_USER","TMPDIR"]]`,
	},
	{
		Name:  "D01 no environment of the host in node",
		Node:  `export default Object.keys(process.env).sort()`,
		Value: `["HOME","LANG","PATH","TMPDIR"]`,
	},
	{
		Name: "the runtime is read-only",
		Python: outcomesHelper + `
[attempt(lambda: open(p + "/x", "w")) for p in ("/", "/usr/bin", "/usr/lib", "/servers", "/opt/sallyport", "/etc", "/run/sallyport")]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if got := value(o); strings.Contains(got, "ok") || strings.Count(got, "E") < 7 {
				t.Errorf("something can be written: %s", got)
			}
		},
	},
	{
		Name: "A04 A05 A08 no mounts, devices or namespaces",
		Python: outcomesHelper + `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def c(f, *args):
    if f(*args) != 0:
        raise OSError(ctypes.get_errno(), "")
caps = [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapBnd"))]
[attempt(lambda: c(libc.mount, b"proc", b"/tmp", b"proc", 0, None)), attempt(lambda: os.mknod("/workspace/dev", 0o20600, os.makedev(1, 5))),
 attempt(lambda: os.chroot("/tmp")), attempt(lambda: os.setuid(0)), os.getuid(), [int(x, 16) for x in caps],
 [os.path.exists("/dev/" + d) for d in ("kvm", "mem", "vda", "sda", "tty0")]]`,
		Value: `["EPERM","EPERM","EPERM","EPERM",65534,[0,0,0],[false,false,false,false,false]]`,
	},
	{
		Name: "A07 A14 no process but its own, and it can signal no other",
		Python: outcomesHelper + `
pids = [p for p in os.listdir("/proc") if p.isdigit()]
[pids, os.getpid(), attempt(lambda: os.kill(2, 0)), attempt(lambda: os.kill(os.getppid() or 65535, 0))]`,
		Value: `[["1"],1,"ESRCH","ESRCH"]`,
	},
	{
		Name: "A10 A11 no raw sockets, vsock or cgroups",
		Python: outcomesHelper + `
import socket
[attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)), attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
 attempt(lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1))), attempt(lambda: open("/sys/fs/cgroup/cgroup.procs", "w"))]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if strings.Contains(value(o), "ok") {
				t.Errorf("one of them is there: %s", value(o))
			}
		},
	},
	{
		Name: "A13 no socket of the host but the bridge, and that is taken",
		Python: outcomesHelper + `
import socket
def connect(path):
    s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(path)
[attempt(lambda: connect(p)) for p in ("/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket", "\0/tmp/.X11-unix/X0", "/run/sallyport/bridge.sock")]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if strings.Contains(value(o), "ok") {
				t.Errorf("one of them can be reached: %s", value(o))
			}
		},
	},
	{
		Name: "A16 files of the program do not become the runtime",
		Python: `import os, subprocess, sys
for name in ("json.py", "servers.py", "sallyport.py", "sitecustomize.py", "usercustomize.py", "os.py"):
    open("/workspace/" + name, "w").write("raise SystemExit('shadowed')")
os.makedirs("/workspace/servers"); open("/workspace/servers/__init__.py", "w").write("raise SystemExit('shadowed')")
import json, servers, sallyport, colorsys
servers.__file__, json.__file__.startswith("/usr/lib")`,
		Value: `["/servers/__init__.py",true]`,
	},
	{
		Name: "modules of the program are not taken for the runtime's",
		Python: `import importlib
def fails(): return importlib.import_module("fault").no
names = ("fault", "guest", "hints", "rest", "warm")
for name in names: open(f"/workspace/{name}.py", "w").write("ours = True")
try: fails()
except AttributeError as err: said = str(err)
[importlib.import_module(name).ours for name in names] + ["'fault'" in said]`,
		Value: `[true,true,true,true,true,true]`,
	},
	{
		Name: "B01 B02 no network at all, and it says so at once",
		Python: outcomesHelper + `
import socket, time
start = time.time()
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(5); s.connect((host, port))
[attempt(lambda: tcp("1.1.1.1", 443)), attempt(lambda: tcp("169.254.169.254", 80)), attempt(lambda: tcp("127.0.0.1", 22)),
 attempt(lambda: socket.getaddrinfo("example.com", 80)), time.time() - start < 20]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if got := value(o); strings.Contains(got, `"ok"`) || !strings.HasSuffix(got, "true]") {
				t.Errorf("network: %s", got)
			}
		},
	},
	{
		Name:  "B01 no network in node",
		Node:  `export default await fetch("http://1.1.1.1/").then(() => "reached", (e) => "not reached")`,
		Value: `"not reached"`,
	},
	{
		Name: "A19 what it executes stays inside",
		Python: `import os, subprocess
open("/workspace/x", "w").write("#!/bin/sh\ncat /etc/shadow; id -u; uname -r\n"); os.chmod("/workspace/x", 0o4755)
subprocess.run(["/workspace/x"], capture_output=True, text=True).stdout.split()`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if got := value(o); !strings.HasPrefix(got, `["65534","4.19.0-gvisor`) {
				t.Errorf("it ran as %s", got)
			}
		},
	},
	{
		Name:   "time is right and random is random",
		Python: `import time, os; time.time() > 1.7e9, os.urandom(8) != os.urandom(8)`,
		Value:  `[true,true]`,
	},
}
