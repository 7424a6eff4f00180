package sandboxtest

import (
	"strings"
	"testing"

	"sallyport/sandbox"
)

// functionCases are what programs import from "sallyport" next to calls, in both languages.
var functionCases = []Case{
	{
		Name: "tools are searched and described from a program",
		Python: `from sallyport import search_tools, describe
from servers.test import echo
import servers.test
asked = lambda r: [r["tool"], r["args"]]
asked(search_tools("open issues")), asked(search_tools("x", "full", upstream="test", limit=3)), asked(describe(echo)), asked(describe("test.echo")), asked(describe(servers.test)), asked(await describe.aio(echo))`,
		Value: `[["sallyport.search_tools",{"query":"open issues","language":"python"}],["sallyport.search_tools",{"query":"x","detail":"full","upstream":"test","limit":3,"language":"python"}],` +
			`["sallyport.describe",{"tool":"test.echo","language":"python"}],["sallyport.describe",{"tool":"test.echo","language":"python"}],["sallyport.describe",{"tool":"test","language":"python"}],["sallyport.describe",{"tool":"test.echo","language":"python"}]]`,
	},
	{
		Name: "tools are searched and described from a program in node",
		Node: nodeImports + `async function echo(args = {}) {
  return call("test.echo", args, '{"sig":"test.echo()"}');
}
const asked = (r) => [r.tool, r.args];
const wrong = (p) => p.then(() => "taken", (e) => e.message);
export default [asked(await search_tools("open issues")), asked(await search_tools("x", { detail: "full", upstream: null, limit: 3 })), asked(await search_tools({ query: "x" })), asked(await describe(echo)), asked(await describe("test.echo")),
  await wrong(search_tools("x", { lmit: 3 })), await wrong(describe(Math.max))]`,
		Value: `[["sallyport.search_tools",{"query":"open issues","language":"typescript"}],["sallyport.search_tools",{"query":"x","detail":"full","limit":3,"language":"typescript"}],["sallyport.search_tools",{"query":"x","language":"typescript"}],` +
			`["sallyport.describe",{"tool":"test.echo","language":"typescript"}],["sallyport.describe",{"tool":"test.echo","language":"typescript"}],` +
			`"search_tools has no option \"lmit\"; options are an object of: detail, upstream, limit","describe takes a wrapper or \"upstream.name\", not a function"]`,
	},
	{
		Name: "an error tells all that is known",
		Python: `import json, pickle
from sallyport import call, ToolError
def caught(tool):
    try: call(tool)
    except ToolError as e: return e
e, busy = caught("test.deny"), caught("test.busy")
again = pickle.loads(pickle.dumps(busy))
[e.message, e.code, e.kind, e.upstream, e.tool, e.hint, e.retryable], [busy.code, busy.retryable, again.retryable, again.tool], str(e), repr(e), repr(ToolError("x"))`,
		Value: `[["not allowed","denied","denied","test","test.deny","ask first",false],["upstream",true,true,"test.busy"],"not allowed",` +
			`"ToolError('not allowed', code='denied', tool='test.deny', hint='ask first')","ToolError('x', code='internal')"]`,
	},
	{
		Name: "an error tells all that is known in node",
		Node: nodeImports + `const caught = (tool) => call(tool).catch((e) => e);
const e = await caught("test.deny"), busy = await caught("test.busy");
console.log(e);
export default [[e.message, e.code, e.kind, e.upstream, e.tool, e.hint, e.retryable, e.name, String(e)], [busy.code, busy.retryable, busy instanceof ToolError, busy instanceof Error], JSON.stringify(busy)]`,
		Value: `[["not allowed","denied","denied","test","test.deny","ask first",false,"ToolError","ToolError: not allowed"],["upstream",true,true,true],` +
			`"{\"name\":\"ToolError\",\"message\":\"busy\",\"code\":\"upstream\",\"tool\":\"test.busy\",\"hint\":\"\",\"retryable\":true}"]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, "ToolError: not allowed { code: 'denied', tool: 'test.deny', hint: 'ask first' }\n")
		},
	},
	{
		Name: "parallel is bounded and keeps the order",
		Python: `import threading
from sallyport import parallel
now, most, lock, together = 0, 0, threading.Lock(), None
def work(i):
    global now, most
    with lock: now += 1; most = max(most, now)
    if i < together.parties: together.wait(30)
    with lock: now -= 1
    return i
def peak(n, **options):
    global most, together
    most, together = 0, threading.Barrier(n)
    assert parallel((lambda i=i: work(i) for i in range(60)), **options) == list(range(60))
    return most
peak(16), peak(3, limit=3), peak(1, limit=1), parallel(), parallel([])`,
		Value: "[16,3,1,[],[]]",
	},
	{
		Name: "parallel is bounded and keeps the order in node",
		Node: nodeImports + `let now = 0, most = 0;
const work = (i) => async () => { most = Math.max(most, ++now); await new Promise((r) => setTimeout(r, 5)); now--; return i; };
async function peak(options) {
  most = 0;
  const list = Array.from({ length: 60 }, (_, i) => work(i));
  const got = options ? await parallel(list, options) : await parallel(...list);
  return got.every((v, i) => v === i) && got.length === 60 ? most : got;
}
export default [await peak(), await peak({ limit: 3 }), await peak({ limit: 1 }), await parallel(), await parallel([]), await parallel(new Set([() => 1])), await parallel((function* () { yield () => 1; yield async () => 2; })()), await parallel(work(1)(), work(2), { limit: 1 })]`,
		Value: "[16,3,1,[],[],[1],[1,2],[1,2]]",
	},
	{
		Name: "errors of parallel",
		Python: `import time
from sallyport import parallel, call, ToolError
done = []
def works(i, wait=0.0): return lambda: (time.sleep(wait), done.append(i), i)[2]
def fails(i, wait=0.0):
    def run():
        time.sleep(wait)
        raise ValueError(i)
    return run
def raised(*functions, **options):
    done.clear()
    try: return parallel(*functions, **options)
    except Exception as e: return [str(e), getattr(e, "__notes__", [])]
one = raised(works(0, 0.3), fails(1, 0.2), fails(2), *[works(i) for i in range(3, 40)], limit=3), sorted(done)[0], len(done) < 30
alone = raised(works(0, 0.1), fails(1)), done[:]
places = parallel(works(0), fails(1), lambda: call("test.fail"), works(3), errors=True)
one, alone, [str(p) for p in places], isinstance(places[2], ToolError)`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			// How many were started is a matter of time, that few were is not.
			wantEnds(t, o, `[[["1",["parallel: 2 of 40 functions failed, `, `]],0,true],[["1",[]],[0]],["0","1","no such thing","3"],true]`)
		},
	},
	{
		Name: "errors of parallel in node",
		Node: nodeImports + `const done = [];
const works = (i, wait = 0) => async () => { await new Promise((r) => setTimeout(r, wait)); done.push(i); return i; };
const fails = (i, wait = 0) => async () => { await new Promise((r) => setTimeout(r, wait)); throw new Error(i); };
const raised = async (...f) => { done.length = 0; try { return await parallel(...f); } catch (e) { return [e.message, e.notes ?? []]; } };
const many = Array.from({ length: 37 }, (_, i) => works(i + 3, 5));
const one = [await raised(works(0, 100), fails(1, 50), fails(2), ...many, { limit: 3 }), done[0], done.length < 30];
const alone = [await raised(works(0, 50), fails(1)), [...done]];
const running = [await raised(fails(0)(), works(1, 50)(), fails(2, 20)()), [...done]];
const places = await parallel(works(0), fails(1), () => call("test.fail"), works(3), { errors: true });
export default [one, alone, running, places.map((p) => p.message ?? p), places[2] instanceof ToolError]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantEnds(t, o, `[[["1",["parallel: 2 of 40 functions failed, `, `,true],[["1",[]],[0]],[["0",["parallel: 2 of 3 functions failed, 0 were not started"]],[1]],[0,"1","no such thing",3],true]`)
		},
	},
	{
		Name: "what is no function is not run in parallel",
		Python: `import warnings
warnings.simplefilter("error")
from sallyport import parallel, async_call
def refused(*given, **options):
    try: return parallel(*given, **options)
    except TypeError as e: return str(e)[:75]
refused(1), refused([print, {"a": 1}]), refused("ab"), refused(print, [1]), refused(async_call("test.echo"), async_call("test.echo")), refused(print, limit=0), refused(print, limit="4")`,
		Value: `["parallel takes functions, not results, and number 1 is of type int: paralle","parallel takes functions, not results, and number 2 is of type dict: parall","parallel takes functions, not results, and number 1 is of type str: paralle",` +
			`"parallel takes functions, not results, and number 2 is of type list: parall","echo.aio(...): the call was not awaited","limit says how many run at once: a whole number from 1 on, not 0","limit says how many run at once: a whole number from 1 on, not '4'"]`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			if o.Stderr.Text != "note: not awaited, so not called: echo\n" {
				t.Errorf("stderr: %s", o.Stderr.Text)
			}
		},
	},
	{
		Name: "what is no function is not run in parallel in node",
		Node: nodeImports + `const refused = (...given) => parallel(...given).then(String, (e) => e.name + ": " + e.message.slice(0, 70));
const f = () => 1;
export default [await refused(1), await refused([f, { a: 1 }]), await refused("ab"), await refused(f, [1]), await refused(f, { limit: 0 }), await refused(f, { limit: 2, all: true }), await refused(null), await refused(Promise.reject(new Error("late")), 5)]`,
		Value: `["TypeError: parallel takes functions, not results, and number 1 is of type number:","TypeError: parallel takes functions, not results, and number 2 is of type object:","TypeError: parallel takes functions, not results, and number 1 is of type string:",` +
			`"TypeError: parallel takes functions, not results, and number 2 is an array: paral","TypeError: limit says how many run at once: a whole number from 1 on, not 0","TypeError: parallel takes functions, not results, and number 2 is of type object:",` +
			`"TypeError: parallel takes functions, not results, and number 1 is null: parallel(","TypeError: parallel takes functions, not results, and number 2 is of type number:"]`,
	},
	{
		Name: "parallel in parallel comes to an end",
		Python: `from sallyport import call, parallel
def deep(n): return call("test.echo", {"n": n})["args"]["n"] if n == 0 else sum(parallel([lambda: deep(n - 1)] * 4))
wide = parallel([lambda: parallel([lambda i=i: call("test.echo", {"i": i})["args"]["i"] for i in range(20)])] * 20)
1 + parallel([lambda: deep(3)] * 3)[2], [sum(w) for w in wide] == [190] * 20`,
		Value: "[1,true]",
	},
	{
		Name: "sync calls, async calls, threads and loops together",
		Python: `import asyncio, threading
from servers.test import echo
from sallyport import call, async_call, parallel
async def one(i):
    a = await asyncio.to_thread(echo, i)      # in a thread of asyncio's
    b = echo(i)                               # in the coroutine itself
    c = (await async_call("test.echo", {"x": i}))["args"]["x"]
    return [a, b, c]
async def main():
    some = await asyncio.gather(*[one(i) for i in range(30)])
    inside = parallel(lambda: echo(1), lambda: async_call("test.echo", {"x": 2}), lambda: parallel(lambda: echo(3)))
    mixed = await parallel.aio(lambda: echo(4), lambda: one(5), one(6), asyncio.sleep(0, 7), limit=2)
    wrong = await parallel.aio(one(8), lambda: 1 / 0, errors=True)
    return some == [[i] * 3 for i in range(30)], inside[0], inside[1]["args"]["x"], inside[2], mixed, [str(w) for w in wrong]
first, second = await main(), await main()
async def late():
    try: await asyncio.wait_for(parallel.aio(*[lambda: threading.Event().wait(0.2)] * 50, limit=1), 0.3)
    except asyncio.TimeoutError: return "canceled"
first == second, first, await late()`,
		Value: `[true,[true,1,2,[3],[4,[5,5,5],[6,6,6],7],["[8, 8, 8]","division by zero"]],"canceled"]`,
	},
	{
		Name:   "ten thousand functions and calls",
		Limit:  func(l *sandbox.Limits) { l.Calls = 20_000 },
		Python: "from sallyport import call, parallel\nrs = parallel([lambda i=i: call('test.echo', {'i': i})['args']['i'] for i in range(5000)], limit=32)\nrs == list(range(5000)), parallel([int] * 5000) == [0] * 5000", Value: "[true,true]",
		Within: 20e9,
	},
	{
		Name:  "ten thousand functions and calls in node",
		Limit: func(l *sandbox.Limits) { l.Calls = 20_000 },
		Node:  nodeImports + "const rs = await parallel(Array.from({ length: 10000 }, (_, i) => () => call('test.echo', { i })), { limit: 64 }); export default rs.every((r, i) => r.args.i === i)", Value: "true",
		Within: 20e9,
	},
	{
		Name: "shapes of values",
		Python: `from sallyport import shape_of, call, Blob
import datetime
class Row(dict): pass
print(shape_of(call("test.mixed")))
shape_of([{"id": 1, "tags": ["a"]}, {"id": 2, "note": None}]), shape_of(call("test.blob")), shape_of((1, None)), shape_of({1: "a"}), shape_of(Row(a=datetime.date(2024, 1, 1))), shape_of(call), shape_of({"a" * 60 + str(i): {"b": {"c": i}} for i in range(100)})[:50], len(shape_of([{"k%d" % i + "x" * 50: i for i in range(100)}] * 3)) < 4100`,
		Value: `["list[{id: int, note?: None, tags?: list[str]}]","Blob","list[int | None]","dict[int, str]","{a: date}","function","dict[str, {b: {c: int}}]",true]`,
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "list[str | {a: list[int]}]\n") },
	},
	{
		Name: "shapes of values in node",
		Node: nodeImports + `console.log(shape_of(await call("test.mixed")));
export default [shape_of([{ id: 1, tags: ["a"] }, { id: 2, note: null }]), shape_of(await call("test.blob")), shape_of(call("test.echo")), shape_of(undefined), shape_of({ at: new Date(), no: undefined }), shape_of(new Map([["a b", 1n]])), shape_of(call), shape_of(new Set([1]))]`,
		Value: `["{id: number, note?: null, tags?: string[]}[]","Blob","Promise (await it first)","undefined","{at: Date}","Record<string, bigint>","function","number[]"]`,
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "(string | {a: (number | bigint)[]})[]\n") },
	},
	{
		Name: "values are saved and loaded",
		Python: `import os, sallyport
from sallyport import save, load, Blob, ToolError
rows = [{"é": 10 ** 20, "n": None, "s": "\ud800"}]
for name, value in {"rows": rows, "two words.json": {"a": 1}, "raw": b"\x00\n\xff", "pic": Blob(b"x\n", "image/png", "u", "n")}.items(): save(name, value)
save("rows", rows * 2)
pic = load("pic")
def refused(function, *args):
    try: function(*args)
    except ToolError as e: return [e.code, e.message, e.hint]
    except TypeError as e: return str(e)
[load("rows") == rows * 2, load("two words.json"), list(load("raw")), [pic.mime, pic.uri, pic.name, pic.data == b"x\n"], sorted(os.listdir("/workspace/.saved"))], refused(load, "row"), refused(load, "zz"), [refused(save, name, 1)[0] for name in ("", ".a", "a/b", "a\\b", "a\nb", "x" * 61, 5)], refused(save, "a", [b"x"]), refused(save, "a", float("nan")), refused(save, "a", print)`,
		Value: `[[true,{"a":1},[0,10,255],["image/png","u","n",true],["pic","raw","rows","two words.json"]],["not_found","nothing is saved as 'row'","did you mean rows? saved are: pic, raw, rows, two words.json"],["not_found","nothing is saved as 'zz'","saved are: pic, raw, rows, two words.json"],` +
			`["invalid","invalid","invalid","invalid","invalid","invalid","invalid"],"save keeps bytes only as a whole value: save it under a name of its own","value cannot be saved: JSON has no NaN and no infinity: write None","an argument of type builtin_function_or_method cannot be sent: use str, numbers, bool, None, list or dict"]`,
	},
	{
		Name: "values are saved and loaded in node, and what the other language saved",
		Node: nodeImports + `const fs = await import("node:fs"); const { execFileSync } = await import("node:child_process");
const rows = [{ é: 5, n: null, s: "\ud800", big: 2n ** 70n }];
save("rows", rows); save("raw", new Uint8Array([0, 10, 255])); save("pic", new Blob(new Uint8Array([120, 10]), "image/png", "u", "n"));
const pic = load("pic");
const refused = (f, ...args) => { try { f(...args); return "taken"; } catch (e) { return e instanceof ToolError ? [e.code, e.message, e.hint] : e.message; } };
const python = (code) => execFileSync("/usr/bin/python3", ["-I", "-c", "import sys; sys.path.append('/opt/sallyport')\nfrom sallyport import save, load, Blob\n" + code]).toString();
const seen = python("p = load('pic'); print(load('rows')[0]['big'] == 2 ** 70, load('raw'), p.mime, p.uri, p.name, p.data)\nsave('back', {'é': [1, None]}); save('bytes', b'\\x00\\n'); save('blob', Blob(b'b', 'a/b'))");
const blob = load("blob");
export default [load("rows")[0].s === "\ud800" && load("rows")[0].big === 2n ** 70n, [...load("raw")], [pic.mime, pic.uri, pic.name, [...pic.data]], fs.readdirSync("/workspace/.saved").sort(), seen, load("back"), [...load("bytes")], blob instanceof Blob && blob.mime,
  refused(load, "rosw"), ["", ".a", "a/b", "a\\b", "a\nb", "x".repeat(61), 5].map((n) => refused(save, n, 1)[0]), refused(save, "a", [new Uint8Array(1)]), refused(save, "a", { x: NaN }), refused(save, "a", call("test.echo")), refused(save, "a")]`,
		Value: `[true,[0,10,255],["image/png","u","n",[120,10]],["back","blob","bytes","pic","raw","rows"],"True b'\\x00\\n\\xff' image/png u n b'x\\n'\n",{"é":[1,null]},[0,10],"a/b",` +
			`["not_found","nothing is saved as \"rosw\"","did you mean rows? saved are: back, blob, bytes, pic, raw, rows"],["invalid","invalid","invalid","invalid","invalid","invalid","invalid"],"save keeps Uint8Array only as a whole value: save it under a name of its own","value cannot be saved: NaN and Infinity cannot be sent","a promise cannot be saved; await it first","a undefined cannot be saved"]`,
	},
}

func wantEnds(t *testing.T, o sandbox.Outcome, start, end string) {
	t.Helper()
	if got := value(o); !strings.HasPrefix(got, start) || !strings.HasSuffix(got, end) {
		t.Errorf("value %s, want %s...%s", got, start, end)
	}
}
