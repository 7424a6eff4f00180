package sandboxtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/sandbox"
)

// mistake is what a model is likely to write wrong, and the error that it gets.
type mistake struct{ code, hint string }

const (
	spec      = `test.open_issue(title: str, *, labels: list[str] = ...)`
	takes     = "open_issue takes: title, labels"
	pyShape   = "print(shape_of(value)) shows what a value is (from sallyport import shape_of)"
	tsShape   = `console.log(shape_of(value)) shows what a value is (import { shape_of } from "sallyport")`
	elsewhere = `files are in /workspace: "/workspace/none"`
	noNetwork = "the sandbox has no network: call a tool instead, search_tools finds one"
)

var pythonMistakeList = []mistake{
	{"open_issue(title='a')", "write: from servers.test import open_issue"},
	{"openIssue(title='a')", "write: from servers.test import open_issue"},
	{"parallel(print)", "write: from sallyport import parallel"},
	{"from sallyport import paralle", "did you mean parallel?"},
	{"from sallyport import open_issue", "write: from servers.test import open_issue"},
	{"from servers import tset", "did you mean test?"},
	{"json.dumps(1)", "write: import json"},
	{"servers.test.echo(1)", "write: import servers"},
	{"x = null", "in Python: None"},
	{"rows = []\nfor r in rwos: pass", "did you mean rows?"},
	{"from servers.test import open_issue\nopen_issue('a', lables=['b'])", "did you mean labels? " + takes},
	{"import servers\nservers.test.open_issue()", takes},
	{"from servers import test\ntest.open_issue('a', ['b'])", takes},
	{"from servers.test import open_issue\nopen_issue({'title': 'a'})", spec},
	{"from servers.test import open_issue\nawait open_issue('a')", "calls return their result at once: drop the await, or write await NAME.aio(...)"},
	{"import asyncio\nfrom servers.test import open_issue\nasync def main(): await asyncio.gather(open_issue('a'))\nawait main()", "calls return their result at once: write NAME.aio(...) to await several"},
	{"import asyncio\nfrom servers.test import open_issue\nawait asyncio.create_task(open_issue('a'))", "calls return their result at once: write NAME.aio(...) to await several"},
	{"from servers.test import open_issue_async", "write: from servers.test import open_issue; await open_issue.aio(...)"},
	{"from servers.test import async_open_issue", "write: from servers.test import open_issue; await open_issue.aio(...)"},
	{"from servers.test.aio import open_issue", "write: from servers.test import open_issue; await open_issue.aio(...)"},
	{"from servers.test import get-sum", "names have _ in place of -"},
	{"from servers.my-server import get_sum", "names have _ in place of -"},
	{"async for i in iter([]): pass", "it is no asynchronous iterator: write for in place of async for"},
	{"from servers.test import open_issue\nopen_issue.aio('a')['id']", "an asynchronous call has to be awaited: (await NAME.aio(...)), or call NAME(...) without .aio"},
	{"from servers.test import open_issue\nfor i in open_issue.aio('a'): pass", "an asynchronous call has to be awaited: (await NAME.aio(...)), or call NAME(...) without .aio"},
	{"import asyncio\nasync def main(): pass\nmain_ = main()\nawait main_\nasyncio.run(main())", "await works at the top level: write await main()"},
	{"r = {'title': 1}\nr.title", `results are dicts: write value["title"]`},
	{"r = {'title': 1, 'id': 2}\nr.titel", `did you mean "title"? there are: title, id`},
	{"r = {'content': 'a'}\nr.splitlines()", "it is a dict; there are: content"},
	{"r = {'title': 1, 'id': 2}\nr['titel']", `did you mean "title"? there are: title, id`},
	{"r = {'items': []}\nfor i in r.items: pass", `a dict has methods of these names: write value["items"], value["keys"], value["values"]`},
	{"r = {'a': 1}\nfor i in r: i['id']", "it is a text and no dict (going through a dict gives its keys): " + pyShape},
	{"r = [{'a': 1}]\nr['a']", "it is a list and no dict: value[0][...], or go through it; " + pyShape},
	{"r = {'a': 1}\nr[:5]", "it is a dict and no list, so it has no slices: " + pyShape},
	{"r = None\nr['a']", "the value is None: " + pyShape},
	{"import json\njson.loads({'a': 1})", "results are Python values already: drop json.loads"},
	{"import json\njson.loads('done')", "results that are JSON are Python values already; this is a text that is none: print(text[:200])"},
	{"import urllib.request\nurllib.request.urlopen('http://example.com')", noNetwork},
	{"import requests", "only Python's standard library, servers and sallyport can be imported"},
	{"open('/workspace/none')", "/workspace is empty"},
	{"open('none')", "/workspace is empty"},
	{"open('/home/me/none')", elsewhere},
	{"open('/etc/x', 'w')", "files can be written in /workspace and /tmp"},
	{"return 5", "end with an expression: its value comes back"},
	{"def f():\n    await g()", "write async def, or call without await: NAME(...)"},
	{"const x = 5", "this is no Python: for TypeScript say so in language"},
	{"from sallyport import call\ncall('test.fail')", "test.fail: code failed"},
	{"from sallyport import call\ncall('test.busy')", "test.busy: code upstream; the same call may be made again"},
}

