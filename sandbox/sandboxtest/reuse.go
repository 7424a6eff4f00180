package sandboxtest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// SharedBed runs programs that share sandboxes.
type SharedBed struct {
	Runner Runner
	// Programs returns how many programs the waiting sandboxes have run that can run this one.
	Programs func(job sandbox.Job) int
	// Await waits until a process waits for this program, if a sandbox does.
	Await func(tb testing.TB, job sandbox.Job)
}

// RunReuseAttacks runs group R: each attack is followed by a program in the same sandbox, and by one of another owner.
func RunReuseAttacks(t *testing.T, bed SharedBed) {
	t.Helper()
	for _, attack := range ReuseAttacks() {
		t.Run(attack.ID+"-"+strings.ReplaceAll(attack.Name, " ", "-"), func(t *testing.T) { attack.run(t, bed) })
	}
}

func (a Remains) run(t *testing.T, bed SharedBed) {
	t.Helper()
	late, earlier := &lateCalls{}, bed.Programs(a.job("alice", ""))
	outcome, err := bed.Runner.Run(t.Context(), a.job("alice", a.Leave), late)
	late.over.Store(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the attack: %s", show(outcome))
	a.checkRefused(t, outcome)
	if a.Gone {
		testutil.Eventually(t, "the sandbox of the attack is gone", 8*time.Second, func() bool {
			now := bed.Programs(a.job("alice", ""))
			return now == 0 || now < earlier
		})
	} else if outcome.Status != sandbox.OK && outcome.Status != sandbox.Exited {
		t.Errorf("the attack failed: %s", show(outcome))
	}
	if a.Ahead {
		bed.Await(t, a.job("alice", ""))
	}
	before := bed.Programs(a.job("alice", ""))
	a.find(t, bed, "alice")
	if after := bed.Programs(a.job("alice", "")); after != before+1 && a.ID != "R04" {
		t.Errorf("the sandbox of the attack has run %d programs after %d: the next program was in another one", after, before)
	}
	bed.Await(t, a.job("alice", ""))
	a.find(t, bed, "alice")
	a.find(t, bed, "bob")
	if n := late.count.Load(); n > 0 {
		t.Errorf("%d calls after the end", n)
	}
}

// find runs the program that looks for what is left.
func (a Remains) find(t *testing.T, bed SharedBed, owner string) {
	t.Helper()
	outcome, err := bed.Runner.Run(t.Context(), a.job(owner, a.Find), Echo{})
	if err != nil || value(outcome) != a.Want || outcome.Stdout.Text+outcome.Stderr.Text != "" {
		t.Errorf("the next program of %s found %s, %v; want %s: %s %q %q", owner, value(outcome), err, a.Want, show(outcome), outcome.Stdout.Text, outcome.Stderr.Text)
	}
}

func (a Remains) job(owner, code string) sandbox.Job {
	job := Job(a.Interpreter, code)
	job.Owner, job.Limits.Timeout = owner, 20*time.Second
	if a.Limit != nil {
		a.Limit(&job.Limits)
	}
	return job
}

// lateCalls counts the calls that begin after the end of their program.
type lateCalls struct {
	Echo
	over  atomic.Bool
	count atomic.Int64
}

// Call is one call.
func (l *lateCalls) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if l.over.Load() {
		l.count.Add(1)
	}
	return l.Echo.Call(ctx, call)
}

// GoesOn is a Python program that reports its end and continues.
const GoesOn = rawBridge + `
send({"type": "done", "value": {"kind": "json", "text": "1", "size": 1}})
while True: pass`

// ForkedRandom are programs that print a line from each random source that works without worker threads, which a forked
// process does not have.
var ForkedRandom = map[sandbox.Interpreter]string{
	sandbox.Python: `import secrets, uuid, random, os, tempfile, ssl, time
for v in (secrets.token_hex(), uuid.uuid4(), uuid.uuid1(), random.random(), random.Random().random(), random.SystemRandom().random(), random.sample(range(10**6), 8), random.gauss(0, 1), random.getrandbits(64), os.urandom(16).hex(), os.getrandom(16).hex(), ssl.RAND_bytes(16).hex(), tempfile.mkdtemp(), tempfile.mkstemp()[1], open("/dev/urandom", "rb").read(8).hex()): print(v)`,
	sandbox.Node: `import crypto from "node:crypto"; import fs from "node:fs";
const key = (kind, more) => crypto.generateKeyPairSync(kind, more).publicKey.export({ type: "spki", format: "der" }).toString("hex");
for (const v of [Math.random(), Math.random(), crypto.randomBytes(16).toString("hex"), crypto.randomUUID(), globalThis.crypto.randomUUID(), crypto.randomUUID({ disableEntropyCache: true }), Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(16))).toString("hex"), key("ed25519"), key("rsa", { modulusLength: 1024 }), key("x25519"), crypto.randomInt(2 ** 47), crypto.randomFillSync(Buffer.alloc(16)).toString("hex"), fs.mkdtempSync("/tmp/x-"), crypto.createECDH("secp256k1").generateKeys("hex"), crypto.generatePrimeSync(64, { bigint: true }), await new Promise((ok) => crypto.randomBytes(16, (e, b) => ok(b.toString("hex"))))]) console.log(String(v));`,
}
