package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"sallyport/sandbox"
)

// nodeImports gives node programs the client that TypeScript gets by its import.
const nodeImports = `const { call, parallel, progress, search_tools, describe, shape_of, emit, save, load, ToolError, Blob } = globalThis[Symbol.for("sallyport")];` + "\n"

var bridgeCases = []Case{
	{
		Name:   "arguments and results are native",
		Python: "from sallyport import call\nr = call('test.echo', {'a': [1, 2.5, None, True], 'é': 'ü\\U0001F600\\n', 'n': 9007199254740993})\nr['args'], r['tool']",
		Value:  `[{"a":[1,2.5,null,true],"é":"ü😀\n","n":9007199254740993},"test.echo"]`,
	},
	{
		Name:  "arguments and results are native in node",
		Node:  nodeImports + "const r = await call('test.echo', { a: [1, 2.5, null, true], é: 'ü😀\\n', when: new Date(0), set: new Set([1]) }); export default r.args",
		Value: `{"a":[1,2.5,null,true],"é":"ü😀\n","when":"1970-01-01T00:00:00.000Z","set":[1]}`,
	},
	{
		Name:   "texts stay texts, JSON is parsed, several blocks are a list",
		Python: "from sallyport import call\ncall('test.text'), call('test.mixed')", Value: `["007",[{"a":[1,9007199254740993]},"plain"]]`,
	},
	{
		Name: "integers beyond 2^53 keep their digits in node",
		Node: nodeImports + `const big = [9007199254740993n, -12345678901234567890n, 9007199254740991, 1.5e30, 0.125];
const [echoed, [{ a }]] = [(await call('test.echo', { big, text: '[9007199254740993, "a\\": -9007199254740993', deep: { id: 10000000000000001n } })).args, await call('test.mixed')];
export default [echoed.big.map(String), echoed.text, typeof echoed.deep.id, a[1] === 9007199254740993n, JSON.stringify(a), new Set([a[1], 9007199254740992n]).size]`,
		Value: `[["9007199254740993","-12345678901234567890","9007199254740991","1.5e+30","0.125"],"[9007199254740993, \"a\\\": -9007199254740993","bigint",true,"[1,\"9007199254740993\"]",2]`,
	},
	{
		Name:   "blobs are bytes with a type",
		Python: "from sallyport import call\nb = call('test.blob')\nb.mime, list(b.data), repr(b)", Value: `["image/png",[0,1,254,255],"<Blob image/png, 4 bytes>"]`,
	},
	{
		Name: "blobs are bytes with a type in node",
		Node: nodeImports + "const b = await call('test.blob'); export default [b.mime, [...b.data], b instanceof Blob]", Value: `["image/png",[0,1,254,255],true]`,
	},
	{
		Name:   "a tool's error is an exception to catch",
		Python: "from sallyport import call, ToolError\ndef kind(tool):\n    try: call(tool)\n    except ToolError as e: return [e.kind, e.message, e.hint, e.tool]\nkind('test.fail'), kind('test.deny'), kind('../x')[0]",
		Value:  `[["failed","no such thing","","test.fail"],["denied","not allowed","ask first","test.deny"],"invalid"]`,
	},
	{
		Name: "a tool's error in node", Status: sandbox.Failed, Node: nodeImports + "await call('test.fail')",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "ToolError" || o.Fault.Message != "no such thing" {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name:   "a megabyte both ways",
		Python: "from sallyport import call\ns = 'é' * 1000000\ncall('test.echo', {'s': s})['args']['s'] == s", Value: "true",
	},
	{
		Name: "a megabyte both ways in node",
		Node: nodeImports + "const s = 'é'.repeat(1000000); export default (await call('test.echo', { s })).args.s === s", Value: "true",
	},
	{
		Name:   "calls in parallel come back in order",
		Python: "from sallyport import call, parallel\n[r['args']['i'] for r in parallel([lambda i=i: call('test.echo', {'i': i}) for i in range(100)])] == list(range(100))", Value: "true",
	},
	{
		Name:   "calls in async code",
		Python: "import asyncio\nfrom sallyport import async_call\nrs = await asyncio.gather(*[async_call('test.echo', {'i': i}) for i in range(40)])\n[r['args']['i'] for r in rs] == list(range(40))", Value: "true",
	},
	{
		Name: "calls in parallel in node",
		Node: nodeImports + "const rs = await parallel(Array.from({ length: 100 }, (_, i) => () => call('test.echo', { i }))); export default rs.every((r, i) => r.args.i === i)", Value: "true",
	},
	{
		Name:   "resources are texts, blobs and lists of them",
		Python: "from servers.test import resources\nimport servers\nb = servers.test.resources.read('test:b')\nresources.read('test:a'), len(b), b[0].mime, b[1], resources.__name__", Value: `["{\"a\": 1}",2,"image/png","{\"a\": 1}","servers.test.resources"]`,
	},
	{
		Name:   "what is not offered and what is not for programs",
		Python: "from sallyport import call, ToolError\ndef kind(tool):\n    try: call(tool)\n    except ToolError as e: return [e.kind, e.message]\ntry:\n    from servers.test import prompts\nexcept ImportError as e: why = str(e)\nkind('test.logging/setLevel'), kind('test.a/b')[0], kind('test.tools/call')[0], call('test.resources/list'), why",
		Value:  `[["invalid","a program cannot ask for test.logging/setLevel"],"invalid","invalid",[{"uri":"test:a"}],"servers.test offers no prompts"]`,
	},
	{
		Name:  "resources and prompts in node",
		Node:  nodeImports + "const b = await call('test.resources/read', { uri: 'test:b' }); export default [await call('test.resources/read', { uri: 'test:a' }), b[0] instanceof Blob, (await call('test.prompts/get', { name: 'p' })).messages[0].content.text, await call('test.subscribe').then((v) => v.tool), await call('test.resources/subscribe').catch((e) => e.kind)]",
		Value: `["{\"a\": 1}",true,{"name":"p"},"test.subscribe","invalid"]`,
	},
	{
		// On a busy machine, a step is left out if the next one comes before it was sent. The last one of a call never is.
		Name: "progress is heard where it was asked for",
		Python: `from sallyport import call, progress, parallel
import asyncio, re, sallyport
heard = []
listen = lambda p: heard.append([p.progress, p.total, p.message, p.tool])
with progress(listen):
    first = call("test.far")
    call("test.echo")
    parallel(lambda: call("test.far"))
    async def main(): return await sallyport.async_call("test.far")
    asyncio.run(main())
call("test.far")
steps = "".join(str(h[0]) for h in heard)
whole = all(h == [h[0], 3, f"step \x1b {h[0]}", "test.far"] for h in heard)
first, whole, len(steps) > 3 and re.fullmatch("(1?2?3){3}", steps) is not None or steps`,
		Value: `["done",true,true]`,
	},
	{
		Name: "progress is heard where it was asked for in node",
		Node: nodeImports + `const heard = [];
const first = await progress((p) => heard.push(p), async () => { await call("test.echo"); return call("test.far"); });
await call("test.far");
const steps = heard.map((p) => p.progress).join("");
const whole = heard.every((p) => p.total === 3 && p.message === "step \x1b " + p.progress && p.tool === "test.far");
export default [first, whole, steps.length > 1 && /^1?2?3$/.test(steps) || steps]`,
		Value: `["done",true,true]`,
	},
	{
		Name: "a listener that fails or calls hurts no call",
		Python: `from sallyport import call, progress
def calls(p): heard.append(call("test.echo", {"n": p.progress})["args"]["n"])
heard = []
with progress(lambda p: 1 / 0):
    first = call("test.far")
with progress(calls):
    with progress(None): call("test.far")
    second = call("test.far")
first, second, len(heard) > 1 and heard in ([1, 2, 3], [1, 3], [2, 3]) or heard`,
		Value: `["done","done",true]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Stderr.Text != "progress of test.far: ZeroDivisionError: division by zero\n" {
				t.Errorf("stderr: %q", o.Stderr.Text)
			}
		},
	},
	{
		Name: "a listener that fails or calls hurts no call in node",
		Node: nodeImports + `const heard = [];
const first = await progress(() => { throw new Error("no"); }, () => call("test.far"));
const second = await progress(async (p) => { heard.push((await call("test.echo", { n: p.progress })).args.n); throw 1; }, () => call("test.far"));
export default [first, second, heard.length]`,
		Value: `["done","done",1]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Stderr.Text != "progress of test.far: Error: no\nprogress of test.far: 1\n" {
				t.Errorf("stderr: %q", o.Stderr.Text)
			}
		},
	},
	{
		Name: "a flood of progress costs next to nothing",
		Python: `from sallyport import call, progress
heard = []
with progress(lambda p: heard.append(p.progress)):
    call("test.flood")
heard[-1], len(heard) < 300`,
		Value: "[10000,true]",
	},
	{
		Name: "nobody answers an upstream's questions", Status: sandbox.Failed, Python: "from sallyport import call\ncall('test.ask')",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Message != "no answer: the upstream asks for a person's answer, and a program cannot give it" || !strings.HasPrefix(o.Fault.Hint, "during the call the upstream asked for a person's answer, which a program cannot give") {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "C11 no more calls than allowed", Limit: func(l *sandbox.Limits) { l.Calls = 50 },
		Python: "from sallyport import call, ToolError\nn = 0\ntry:\n    while True:\n        call('test.echo'); n += 1\nexcept ToolError as e:\n    k = e.kind\nn, k", Value: `[50,"limit"]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Calls != 50 {
				t.Errorf("%d calls counted", o.Calls)
			}
		},
	},
	{
		Name: "a call that never ends is cancelled with its program", Status: sandbox.TimedOut, Python: "from sallyport import call\ncall('test.slow')",
		Limit: func(l *sandbox.Limits) { l.Timeout = time.Second },
	},
	{
		Name: "the clock stands still while a person is waited for, and goes on after it", Status: sandbox.TimedOut,
		Python: "import time\nfrom sallyport import call\ncall('test.person')\nprint('answered', flush=True)\ntime.sleep(20)",
		Limit:  func(l *sandbox.Limits) { l.Timeout = 3 * time.Second }, Within: 8 * time.Second,
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "answered\n") },
	},
	{
		Name: "a forked process cannot call", Status: sandbox.OK,
		Python: "import os\nfrom sallyport import call, ToolError\nr, w = os.pipe()\nif os.fork() == 0:\n    try: call('test.echo')\n    except ToolError as e: os.write(w, e.kind.encode())\n    os._exit(0)\nos.read(r, 100).decode()", Value: `"invalid"`,
	},
	{
		Name: "F04 F07 forged frames hurt only their sender", Status: sandbox.Failed,
		Python: `import sallyport
b = sallyport._bridge
b.send({"type": "call", "id": -1, "tool": "test.echo", "args": {}, "execution": "victim"})
b.send({"type": "call", "id": -1, "tool": "test.echo", "args": {}})
b.send({"type": "result", "id": 1, "value": {"json": 1}})
b.send({"type": "nonsense"})
execution = b.receive()["value"]["json"]["execution"]
assert execution.startswith("case-"), execution
b.send({"type": "done", "fault": {"type": "Forged", "message": "\x1b[31mred"}})
import time; time.sleep(60)`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Fault.Type != "Forged" {
				t.Errorf("fault: %+v", o.Fault)
			}
		},
	},
	{
		Name: "what is no frame ends the bridge", Status: sandbox.Crashed,
		Python: "import sallyport, time\nsallyport._bridge._send(0x82, b'\\xff\\x00')\ntime.sleep(60)",
	},
	{
		Name: "F10 a frame that is too large ends the bridge", Status: sandbox.Crashed,
		Python: "import sallyport, time\ntry:\n    sallyport._bridge.send({'type': 'call', 'id': 1, 'tool': 'test.echo', 'args': {'s': 'x' * (20 << 20)}})\nexcept Exception: pass\ntime.sleep(60)",
	},
	{
		Name: "F10 an argument that is too large does not leave", Python: "import sallyport\ntry:\n    sallyport.call('test.echo', {'s': 'x' * (20 << 20)})\nexcept sallyport.ToolError as e:\n    said = e.code\nsaid", Value: `"limit"`,
	},
	{
		Name: "F10 answers that nobody reads", Status: sandbox.TimedOut, Limit: func(l *sandbox.Limits) { l.Timeout = 2 * time.Second },
		Python: "import sallyport, time\nfor i in range(40):\n    sallyport._bridge.send({'type': 'call', 'id': i, 'tool': 'test.echo', 'args': {'s': 'x' * (1 << 20)}})\ntime.sleep(60)",
	},
	{
		Name: "the wrappers can be listed and imported", Python: "import os\nfrom servers.test import echo\nsorted(os.listdir('/servers')), echo(1)", Value: `[["__init__.py","test"],1]`,
	},
	{
		Name: "text of a program is cleaned where it becomes an error", Status: sandbox.Failed, Python: "raise ValueError('\\x1b[2J' + 'x' * 100000)",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if len(o.Fault.Message) > 5000 || !strings.Contains(o.Fault.Message, "xxx") {
				t.Errorf("message of %d bytes", len(o.Fault.Message))
			}
		},
	},
}
