package sandboxtest

import (
	"encoding/base64"
	"strings"
	"testing"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// withSourceMap gives JavaScript the source map that compiled TypeScript has: here every line is its own origin.
func withSourceMap(code string) string {
	lines := "AAAA" + strings.Repeat(";AACA", strings.Count(code, "\n"))
	source := base64.StdEncoding.EncodeToString([]byte(`{"version":3,"sources":["program.ts"],"names":[],"mappings":"` + lines + `"}`))
	return code + "\n//# sourceMappingURL=data:application/json;base64," + source
}

// valueCases are odd values on every way into a program and out of it, and the error for a usual mistake of a model.
var valueCases = []Case{
	{
		Name: "a tool's hint is in the fault", Python: "from servers.test import echo\nfrom sallyport import call\ncall('test.deny')", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ToolError", Message: "not allowed", Lines: []bridge.Line{{Line: 3, Source: "call('test.deny')"}}, Hint: "ask first"}),
	},
	{
		Name: "a misspelt upstream", Python: "import servers.tset", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ModuleNotFoundError", Message: "No module named 'servers.tset'", Lines: []bridge.Line{{Line: 1, Source: "import servers.tset"}}, Hint: "did you mean servers.test?"}),
	},
	{
		Name: "a misspelt tool", Python: "from servers.test import ehco", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ImportError", Message: "servers.test has no tool ehco; did you mean echo? search_tools finds others", Lines: []bridge.Line{{Line: 1, Source: "from servers.test import ehco"}}}),
	},
	{
		Name: "a misspelt parameter", Python: "from servers.test import echo\necho(1, tiems=2)", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "TypeError", Message: "echo() got an unexpected keyword argument 'tiems'", Lines: []bridge.Line{{Line: 2, Source: "echo(1, tiems=2)"}}, Hint: "did you mean times? echo takes: x, times"}),
	},
	{
		Name: "a forgotten import", Python: "echo(1)", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "NameError", Message: "name 'echo' is not defined", Lines: []bridge.Line{{Line: 1, Source: "echo(1)"}}, Hint: "write: from servers.test import echo"}),
	},
	{
		Name: "await where none belongs", Python: "from servers.test import echo\nx = await echo([1])", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "TypeError", Message: "object list can't be used in 'await' expression", Lines: []bridge.Line{{Line: 2, Source: "x = await echo([1])"}}, Hint: "calls return their result at once: drop the await, or write await NAME.aio(...)"}),
	},
	{
		Name: "a coroutine at the end is awaited, one before it is told of", Python: "import asyncio\nasync def main():\n    return await asyncio.sleep(0, 7)\nmain()\nmain()", Value: "7",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if !strings.Contains(o.Stderr.Text, "program.py:4: RuntimeWarning: coroutine 'main' was never awaited") {
				t.Errorf("stderr: %q", o.Stderr.Text)
			}
		},
	},
	{Name: "a circular value", Python: "a = [1]\na.append(a)\na", Check: wantValue("text", "[1, [...]]")},
	{Name: "a big integer", Python: "10 ** 30, -0.0", Value: "[1000000000000000000000000000000,-0.0]"},
	{
		Name: "a value that cannot be shown", Python: "10 ** 5000",
		Check: func(t *testing.T, o sandbox.Outcome) {
			if !strings.HasPrefix(value(o), "<int that cannot be shown: ValueError: Exceeds the limit (4300 digits)") {
				t.Errorf("value %s", value(o))
			}
		},
	},
	{
		Name:   "lone surrogates",
		Python: "from sallyport import call\nprint('a\\ud800b')\n'\\ud800', call('test.raw', {'s': 'a\\ud800b'})", Value: `('\ud800', 'args: {"s": "a\\ud800b"}')`,
		Check: func(t *testing.T, o sandbox.Outcome) { wantStdout(t, o, "a\\ud800b\n") },
	},
	{
		Name: "arguments that JSON has no type for",
		Python: `import dataclasses, datetime, pathlib
from sallyport import call, Blob
@dataclasses.dataclass
class Point:
    x: int
    tags: set
call("test.raw", {"b": b"\x00\xff", "blob": Blob(b"a"), "set": {2, 1}, "day": datetime.date(2024, 1, 2), "at": datetime.datetime(2024, 1, 2, 3, 4, 5),
    "point": Point(1, {"t"}), "path": pathlib.PurePath("/a/b"), "tuple": (1, None), "n": 10 ** 30})[6:]`,
		Value: `"{\"b\": \"AP8=\", \"blob\": \"YQ==\", \"set\": [1, 2], \"day\": \"2024-01-02\", \"at\": \"2024-01-02T03:04:05\", \"point\": {\"x\": 1, \"tags\": [\"t\"]}, \"path\": \"/a/b\", \"tuple\": [1, null], \"n\": 1000000000000000000000000000000}"`,
	},
	{
		Name: "arguments that cannot be sent",
		Python: `from sallyport import call
def refused(value):
    try: call("test.echo", {"v": value})
    except TypeError as err: return str(err)
circle = []
circle.append(circle)
refused(float("nan")), refused([1, float("-inf")]), refused(circle), refused(1j), refused({(1, 2): 3}), refused(print)`,
		Value: `["arguments of test.echo are not JSON: NaN and infinity cannot be sent","arguments of test.echo are not JSON: NaN and infinity cannot be sent",` +
			`"arguments of test.echo are not JSON: Circular reference detected","an argument of type complex cannot be sent: use str, numbers, bool, None, list or dict",` +
			`"keys must be str, int, float, bool or None, not tuple","an argument of type builtin_function_or_method cannot be sent: use str, numbers, bool, None, list or dict"]`,
	},
	{
		Name: "results that are hard to read hurt no other call",
		Python: `from sallyport import call, parallel, ToolError
def deep():
    try: call("test.deep")
    except ToolError as err: return err.message.split(";")[0]
parallel(deep, lambda: call("test.binary"), lambda: call("test.echo", {"x": 1})["args"])`,
		Value: `["the result of 10042 bytes is nested too deeply",["a` + "\uFFFD" + `b"],{"x":1}]`,
	},
	{
		Name: "lines of TypeScript", Node: withSourceMap("function f(x) {\n  throw new TypeError('no ' + x);\n}\nasync function g() {\n  await null;\n  f(1);\n}\nawait g();"), Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "TypeError", Message: "no 1", Lines: []bridge.Line{{Line: 8}, {Line: 6, Function: "g"}, {Line: 2, Function: "f"}}}),
	},
	{
		Name: "a tool's error has the line of its call in node", Node: withSourceMap(nodeImports + "async function ask() {\n  return await call('test.deny');\n}\nawait ask();"), Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "ToolError", Message: "not allowed", Lines: []bridge.Line{{Line: 5}, {Line: 3, Function: "ask"}}, Hint: "ask first"}),
	},
	{
		Name: "arguments that JSON has no type for in node",
		Node: nodeImports + `export default (await call("test.raw", { n: 2n ** 70n, list: [-1n], text: "1n", m: new Map([["k", new Set([1n])]]), b: new Uint8Array([0, 255]), blob: new Blob(new Uint8Array([97])), u: undefined, s: "\ud800" })).slice(6)`,
		Value: `"{\"n\":1180591620717411303424,\"list\":[-1],\"text\":\"1n\",\"m\":{\"k\":[1]},\"b\":\"AP8=\",\"blob\":\"YQ==\",\"s\":\"` +
			`\\ud800\"}"`,
	},
	{
		Name: "arguments that cannot be sent in node",
		Node: nodeImports + `const circle = {}; circle.self = circle;
const refused = (v) => call("test.echo", { v }).then(() => "sent", (e) => e.name + ": " + e.message.split("\n")[0]);
export default [await refused(NaN), await refused([-Infinity]), await refused(call("test.echo")), await refused(() => 1), await refused(new Error("x")), await refused(circle), await call("test.echo", 5).catch((e) => e.hint)]`,
		Value: `["TypeError: argument v: NaN and Infinity cannot be sent","TypeError: argument 0: NaN and Infinity cannot be sent","TypeError: echo(...): the call was not awaited",` +
			`"TypeError: argument v: a function cannot be sent","TypeError: argument v: a Error cannot be sent","TypeError: Converting circular structure to JSON","write: await echo({ name: value })"]`,
	},
	{Name: "a circular value in node", Node: "const a = { x: 1n }; a.a = a; export default a", Check: wantValue("text", "<ref *1> { x: 1n, a: [Circular *1] }")},
	{
		Name: "instances of classes in node", Node: "class P { #hidden = 2; constructor() { this.x = 1 } }\nexport default { p: new P(), at: new Date(0), none: undefined, s: '\\ud800' }",
		Value: `{"p":{"x":1},"at":"1970-01-01T00:00:00.000Z","s":"\ud800"}`,
	},
	{
		Name: "what JSON would lose is shown in node", Node: nodeImports + "export default [new Map([[1, { a: new Set([1]) }]]), new Error('inner'), Promise.resolve(5), NaN, () => 1, new Blob(new Uint8Array(9), 'image/png')]",
		Check: wantValue("text", "[\n  Map(1) { 1 => { a: Set(1) { 1 } } },\n  Error: inner,\n  Promise { 5 },\n  NaN,\n  [Function (anonymous)],\n  <Blob image/png, 9 bytes>\n]"),
	},
	{
		Name: "all of the console", Node: "console.table([{ a: 1, b: 'x' }]); console.dir({ a: { b: { c: 1 } } }, { depth: 0 }); console.group('g'); console.log('%s is %d\\ud800', 'in', 3); console.groupEnd(); console.assert(false, 'no'); console.error(null)",
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, "┌─────────┬───┬─────┐\n│ (index) │ a │ b   │\n├─────────┼───┼─────┤\n│ 0       │ 1 │ 'x' │\n└─────────┴───┴─────┘\n{ a: [Object] }\ng\n  in is 3\uFFFD\n")
			if o.Stderr.Text != "Assertion failed: no\nnull\n" {
				t.Errorf("stderr %q", o.Stderr.Text)
			}
		},
	},
	{
		Name: "a promise rejected with no error", Node: "Promise.reject({ code: [3] }); await new Promise((r) => setTimeout(r, 5000))", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "Thrown value", Message: `{"code":[3]}`}),
	},
	{Name: "null is thrown", Node: "throw null", Status: sandbox.Failed, Check: wantFault(bridge.Fault{Type: "Thrown value", Message: "null"})},
	{
		Name: "errors in an error", Node: "await Promise.any([Promise.reject(new Error('a')), Promise.reject('b')])", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "AggregateError", Message: "All promises were rejected: a; b"}),
	},
	{
		Name: "a promise that nothing settles", Node: "await new Promise(() => {})", Status: sandbox.Failed,
		Check: wantFault(bridge.Fault{Type: "Error", Message: "the program waits for a promise that nothing will settle"}),
	},
}
