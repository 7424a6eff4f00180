package sandboxtest

import "sallyport/sandbox"

// waitingRemains are attacks on the process that is forked before its program is known.
var waitingRemains = []Remains{
	{
		ID: "R18", Name: "the process that waits for the next program", Interpreter: sandbox.Python, Refused: true, Ahead: true,
		Leave: lookAround + `
import signal, socket, time
def reach(name): socket.socket(socket.AF_UNIX).connect(f"/run/sallyport/{name}.sock")
def seek():
    me, seen = {1, os.getpid()}, set()
    for p in range(2, 300):
        if p in me: continue
        for f in (lambda: os.kill(p, signal.SIGKILL), lambda: sys(101, 0x4206, p, 0, 0), lambda: open(f"/proc/{p}/mem", "r+b"), lambda: os.listdir(f"/proc/{p}/fd"), lambda: sys(434, p, 0)): seen.add(attempt(f))
    return sorted(seen | {attempt(lambda: reach(n)) for n in ("zygote", "bridge", *range(1, 40))})
found = [others(), attempt(lambda: os.kill(-1, signal.SIGKILL)), os.listdir("/run/sallyport"), seek()]
r, w = os.pipe()
for n in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(w, b"x")
            while True: seek()
        os._exit(0)
os.read(r, 1)
found`,
		Find: lookAround + `
import signal
[others(), os.listdir("/tmp"), len(signal.sigpending()), os.getppid(), attempt(lambda: os.kill(-1, 0))]`,
		Want: `[[],[],0,0,"ESRCH"]`,
	},
	{
		ID: "R18", Name: "the process of node that waits for the next program", Interpreter: sandbox.Node, Refused: true, Ahead: true,
		Leave: nodeAttempts + `const { spawn } = await import("node:child_process");
const reach = (name) => new Promise((ok, no) => net.connect("/run/sallyport/" + name + ".sock").on("connect", ok).on("error", no));
const seen = {}, own = fs.readdirSync("/proc/self/task");
for (let p = 2; p < 300; p++) {
  if (own.includes(String(p))) continue;
  for (const f of [() => process.kill(p, "SIGKILL"), () => fs.openSync("/proc/" + p + "/mem", "r+"), () => fs.readdirSync("/proc/" + p + "/fd")]) seen[await attempt(f)] = 1;
}
for (const name of ["zygote", "bridge", ...Array(40).keys()]) seen[await attempt(() => reach(name))] = 1;
const found = [fs.readdirSync("/proc").filter((p) => +p && +p !== process.pid), await attempt(() => process.kill(-1, "SIGKILL")), fs.readdirSync("/run/sallyport"), Object.keys(seen)];
const seek = "trap '' TERM HUP INT; while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = 1 ] || [ $p = $$ ] || kill -9 $p; done; done";
for (let n = 0; n < 4; n++) spawn("/usr/bin/sh", ["-c", seek], { detached: true, stdio: "ignore" }).unref();
await new Promise((ok) => setTimeout(ok, 100));
export default found`,
		Find: nodeAttempts + `export default [fs.readdirSync("/proc").filter((p) => +p && +p !== process.pid), fs.readdirSync("/tmp").filter((n) => n !== ".program"), process.ppid, await attempt(() => process.kill(-1, 0))]`,
		Want: `[[],[],0,"ESRCH"]`,
	},
}
