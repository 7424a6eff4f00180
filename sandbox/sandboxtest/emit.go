package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// emitCases is what programs send to the client.
var emitCases = []Case{
	{
		Name: "things of every kind are emitted",
		Python: `from sallyport import emit, call, Blob
import pathlib, io
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8
class Figure:
    def savefig(self, to, format): to.write(PNG + format.encode())
class Picture:
    def save(self, to, format): to.write(b"\xff\xd8\xff" + format.encode())
class Frame:
    def __len__(self): return 1000
    def head(self, n): self.n = n; return self
    def to_dict(self, orient): return [{"a": i, "b": None} for i in range(self.n)]
pathlib.Path("/workspace/notes.csv").write_text("a,b\n")
pathlib.Path("chart.png").write_bytes(PNG)
for thing, options in [("hello", {}), (PNG, {}), (Figure(), {"name": "f.png"}), (Picture(), {}), (Blob(b"RIFF0000WAVE", "", "a:b", "s"), {}), (pathlib.Path("/workspace/notes.csv"), {}), ("chart.png", {}),
    ("a;b", {"name": "x.csv"}), (b"%PDF-1", {"name": "r"}), (b"\x00\x01", {}), ({"a": [1]}, {}), ([], {}), (io.BytesIO(b"text"), {}), (b"<svg/>", {"name": "a.svg"}),
    ([{"id": 1, "name": "a|b\nc"}, {"id": 2, "tags": [1, {"x": None}]}], {}), ([["h", "k"], [1, 2.5]], {}), ([[1, 2], [3]], {})]:
    assert emit(thing, **options) is None
emit(["two", Blob(b"GIF87a")])
emit(Frame())
await emit.aio("later")`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantEmitted(t, o, append(commonEmitted(),
				tool.Content{Type: "text", MIME: "text/plain", Text: "| a | b |\n| --- | --- |\n" + frameRows(50) + "\n... and 950 more rows"},
				tool.Content{Type: "text", MIME: "text/plain", Text: "later"}))
		},
	},
	{
		Name: "things of every kind are emitted in node",
		Node: nodeImports + `const fs = await import("node:fs");
const PNG = Buffer.from("\x89PNG\r\n\x1a\n00000000", "latin1");
fs.writeFileSync("/workspace/notes.csv", "a,b\n"); fs.writeFileSync("chart.png", PNG);
const bytes = (text) => new Uint8Array(Buffer.from(text, "latin1"));
for (const [thing, options] of [["hello"], [PNG, {}], [Buffer.concat([PNG, Buffer.from("png")]), { name: "f.png" }], [bytes("\xff\xd8\xffPNG")], [new Blob(bytes("RIFF0000WAVE"), "", "a:b", "s")], [new URL("file:///workspace/notes.csv")], ["chart.png"],
  ["a;b", { name: "x.csv" }], [bytes("%PDF-1"), { name: "r" }], [bytes("\0\x01")], [{ a: [1] }], [[]], [bytes("text")], [bytes("<svg/>"), { name: "a.svg" }],
  [[{ id: 1, name: "a|b\nc" }, { id: 2, tags: [1, { x: null }] }]], [[["h", "k"], [1, 2.5]]], [[[1, 2], [3]]], [["two", new Blob(bytes("GIF87a"))]]]) await emit(thing, options);
await emit(Array.from({ length: 1000 }, (_, i) => ({ a: i, b: null })));
emit(Promise.resolve("later"))`,
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantEmitted(t, o, append(commonEmitted(),
				tool.Content{Type: "text", MIME: "text/plain", Text: "| a | b |\n| --- | --- |\n" + frameRows(50) + "\n... and 950 more rows"},
				tool.Content{Type: "text", MIME: "text/plain", Text: "later"}))
		},
	},
	{
		Name: "what cannot be emitted is told of where it stands",
		Python: `from sallyport import emit, ToolError, parallel
def refused(thing, **options):
    try: emit(thing, **options)
    except ToolError as e: return [e.code, e.tool, e.message, e.hint]
    except Exception as e: return type(e).__name__ + ": " + str(e)[:60]
open("/workspace/big", "wb").truncate(5 << 20)
a = refused(b"x" * (4 << 20) + b"y"), refused("x" * 70000), refused("/workspace/big"), refused(None), refused(object), refused(__import__("pathlib").Path("/workspace/no")), refused(b"x", mime="nonsense")
parallel([lambda i=i: emit(str(i)) for i in range(32)])
a, refused("one too many")`,
		Value: `[[["limit","sallyport.emit","4,194,305 bytes are too much: at most 4,194,304 can be emitted at once","make it smaller: fewer pixels, rows or seconds, or compressed"],["limit","sallyport.emit","70,000 bytes are too much: at most 65,536 can be emitted at once","emit it as a file: emit(text, name=\"report.txt\")"],` +
			`["limit","sallyport.emit","5,242,880 bytes are too much: at most 4,194,304 can be emitted at once","make it smaller: fewer pixels, rows or seconds, or compressed"],"TypeError: a NoneType cannot be emitted: a text, bytes, a Blob, a path,","TypeError: a type cannot be emitted: a text, bytes, a Blob, a path, a f","FileNotFoundError: [Errno 2] No such file or directory: '/workspace/no'",["invalid","sallyport.emit","invalid MIME type \"nonsense\"","such as image/png"]],` +
			`["limit","sallyport.emit","this program has emitted its 32 items","put more into one: a table, an archive, a picture of several"]]`,
	},
	{
		Name: "what cannot be emitted is a fault in node", Status: sandbox.Failed,
		Node: withSourceMap(nodeImports + `const refused = (thing, options) => emit(thing, options).then(() => "taken", (e) => [e.code ?? e.name, e.message.slice(0, 60)]);
console.log(JSON.stringify([await refused(new Uint8Array((4 << 20) + 1)), await refused("x".repeat(70000)), await refused(null), await refused("x", { label: "a" }), await refused("x", { mime: "nonsense" })]));
async function show() { await emit("x", { name: "a.png", mime: "no mime" }); }
await show();`),
		Check: func(t *testing.T, o sandbox.Outcome) {
			wantStdout(t, o, `[["limit","4,194,305 bytes are too much: at most 4,194,304 can be emitt"],["limit","70,000 bytes are too much: at most 65,536 can be emitted at "],["TypeError","null cannot be emitted: a text, bytes, a Blob, a path, or ro"],["TypeError","emit has no option \"label\"; options are an object of: name, "],["invalid","invalid MIME type \"nonsense\""]]`+"\n")
			want := &bridge.Fault{Type: "ToolError", Message: `invalid MIME type "no mime"`, Hint: "such as image/png", Lines: []bridge.Line{{Line: 5}, {Line: 4, Function: "show"}}}
			if diff := cmp.Diff(want, o.Fault); diff != "" {
				t.Errorf("fault (-want +got):\n%s", diff)
			}
		},
	},
}

