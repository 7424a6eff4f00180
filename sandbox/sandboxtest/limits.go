package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"sallyport/sandbox"
)

var limitCases = []Case{
	{
		Name: "endless loop in python", Python: "while True: pass", Status: sandbox.TimedOut,
		Limit: func(l *sandbox.Limits) { l.Timeout = time.Second }, Within: 3 * time.Second,
	},
	{
		Name: "endless loop in node", Node: "while (true);", Status: sandbox.TimedOut,
		Limit: func(l *sandbox.Limits) { l.Timeout = time.Second }, Within: 3 * time.Second,
	},
	{
		Name: "C10 sleeping past the limit with children", Status: sandbox.TimedOut,
		Python: "import os, time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nfor i in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(3600)\ntime.sleep(3600)",
		Limit:  func(l *sandbox.Limits) { l.Timeout = time.Second }, Within: 3 * time.Second,
	},
	{
		Name: "what was printed before the limit is kept", Status: sandbox.TimedOut, Python: "print('so far', flush=True)\nwhile True: pass",
		Limit: func(l *sandbox.Limits) { l.Timeout = 4 * time.Second },
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "so far\n") },
	},
	{
		Name: "C01 memory in python is an exception to repair", Status: sandbox.Failed, Python: "b = []\nwhile True:\n    b.append(bytearray(4 << 20))",
		Limit: func(l *sandbox.Limits) { l.Memory = 256 << 20 },
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "MemoryError" || o.Fault.Lines[0].Line != 3 || o.Fault.Hint == "" {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "C01 memory of many processes together", Status: sandbox.OutOfMemory,
		Python: "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n        b = bytearray(100 << 20)\n        time.sleep(20)\n        os._exit(0)\ntime.sleep(20)",
		Limit:  func(l *sandbox.Limits) { l.Memory = 300 << 20 },
	},
	{
		Name: "C01 memory in files counts", Status: sandbox.OutOfMemory,
		Python: "import time\nfor i in range(100):\n    open(f'/workspace/{i}', 'wb').write(bytes(8 << 20))\ntime.sleep(5)",
		Limit:  func(l *sandbox.Limits) { l.Memory, l.Workspace = 200<<20, 1<<30 },
	},
	{
		Name: "C01 memory in node", Node: "const keep = []; for (;;) keep.push(Buffer.alloc(4 << 20, 1));", Status: sandbox.OutOfMemory,
		Limit: func(l *sandbox.Limits) { l.Memory = 256 << 20 },
	},
	{
		Name: "C01 memory in node's heap", Node: "const keep = []; for (let i = 0; ; i++) keep.push(Array.from({ length: 10000 }, (_, j) => i * j + 0.5));", Status: sandbox.OutOfMemory,
		Limit: func(l *sandbox.Limits) { l.Memory = 160 << 20 },
	},
	{
		Name: "C02 fork bomb", Python: "import os\nwhile True:\n    os.fork()", Status: sandbox.Failed, Limit: func(l *sandbox.Limits) { l.Processes = 32 },
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "BlockingIOError" || o.Fault.Hint != "32 processes and threads can run at once: let some end first" {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "C02 thread bomb", Status: sandbox.Failed, Limit: func(l *sandbox.Limits) { l.Processes = 32 },
		Python: "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if !strings.Contains(o.Fault.Message, "thread") || !strings.HasPrefix(o.Fault.Hint, "32 processes and threads") {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "C02 fork bomb in the shell", Python: "import subprocess\nsubprocess.run(['sh', '-c', 'f() { f | f & }; f; sleep 1'], stderr=subprocess.DEVNULL, timeout=8)\n'survived'", Value: `"survived"`,
	},
	{
		Name: "C04 open files", Python: "f = []\ntry:\n    while True: f.append(open('/dev/null'))\nexcept OSError as e:\n    n = e.errno\nn, 100 < len(f) < 256", Value: "[24,true]",
	},
	{
		Name: "C05 the workspace is full at its size", Limit: func(l *sandbox.Limits) { l.Workspace = 32 << 20 },
		Python: "import errno, os\ntry:\n    for i in range(50):\n        open(f'/workspace/{i}', 'wb').write(bytes(1 << 20))\nexcept OSError as e:\n    n = errno.errorcode[e.errno]\nn, i",
		Value:  `["ENOSPC",32]`,
	},
	{
		Name: "C05 a sparse file of 1 TiB", Python: "import errno, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ntry:\n    open('/workspace/x', 'wb').truncate(1 << 40)\n    n = 'made'\nexcept OSError as e:\n    n = errno.errorcode[e.errno]\nn", Value: `"EFBIG"`,
	},
	{
		Name: "processor time in python", Python: "print('so far', flush=True)\nwhile True: pass", Status: sandbox.OutOfCPU,
		Limit: func(l *sandbox.Limits) { l.CPU = time.Second },
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "so far\n") },
	},
	{
		Name: "processor time in node", Node: "while (true);", Status: sandbox.OutOfCPU,
		Limit: func(l *sandbox.Limits) { l.CPU = time.Second },
	},
	{
		Name: "processor time of children that end", Status: sandbox.OutOfCPU,
		Python: "import os, time\nwhile True:\n    if os.fork() == 0:\n        end = time.process_time() + 0.1\n        while time.process_time() < end: pass\n        os._exit(0)\n    os.wait()",
		Limit:  func(l *sandbox.Limits) { l.CPU = 2 * time.Second },
	},
	{
		Name: "processor time of a kernel that works for the program", Status: sandbox.OutOfCPU,
		Python: "import os\nwhile True: os.stat('/usr/bin')",
		Limit:  func(l *sandbox.Limits) { l.CPU = time.Second },
	},
	{
		Name: "waiting is no processor time", Python: "import time\ntime.sleep(3)\n1", Value: "1",
		Limit: func(l *sandbox.Limits) { l.CPU = 2500 * time.Millisecond },
	},
	{
		Name: "a file as large as one may be, and a byte more", Value: `["EFBIG",8388608]`, Limit: func(l *sandbox.Limits) { l.FileSize = 8 << 20 },
		Python: "import errno, os\nf = open('/workspace/x', 'wb', buffering=0)\nfor i in range(8): f.write(bytes(1 << 20))\ntry:\n    f.write(b'x')\n    n = 'written'\nexcept OSError as e:\n    n = errno.errorcode[e.errno]\nn, os.path.getsize('/workspace/x')",
	},
	{
		Name: "a file that is too large in node", Value: `"EFBIG"`, Limit: func(l *sandbox.Limits) { l.FileSize = 1 << 20 },
		Node: "import fs from 'node:fs'; let n = 'written'; try { fs.writeFileSync('/tmp/x', Buffer.alloc(2 << 20)); } catch (e) { n = e.code; } export default n;",
	},
	{
		Name: "C04 open files in node", Value: `"EMFILE"`,
		Node: "import fs from 'node:fs'; let n; try { for (;;) fs.openSync('/dev/null'); } catch (e) { n = e.code; } export default n;",
	},
	{
		Name: "C01 memory of gVisor's own kernel, in names of files", Status: sandbox.OutOfMemory,
		Python: "import os\nn, target = 0, 'x' * 4000\nwhile True:\n    os.symlink(target, f'/workspace/{n}')\n    n += 1",
		Limit:  func(l *sandbox.Limits) { l.Memory, l.Inodes = 128<<20, 1<<30 },
	},
	{
		Name: "C01 memory of gVisor's own kernel, in sockets", Status: sandbox.OutOfMemory,
		Python: "import os, socket, time\nfor child in range(60):\n    if os.fork() == 0:\n        keep = []\n        while len(keep) < 110:\n            pair = socket.socketpair()\n            for end in pair:\n                end.setblocking(False)\n                try:\n                    while True: end.send(bytes(65536))\n                except OSError: pass\n            keep.append(pair)\n        time.sleep(60)\ntime.sleep(60)",
		Limit:  func(l *sandbox.Limits) { l.Memory = 256 << 20 },
	},
	{
		Name: "what is full or too large says how much there may be", Status: sandbox.Failed, Limit: func(l *sandbox.Limits) { l.FileSize = 8 << 20 },
		Python: "open('/workspace/x', 'wb').write(bytes(9 << 20))",
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantHint(t, o, "a file has 8 MiB at most: write several, or keep less")
		},
	},
	{
		Name: "a full workspace says so", Status: sandbox.Failed, Limit: func(l *sandbox.Limits) { l.Workspace = 8 << 20 },
		Python: "open('/workspace/x', 'wb').write(bytes(9 << 20))",
		Check:  func(t *testing.T, o sandbox.Outcome) { wantHint(t, o, "/workspace holds 8 MiB") },
	},
	{
		Name: "a full workspace says so in node", Status: sandbox.Failed, Limit: func(l *sandbox.Limits) { l.Workspace = 8 << 20 },
		Node:  "import fs from 'node:fs'; fs.writeFileSync('/workspace/x', Buffer.alloc(9 << 20));",
		Check: func(t *testing.T, o sandbox.Outcome) { wantHint(t, o, "/workspace holds 8 MiB") },
	},
	{
		Name: "C05 a million empty files", Limit: func(l *sandbox.Limits) { l.Inodes = 5000 },
		Python: "import errno\ntry:\n    for i in range(1_000_000): open(f'/workspace/{i}', 'w').close()\nexcept OSError as e:\n    n = errno.errorcode[e.errno]\nn, i <= 5000",
		Value:  `["ENOSPC",true]`,
	},
	{
		Name: "C05 a million folders", Limit: func(l *sandbox.Limits) { l.Inodes = 5000 },
		Python: "import errno, os\nfound = []\nfor at in '/workspace', '/tmp', '/dev/shm':\n    try:\n        for i in range(1_000_000): os.mkdir(f'{at}/{i}')\n    except OSError as e:\n        found.append([errno.errorcode[e.errno], i < 21_000])\nfound",
		Value:  `[["ENOSPC",true],["ENOSPC",true],["ENOSPC",true]]`,
	},
	{
		Name: "C05 too many files in node", Limit: func(l *sandbox.Limits) { l.Inodes = 100 }, Value: `["ENOSPC",true]`,
		Node: "import fs from 'node:fs'; let n, i = 0; try { for (; i < 1000; i++) fs.writeFileSync(`/workspace/${i}`, ''); } catch (e) { n = e.code; } export default [n, i <= 100];",
	},
	{
		Name: "relative paths are the workspace's", Python: "import os\nopen('x', 'w').close()\nos.listdir('/workspace'), os.getcwd()", Value: `[["x"],"/workspace"]`,
	},
	{
		Name: "relative paths are the workspace's in node", Value: `[["x"],"/workspace"]`,
		Node: "import fs from 'node:fs'; fs.writeFileSync('x', ''); export default [fs.readdirSync('/workspace'), process.cwd()];",
	},
	{
		Name: "C07 printing 10 GB", Status: sandbox.Flooded, Python: "import os\nb = b'A' * 65536\nfor i in range(160000):\n    os.write(1, b)",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if len(o.Stdout.Text) > 17<<10 || o.Stdout.Cut < 1<<20 || !strings.Contains(o.Stdout.Text, "bytes cut") {
				t.Errorf("kept %d, cut %d", len(o.Stdout.Text), o.Stdout.Cut)
			}
		},
	},
	{
		Name: "C07 printing 10 GB in node", Status: sandbox.Flooded, Node: "const s = 'A'.repeat(65536); for (let i = 0; i < 160000; i++) console.log(s);",
	},
	{
		Name: "C08 a flood of stderr that is no text", Status: sandbox.Flooded, Python: "import sys\nwhile True: sys.stderr.buffer.write(b'\\xff\\x00' * 50000)",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if strings.ContainsRune(o.Stderr.Text, 0) || len(o.Stderr.Text) > 60<<10 {
				t.Errorf("kept %d bytes", len(o.Stderr.Text))
			}
		},
	},
	{
		Name: "beginning and end of a long output are kept", Python: "for i in range(20000): print(i)", Value: "-",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Stdout.Cut == 0 || !strings.HasPrefix(o.Stdout.Text, "0\n1\n2\n") || !strings.HasSuffix(o.Stdout.Text, "\n19998\n19999\n") {
				t.Errorf("cut %d: %.40q...", o.Stdout.Cut, o.Stdout.Text)
			}
		},
	},
	{
		Name: "a long value is cut by its size", Python: "'x' * 1000000", Limit: func(l *sandbox.Limits) { l.Value = 1000 },
		Check: func(t *testing.T, o sandbox.Outcome) {
			if len(o.Value.Text) != 1000 || o.Value.Size != 1000002 || o.Value.Kind != "text" {
				t.Errorf("value of %d, size %d, kind %s", len(o.Value.Text), o.Value.Size, o.Value.Kind)
			}
		},
	},
	{
		Name: "a long value in node", Node: "export default 'x'.repeat(1000000)", Limit: func(l *sandbox.Limits) { l.Value = 1000 },
		Check: func(t *testing.T, o sandbox.Outcome) {
			if len(o.Value.Text) != 1000 || o.Value.Kind != "text" {
				t.Errorf("value of %d, kind %s", len(o.Value.Text), o.Value.Kind)
			}
		},
	},
}

func wantHint(t *testing.T, o sandbox.Outcome, want string) {
	t.Helper()
	if o.Fault == nil || !strings.HasPrefix(o.Fault.Hint, want) {
		t.Errorf("fault %+v, want the hint %q", o.Fault, want)
	}
}

func wantStdout(t *testing.T, o sandbox.Outcome, want string) {
	t.Helper()
	if o.Stdout.Text != want {
		t.Errorf("stdout %q, want %q", o.Stdout.Text, want)
	}
}

// LimitsHold runs one program for each limit that machines hold in several ways.
func LimitsHold(t *testing.T, runner Runner) {
	held := map[string]bool{
		"C10 sleeping past the limit with children": true, "C01 memory of many processes together": true, "processor time of children that end": true,
		"waiting is no processor time": true, "C01 memory of gVisor's own kernel, in sockets": true, "C02 fork bomb": true,
	}
	for _, c := range limitCases {
		if held[c.Name] {
			delete(held, c.Name)
			t.Run(strings.ReplaceAll(c.Name, " ", "-"), func(t *testing.T) { c.run(t, runner) })
		}
	}
	for name := range held {
		t.Errorf("there is no case %q", name)
	}
}
