package sandboxtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sallyport/sandbox"
)

// residue leaves all that a program can leave, search looks for it from another one: J01, J02.
var residue = map[sandbox.Interpreter]string{
	sandbox.Python: `import os, sys, json, socket, threading, time, builtins, signal, resource, servers.test, sallyport
for at in ("/tmp", "/workspace", "/dev/shm", "/var/tmp"):
    try: open(at + "/residue", "w").write("residue")
    except OSError: pass
os.environ["RESIDUE"] = "residue"; os.umask(0); os.chdir("/tmp"); sys.path.insert(0, "/tmp"); sys.modules["residue"] = sys; builtins.residue = 1
json.dumps = json.loads = lambda *a, **k: '"residue"'; sys.setrecursionlimit(99); signal.signal(signal.SIGUSR1, signal.SIG_IGN); servers.test.residue = 1; sallyport.residue = 1
server = socket.socket(); server.bind(("0.0.0.0", 4321)); server.listen()
named = socket.socket(socket.AF_UNIX); named.bind("\0residue"); named.listen()
if os.fork() == 0:
    os.setsid(); time.sleep(600); os._exit(0)
threading.Thread(target=time.sleep, args=(0.1,), daemon=True).start()
None`,
	sandbox.Node: `import fs from "node:fs"; import net from "node:net"; import { spawn } from "node:child_process";
for (const at of ["/tmp", "/workspace", "/dev/shm"]) try { fs.writeFileSync(at + "/residue", "residue"); } catch {}
process.env.RESIDUE = "residue"; process.umask(0); process.chdir("/tmp"); globalThis.residue = 1; Object.prototype.residue = 1; fs.residue = 1;
spawn("/usr/bin/sleep", ["600"], { detached: true, stdio: "ignore" }).unref(); const server = net.createServer().listen(4321); server.unref(); Math.random = () => 4;`,
}

var findResidue = map[sandbox.Interpreter]string{
	sandbox.Python: `import os, sys, json, socket, builtins, signal, servers.test, sallyport
def open_port():
    with socket.socket() as s: return s.connect_ex(("127.0.0.1", 4321)) == 0
def named():
    with socket.socket(socket.AF_UNIX) as s: return s.connect_ex("\0residue") == 0
[[at for at in ("/tmp", "/workspace", "/dev/shm", "/var/tmp") if os.path.exists(at) and "residue" in os.listdir(at)], "RESIDUE" in os.environ, os.getcwd(), "/tmp" in sys.path, "residue" in sys.modules, hasattr(builtins, "residue"), json.loads("1"),
 sys.getrecursionlimit() > 99, signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL, "residue" in vars(servers.test), "residue" in vars(sallyport), open_port(), named(), [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (os.getpid(), os.getppid())], os.umask(0o22) == 0]`,
	sandbox.Node: `import fs from "node:fs"; import net from "node:net";
const open = await new Promise((ok) => net.connect(4321, "127.0.0.1").on("connect", () => ok(true)).on("error", () => ok(false)));
export default [["/tmp", "/workspace", "/dev/shm"].filter((at) => fs.existsSync(at + "/residue")), "RESIDUE" in process.env, process.cwd(), "residue" in globalThis, "residue" in {}, "residue" in fs, open, fs.readdirSync("/proc").filter((p) => +p > 1 && +p !== process.pid && +p !== process.ppid), process.umask() === 0, Math.random() === 4]`,
}

// noResidue is the result of search without residue.
var noResidue = map[sandbox.Interpreter]string{
	sandbox.Python: `[[],false,"/workspace",false,false,false,1,true,true,false,false,false,false,[],false]`,
	sandbox.Node:   `[[],false,"/workspace",false,false,false,false,[],false,false]`,
}

// Residue runs programs that leave residue, each followed by a program that searches for it.
func Residue(t *testing.T, runner Runner, languages ...sandbox.Interpreter) {
	t.Helper()
	for _, interpreter := range languages {
		for range 3 {
			if outcome, err := runner.Run(t.Context(), Job(interpreter, residue[interpreter]), Echo{}); err != nil {
				t.Fatalf("%s: %v, %s", interpreter, err, show(outcome))
			}
			outcome, err := runner.Run(t.Context(), Job(interpreter, findResidue[interpreter]), Echo{})
			if err != nil || value(outcome) != noResidue[interpreter] {
				t.Errorf("J01, J02: %s found %s, %v; want %s: %s", interpreter, value(outcome), err, noResidue[interpreter], show(outcome))
			}
		}
	}
}

