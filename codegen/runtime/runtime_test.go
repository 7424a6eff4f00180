package runtime_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
)

// files are what a sandbox mounts at /opt/sallyport: its arguments name guest.py and guest.mjs.
var files = []string{
	"api.mjs", "bridge.mjs", "check.mjs", "exact.mjs", "fault.mjs", "files.mjs", "guest.mjs", "guest.py", "hints.cjs", "media.cjs", "nearest.cjs", "openssl.cnf", "pages.mjs", "pending.mjs", "random.mjs", "sallyport/__init__.py",
	"sallyport/bridge.py", "sallyport/check.py", "sallyport/jsontypes.py", "sallyport/media.py", "sallyport/naming.py", "sallyport/pages.py", "sallyport/pending.py", "sallyport/saved.py", "sallyport/shapes.py", "sallyport/skills.py", "sallyport/together.py",
	"sallyport_fault.py", "sallyport_files.py", "sallyport_hints.py", "sallyport_notes.py", "sallyport_rest.py", "sallyport_warm.py", "saved.cjs", "shapes.cjs", "shown.mjs", "warm.mjs",
	"zygote-aarch64.so", "zygote-x86_64.so",
}

func TestGuestHoldsItsFiles(t *testing.T) {
	var found []string
	err := fs.WalkDir(runtime.Guest(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if diff := cmp.Diff(files, found); err != nil || diff != "" {
		t.Errorf("%v, files (-want +got):\n%s", err, diff)
	}
}

// TestGuestCompiles lets the machine's interpreters read every file.
func TestGuestCompiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".so") { // no source; TestZygoteIsCurrent compiles it
			continue
		}
		args := []string{"node", "--check"}
		if strings.HasSuffix(file, ".py") {
			args = []string{"/usr/bin/python3", "-I", "-W", "error", "-m", "py_compile"}
		}
		if strings.HasSuffix(file, ".cnf") {
			args = []string{"node", "-e", "0", "--openssl-config"}
		}
		t.Run(file, func(t *testing.T) {
			if out, err := exec.CommandContext(t.Context(), testutil.Program(t, args[0]), append(args[1:], filepath.Join(dir, file))...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestTypeScriptModule compiles what programs import as "sallyport" and runs it
// on a runtime of the test's own: it must hand over what the bootstrap provides.
func TestTypeScriptModule(t *testing.T) {
	built := api.Transform(string(runtime.TypeScript), api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule})
	if len(built.Errors)+len(built.Warnings) > 0 {
		t.Fatalf("%v %v", built.Errors, built.Warnings)
	}
	for _, name := range []string{"call", "parallel", "progress", "ToolError", "Blob"} {
		if !strings.Contains(string(runtime.TypeScript), "export const "+name) && !strings.Contains(string(runtime.TypeScript), "function "+name+"<") {
			t.Errorf("%s is not exported", name)
		}
	}
	node := testutil.Program(t, "node")
	module := filepath.Join(t.TempDir(), "sallyport.mjs")
	if err := os.WriteFile(module, built.Code, 0o600); err != nil {
		t.Fatal(err)
	}
	script := `globalThis[Symbol.for("sallyport")] = { call: (...a) => ["call", ...a], parallel: (...a) => a.length, progress: (l, f) => f() + l(), ToolError: Error, Blob: Map };
const m = await import(process.argv[1]);
console.log(JSON.stringify([m.call("a.b"), m.call("a.b", { x: 1 }, "{}"), m.parallel(1, 2), await m.progress(() => 1, () => 2), m.ToolError === Error, m.Blob === Map]));`
	out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", script, module).CombinedOutput()
	if want := `[["call","a.b",{},null],["call","a.b",{"x":1},"{}"],2,3,true,true]` + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}

// TestPythonHelpers runs what needs no bridge of the Python module, outside of a sandbox.
func TestPythonHelpers(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	script := `
import sys
sys.path.insert(0, sys.argv[1])
import sallyport, sallyport.bridge
assert sallyport.parallel(lambda: 1, lambda: 2) == [1, 2] == sallyport.parallel([lambda: 1, lambda: 2])
assert sallyport.parallel() == sallyport.parallel([]) == []
for wrong in ((1,), ([1],), ("ab",)):
    try: sallyport.parallel(*wrong)
    except TypeError as err: assert "not results" in str(err), err
    else: raise AssertionError(wrong)
def fails(): raise ValueError("x")
try: sallyport.parallel(lambda: 1, fails)
except ValueError: pass
else: raise AssertionError("parallel lost an exception")
native = sallyport.native({"parts": [{"json": None}, {"blob": {"data": "AAH+/w==", "mime": "image/png", "name": "n"}}, {"parts": []}]})
assert native[0] is None and native[1].data == b"\x00\x01\xfe\xff" and native[1].name == "n" and len(native[1]) == 4 and native[2] == []
deep = b"[" * 100000 + b"]" * 100000
error = sallyport.bridge._parse(b'{"type":"result","id":-12,"value":{"json":' + deep + b"}}")
assert error["id"] == -12 and "nested too deeply" in error["error"]["message"], error
assert open(error["error"]["message"].split("saved in ")[1], "rb").read() == deep, error
error = sallyport.bridge._parse(b'{"type":"result","id":7,"value":{"parts":' + deep + b"}}")
assert "saved" not in error["error"]["message"] and "ask for less" in error["error"]["hint"], error
sallyport.bridge.WORKSPACE += "/none"
error = sallyport.bridge._parse(b'{"type":"result","id":-12,"value":{"json":' + deep + b"}}")
assert "saved" not in error["error"]["message"], error
assert sorted(sallyport.__all__) == ["Blob", "ToolError", "async_call", "call", "describe", "emit", "iterate", "list_skills", "load", "load_skill", "parallel", "progress", "save", "save_skill", "search_tools", "shape_of"]
`
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-I", "-c", script, dir)
	cmd.Env = append(os.Environ(), "SALLYPORT_WORKSPACE="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPythonTypesFitTheModule holds the stub against what it describes: the same
// names, and functions with the same parameters.
func TestPythonTypesFitTheModule(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	script := `
import ast, inspect, sys
sys.path.insert(0, sys.argv[1])
import sallyport
stub, seen = ast.parse(sys.stdin.read()), set()

def names(args):
    every = args.posonlyargs + args.args + [args.vararg] + args.kwonlyargs + [args.kwarg]
    return [a.arg for a in every if a]

def parameters(function):
    return [p.name for p in inspect.signature(function).parameters.values()]

for node in stub.body:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        seen.add(node.name)
        if not any(ast.unparse(d) == "overload" for d in node.decorator_list):
            assert names(node.args) == parameters(getattr(sallyport, node.name)), node.name
        assert ("_with_aio" in map(ast.unparse, node.decorator_list)) == hasattr(getattr(sallyport, node.name), "aio"), node.name
    elif isinstance(node, ast.ClassDef):
        seen.add(node.name)
        for member in node.body if not node.name.startswith("_") else ():
            if isinstance(member, ast.FunctionDef) and not member.decorator_list and member.name == "__init__":
                assert names(member.args) == parameters(getattr(sallyport, node.name).__init__), node.name
            elif isinstance(member, ast.FunctionDef):
                assert hasattr(getattr(sallyport, node.name), member.name), (node.name, member.name)
    elif isinstance(node, ast.AnnAssign):
        seen.add(node.target.id)
    elif isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
        assert ast.literal_eval(node.value) == sallyport.__all__, "__all__"
assert not (set(sallyport.__all__) | {"OMIT", "package"}) - seen, (set(sallyport.__all__) - seen)
`
	cmd := exec.CommandContext(t.Context(), testutil.Program(t, "/usr/bin/python3"), "-I", "-c", script, dir)
	cmd.Stdin = bytes.NewReader(runtime.PythonTypes)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