// pythonMistakes makes each of them and returns the hints.
const pythonMistakes = `
import ast, asyncio, linecache, sallyport_fault, types, warnings
warnings.simplefilter("ignore")
def hint(code):
    linecache.cache["program.py"] = (len(code), None, code.splitlines(True), "program.py")
    try:
        made = types.FunctionType(compile(code, "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {"__name__": "__main__"})()
        if made is not None: asyncio.run(made)
    except BaseException as err:
        return sallyport_fault.describe(err, "program.py")["hint"]
    return "no mistake"
[hint(code) for code in mistakes]`

var typescriptMistakeList = []mistake{
	{"echo({})", `write: import { echo } from "servers/test"`},
	{"openIssue({})", `write: import { open_issue } from "servers/test"`},
	{"test.echo({})", `write: import { test } from "servers"`},
	{"parallel(() => 1)", `write: import { parallel } from "sallyport"`},
	{"print(1)", "in TypeScript: console.log(...)"},
	{"const x = None", "in TypeScript: null"},
	{"const r = api.call('test.echo'); r.items.map((i) => i)", "write (await echo(...)).items"},
	{"const r = api.call('test.echo'); for (const i of r) {}", "write await echo(...)"},
	{"const r = api.call('test.echo'); r.map((i) => i)", "write (await echo(...)).map"},
	{"const r = await api.call('test.echo'); r.itmes.map((i) => i)", `what ".map" is taken of is undefined: ` + tsShape},
	{"const r = null; r.id", `what ".id" is taken of is null: ` + tsShape},
	{"const r = await api.call('test.echo'); for (const i of r) {}", "it is no list: " + tsShape},
	{"const r = await api.call('test.echo'); r.filter((i) => i)", "it is no list: " + tsShape},
	{"const r = await api.call('test.echo'); r.split(',')", "it is no text: " + tsShape},
	{"const r = await api.call('test.echo'); r.fly(',')", "it has no such function: " + tsShape},
	{"for (const i of api.iterate((args) => api.call('test.echo', args))) {}", ""},
	{"const all = [...api.iterate((args) => api.call('test.echo', args))]", ""},
	{"const test = {}; test({})", `write: import { TOOL } from "servers/test"`},
	{"const r = await api.call('test.echo'); JSON.parse(r)", "results that are JSON are values already: drop JSON.parse"},
	{"JSON.parse('done')", "results that are JSON are values already: drop JSON.parse"},
	{"1n + 1", "make it a number or a text first: Number(value), String(value)"},
	{"await fetch('http://example.com')", noNetwork},
	{"require('axios')", "only node's own modules, servers and sallyport can be imported"},
	{"await import('node:fs').then((fs) => fs.readFileSync('/workspace/none'))", "/workspace is empty"},
	{"await import('node:fs').then((fs) => fs.readFileSync('/home/me/none'))", elsewhere},
	{"await import('node:fs').then((fs) => fs.writeFileSync('/etc/x', ''))", "files can be written in /workspace and /tmp"},
	{"const x = 1; x = 2", "declare it with let"},
	{"await api.call('test.echo', ['a'])", "write: await echo({ name: value })"},
	{"await api.call('test.fail')", "test.fail: code failed"},
	{"await api.call('test.busy')", "test.busy: code upstream; the same call may be made again"},
	// The second one's calls are under way when the first one fails, and someone waits for them.
	{"await Promise.all([0, 50].map(async (more) => { const r = await api.call('test.echo'); while (more--) await api.call('test.echo'); return r.none.id }))", `what ".id" is taken of is undefined: ` + tsShape},
}