// nonces echo what they were given, over the bridge and in their value.
var nonces = map[sandbox.Interpreter]string{
	sandbox.Python: "from sallyport import call\nprint('@NONCE@')\n['@NONCE@', call('test.echo', {'x': '@NONCE@'})['args']['x'], call('test.echo', {})['execution']]",
	sandbox.Node:   nodeImports + "console.log('@NONCE@'); export default ['@NONCE@', (await call('test.echo', { x: '@NONCE@' })).args.x, (await call('test.echo', {})).execution]",
}

// Nonces runs n executions concurrently, and checks that each gets its own result (J04).
func Nonces(t *testing.T, runner Runner, n, atOnce int) {
	t.Helper()
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			nonce := fmt.Sprintf("nonce-%d-%x", i, i*7919)
			interpreter := []sandbox.Interpreter{sandbox.Python, sandbox.Node}[i%2]
			job := Job(interpreter, strings.ReplaceAll(nonces[interpreter], "@NONCE@", nonce))
			outcome, err := runner.Run(t.Context(), job, Echo{})
			if want := fmt.Sprintf(`[%q,%q,%q]`, nonce, nonce, job.ID); err != nil || value(outcome) != want || outcome.Stdout.Text != nonce+"\n" {
				t.Errorf("J04: %s got %v, %s; want %s", nonce, err, show(outcome), want)
			}
		})
	}
	all.Wait()
}

// randomPrograms are programs that print values of all random sources of their interpreter.
var randomPrograms = map[sandbox.Interpreter]string{
	sandbox.Python: `import secrets, uuid, random, os, tempfile, hashlib, ssl, threading
import numbers
made = tempfile.mkstemp()[1], tempfile.mkdtemp(), tempfile.NamedTemporaryFile().name
{"token_hex": secrets.token_hex(), "uuid4": str(uuid.uuid4()), "uuid1": str(uuid.uuid1()), "random": random.random(), "randrange": random.randrange(1 << 62), "Random": random.Random().random(), "SystemRandom": random.SystemRandom().random(),
 "shuffle": random.sample(range(10**6), 8), "gauss": random.gauss(0, 1), "urandom": os.urandom(16).hex(), "getrandom": os.getrandom(16).hex(), "mkstemp": made[0], "mkdtemp": made[1], "named": made[2], "ssl": ssl.RAND_bytes(16).hex(), "dev": open("/dev/urandom", "rb").read(16).hex(),
 "child": __import__("subprocess").run(["/usr/bin/python3", "-I", "-c", "import random; print(random.random())"], capture_output=True, text=True).stdout}`,
	sandbox.Node: `import crypto from "node:crypto"; import fs from "node:fs"; import { Worker } from "node:worker_threads";
const key = crypto.generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).toString("hex");
const web = Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(16))).toString("hex");
const worker = await new Promise((ok) => new Worker("require('worker_threads').parentPort.postMessage(Math.random())", { eval: true }).on("message", ok));
const rsa = crypto.generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ type: "spki", format: "der" }).toString("hex");
export default { random: Math.random(), again: Math.random(), many: Array.from({ length: 100 }, Math.random).join(), randomBytes: crypto.randomBytes(16).toString("hex"), randomUUID: crypto.randomUUID(), webUUID: globalThis.crypto.randomUUID(), web, key, rsa, worker,
 randomInt: crypto.randomInt(2 ** 47), fill: crypto.randomFillSync(Buffer.alloc(16)).toString("hex"), mkdtemp: fs.mkdtempSync("/tmp/x-"), ecdh: crypto.createECDH("secp256k1").generateKeys("hex"), prime: crypto.generatePrimeSync(64, { bigint: true }).toString(),
 dh: crypto.diffieHellman({ privateKey: crypto.generateKeyPairSync("x25519").privateKey, publicKey: crypto.generateKeyPairSync("x25519").publicKey }).toString("hex"), subtle: Buffer.from(await crypto.subtle.exportKey("raw", await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt"]))).toString("hex") }`,
}

// Randomness runs n programs that print random values: no two of them may have a value in common (J05).
func Randomness(t *testing.T, runner Runner, n int) {
	t.Helper()
	for _, interpreter := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		var mu sync.Mutex
		var all sync.WaitGroup
		seen := map[string]int{}
		for i := range n {
			all.Go(func() {
				outcome, err := runner.Run(t.Context(), Job(interpreter, randomPrograms[interpreter]), Echo{})
				var drawn map[string]json.RawMessage
				if err != nil || json.Unmarshal([]byte(value(outcome)), &drawn) != nil || len(drawn) < 15 {
					t.Errorf("J05: %s: %v, %s", interpreter, err, show(outcome))
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for name, what := range drawn {
					if other, taken := seen[name+string(what)]; taken {
						t.Errorf("J05: %s %d and %d have the same %s: %s", interpreter, other, i, name, what)
					}
					seen[name+string(what)] = i
				}
			})
		}
		all.Wait()
	}
}
