package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/codegen/client"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

func tree(t testing.TB) map[string][]byte {
	t.Helper()
	tools := []tool.Tool{
		{ID: tool.ID{Upstream: "up", Name: "add"}, Description: "Adds.\nimport x from \"../evil\";", Input: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}`)},
		{ID: tool.ID{Upstream: "up", Name: "list"}, Input: json.RawMessage(`{"type":"object","properties":{"cursor":{"type":"string"},"limit":{"type":"integer"}}}`)},
	}
	files := map[string][]byte{}
	for _, f := range codegen.Generate([]codegen.Upstream{{ID: "up", Tools: tools, Resources: []tool.Resource{{URI: "a:b"}}, Prompts: []tool.Prompt{{Name: "p"}}}}) {
		files[f.Path] = f.Data
	}
	return files
}

func writeClient(t testing.TB, lang codegen.Language) string {
	t.Helper()
	dir := t.TempDir()
	files, err := client.Files(tree(t), lang)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLanguages(t *testing.T) {
	one, err := client.Files(tree(t), "")
	if err != nil {
		t.Fatal(err)
	}
	two, err := client.Files(tree(t), "")
	if diff := cmp.Diff(one, two); err != nil || diff != "" {
		t.Errorf("%v, made twice:\n%s", err, diff)
	}
	for lang, want := range map[codegen.Language][2]string{codegen.Python: {"sallyport/client.py", ".ts"}, codegen.TypeScript: {"sallyport/index.js", ".py"}} {
		files, err := client.Files(tree(t), lang)
		if err != nil || files[want[0]] == nil {
			t.Errorf("%s: %v, no %s", lang, err, want[0])
		}
		for name := range files {
			if strings.HasSuffix(name, want[1]) {
				t.Errorf("%s: %s", lang, name)
			}
		}
	}
}

// TestValues holds what the clients make of results against the table that the gateway is held against, too.
func TestValues(t *testing.T) {
	cases, err := filepath.Abs("../runtime/client/testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := writeClient(t, "")
	for name, command := range map[string][]string{
		"python": {"python3", "-c", `import json, sys
from sallyport.client import _value
for case in json.load(open(sys.argv[1])):
    got, want = _value(case["result"]), case["value"]
    for value in (got, want):
        if "blob" in value: value["blob"] = {k: v for k, v in value["blob"].items() if v}
    if json.dumps(got, sort_keys=True) != json.dumps(want, sort_keys=True): print(case["name"], got)
print("checked")`},
		"node": {"node", "--input-type=module", "-e", `import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
await import("./sallyport/index.js");
const { valueOf } = globalThis[Symbol.for("sallyport")];
for (const { name, result, value } of JSON.parse(readFileSync(process.argv[1]))) {
  const got = valueOf(result);
  for (const v of [got, value]) if (v.blob) v.blob = Buffer.from(v.blob.data, "base64").toString("base64") + (v.blob.mime ?? "") + (v.blob.uri ?? "");
  if (!isDeepStrictEqual(got, value)) console.log(name, JSON.stringify(got));
}
const [big] = valueOf({ content: [{ type: "text", text: "[9007199254740993]" }] }).json;
if (big !== 9007199254740993n) console.log("integers", big);
console.log("checked");`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), testutil.Program(t, command[0]), append(command[1:], cases)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "checked" {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