const (
	noAwait = "an error: the call was not awaited"
	unused  = "not awaited: echo"
)

// awaitUses are uses of r, the promise of a call, and what is said of each; "" where it is right.
var awaitUses = []mistake{
	{"r.length > 100", noAwait}, {"r.none", noAwait}, {"r?.items", noAwait}, {"r + 1", noAwait}, {"r > 3", noAwait}, {"`${r}`", noAwait}, {"[...r]", noAwait},
	{"({ ...r })", noAwait}, {"Object.entries(r)", noAwait}, {"JSON.stringify([r])", noAwait}, {"'id' in r", noAwait}, {"r.id = 1", noAwait}, {"r[0]", noAwait},
	{"new Map(r)", noAwait}, {"r == 5", noAwait}, {"for (const x of r) {}", noAwait},
	{"r ? 1 : 2", unused}, {"r ?? 'none'", unused}, {"!r", unused}, {"r === undefined", unused}, {"typeof r", unused}, {"0", unused},
	{"await r", ""}, {"await Promise.all([r])", ""}, {"await Promise.race([r])", ""}, {"await r.then((x) => x)", ""}, {"await r.catch(() => 0)", ""},
	{"await (async () => r)()", ""}, {"r instanceof Promise && await r", ""}, {"await api.parallel([r])", ""}, {"await api.parallel(() => r)", ""},
	{"for await (const x of [r]) {}", ""}, {"Promise.resolve(r)", ""},
}

const awaitProgram = `
const { unawaited } = await import("/opt/sallyport/pending.mjs");
const AsyncFunction = (async () => {}).constructor;
async function said(use) {
  unawaited.clear();
  const api = globalThis[Symbol.for("sallyport")];
  try { await new AsyncFunction("api", "const r = api.call('test.echo'); " + use)(api); }
  catch (error) { return "an error: " + error.message.split(": ").at(-1); }
  return [...unawaited].map((call) => "not awaited: " + call.name).join();
}
const said_of = [];
for (const use of uses) said_of.push(await said(use));
export default said_of;`

const typescriptMistakes = `
const { describe } = await import("/opt/sallyport/fault.mjs");
const { unanswered } = await import("/opt/sallyport/api.mjs");
const AsyncFunction = (async () => {}).constructor;
async function hint(code) {
  try { await new AsyncFunction("api", code)(globalThis[Symbol.for("sallyport")]); return "no mistake"; }
  catch (error) { return describe(error, [...unanswered].map((one) => one.tool)).hint; }
  finally { await new Promise((r) => setTimeout(r, 50)); }
}
const hints = [];
for (const code of mistakes) hints.push(await hint(code));
export default hints;`