// commonEmitted is what both programs emit first.
func commonEmitted() []tool.Content {
	png := "\x89PNG\r\n\x1a\n00000000"
	text := func(text string) tool.Content { return tool.Content{Type: "text", MIME: "text/plain", Text: text} }
	file := func(name, mime, text string) tool.Content {
		return tool.Content{Type: "resource", Name: name, MIME: mime, Text: text}
	}
	return []tool.Content{
		text("hello"),
		{Type: "image", MIME: "image/png", Name: "image.png", Data: []byte(png)},
		{Type: "image", MIME: "image/png", Name: "f.png", Data: []byte(png + "png")},
		{Type: "image", MIME: "image/jpeg", Name: "image.jpg", Data: []byte("\xff\xd8\xffPNG")},
		{Type: "audio", MIME: "audio/wav", Name: "s", URI: "a:b", Data: []byte("RIFF0000WAVE")},
		file("notes.csv", "text/csv", "a,b\n"),
		{Type: "image", MIME: "image/png", Name: "chart.png", Data: []byte(png)},
		file("x.csv", "text/csv", "a;b"),
		{Type: "resource", Name: "r", MIME: "application/pdf", Data: []byte("%PDF-1")},
		{Type: "resource", Name: "file", MIME: "application/octet-stream", Data: []byte{0, 1}},
		text("{\n \"a\": [\n  1\n ]\n}"),
		text("[]"),
		file("file.txt", "text/plain", "text"),
		file("a.svg", "image/svg+xml", "<svg/>"),
		text("| id | name | tags |\n| --- | --- | --- |\n| 1 | a\\|b c |  |\n| 2 |  | [1,{\"x\":null}] |"),
		text("| h | k |\n| --- | --- |\n| 1 | 2.5 |"),
		text("|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |"),
		text("two"),
		{Type: "image", MIME: "image/gif", Name: "image.gif", Data: []byte("GIF87a")},
	}
}

func frameRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "| %d |  |\n", i)
	}
	return b.String()
}

func wantEmitted(t *testing.T, o sandbox.Outcome, want []tool.Content) {
	t.Helper()
	if diff := cmp.Diff(want, o.Emitted); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
}