// mistakeCases are the mistakes of both languages, each made in one sandbox, and what is shown of a promise.
var mistakeCases = []Case{
	{Name: "the usual mistakes in python", Python: "mistakes = " + codes(pythonMistakeList) + pythonMistakes, Limit: largeValueLimit, Check: wantHints(pythonMistakeList)},
	{Name: "the usual mistakes in node", Node: "const mistakes = " + codes(typescriptMistakeList) + typescriptMistakes, Limit: largeValueLimit, Check: wantHints(typescriptMistakeList)},
	{
		Name: "a promise that is made JSON in node", Node: nodeImports + "console.log(JSON.stringify({ got: (async () => 1)() }))",
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, `{"got":{}}`+"\n")
			if o.Stderr.Text != "note: a promise was shown in place of its value: write await before the call\n" {
				t.Errorf("stderr %q", o.Stderr.Text)
			}
		},
	},
	{
		Name: "promises taken for values in node", Node: "const uses = " + codes(awaitUses) + awaitProgram, Limit: largeValueLimit, Check: wantHints(awaitUses),
	},
	{
		Name: "a promise that nobody waits for in node", Node: nodeImports + "if (!call('test.echo')) console.log('none'); export default [1, 2].filter(async (n) => n > 1).length",
		Check: func(t *testing.T, o sandbox.Outcome) {
			const want = "note: not awaited, so the result was not used: echo\n" +
				"note: filter does not wait for an async function, whose promise counts as true: await Promise.all(xs.map(...)) first\n"
			if diff := cmp.Diff(want, o.Stderr.Text); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		},
	},
	{
		Name: "calls that still run at the end in node", Node: nodeImports + "let n = 0; [1, 2].forEach(async (i) => { n += (await call('test.echo', { i })).i }); export default n",
		Value: "0",
		Check: func(t *testing.T, o sandbox.Outcome) {
			const want = "note: still ran at the last line, so what they gave came too late: echo; await them, or return their promises; forEach does not wait: for (const x of xs) await\n"
			if diff := cmp.Diff(want, o.Stderr.Text); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		},
	},
	{
		Name: "calls that still run at the end, and whose results are printed, in node", Node: nodeImports + "call('test.echo', { i: 1 }).then(() => console.log(1)); export default 0",
		Value: "0",
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, "1\n")
			if o.Stderr.Text != "" {
				t.Errorf("stderr %q", o.Stderr.Text)
			}
		},
	},
	{
		Name: "calls that are refused and caught", Python: "from servers.test import open_issue\nfor title in (1, 2):\n    try:\n        open_issue(title=title)\n    except Exception:\n        pass",
		Check: wantRefused,
	},
	{
		Name: "calls that are refused and caught in node", Node: nodeImports + "for (const title of [1, 2]) await call('test.open_issue', { title }, JSON.stringify({ sig: 'f', args: { o: { title: 's' } } })).catch(() => {})",
		Check: wantRefused,
	},
	{
		Name: "a promise that is printed in node", Node: nodeImports + "console.log('got', call('test.echo'))",
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, "got Promise { <pending>, await: [Getter] }\n")
			if o.Stderr.Text != "note: a promise was shown in place of its value: write await before the call\n" {
				t.Errorf("stderr %q", o.Stderr.Text)
			}
		},
	},
}

// wantRefused wants two calls that the runtime refused, for the type of their title.
func wantRefused(t *testing.T, o sandbox.Outcome) {
	if o.Status != sandbox.OK || o.Refused == nil || o.Refused.Count != 2 || o.Refused.Tool != "test.open_issue" || !strings.Contains(o.Refused.Message, "title") {
		t.Errorf("refused %+v: %s", o.Refused, show(o))
	}
}

func largeValueLimit(l *sandbox.Limits) { l.Value = 64 << 10 }

func codes(mistakes []mistake) string {
	all := make([]string, len(mistakes))
	for i, m := range mistakes {
		all[i] = m.code
	}
	data, _ := json.Marshal(all) //nolint:errchkjson // strings
	return string(data)
}

func wantHints(mistakes []mistake) func(*testing.T, sandbox.Outcome) {
	return func(t *testing.T, o sandbox.Outcome) {
		var hints []string
		if err := json.Unmarshal([]byte(value(o)), &hints); err != nil || len(hints) != len(mistakes) {
			t.Fatalf("%v: %s", err, show(o))
		}
		for i, m := range mistakes {
			if diff := cmp.Diff(m.hint, hints[i]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m.code, diff)
			}
		}
	}
}
