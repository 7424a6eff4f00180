package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/codegen"
	"sallyport/codegen/client"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

const clientSecret = "a-secret-of-the-client"

// hostileAnswers are what no gateway says, each to one call.
var hostileAnswers = map[string]http.HandlerFunc{
	"another JSON":    say("application/json", `[1]`),
	"no JSON":         say("application/json", `{"id":1,`),
	"deep":            say("application/json", strings.Repeat(`[`, 200_000)),
	"error is text":   say("application/json", `{"id":1,"error":"no"}`),
	"message is none": say("application/json", `{"id":1,"error":{"message":{"a":1},"code":"x"}}`),
	"content is text": say("application/json", `{"id":1,"result":{"content":7}}`),
	"fault is text":   say("application/json", `{"id":1,"result":{"isError":true,"content":[null,7],"_meta":"x"}}`),
	"fault is a list": say("application/json", `{"id":1,"result":{"isError":true,"_meta":{"sallyport/error":[1]}}}`),
	"event no JSON":   say("text/event-stream", "data: {\n\n"),
	"event is a list": say("text/event-stream", "data: [1]\n\n"),
	"event is null":   say("text/event-stream", "data: null\n\n"),
	"params are text": say("text/event-stream", "data: {\"method\":\"notifications/progress\",\"params\":\"x\"}\n\n"),
	"no text":         say("application/json", "\xff\xfe\x00"),
	"endless JSON":    endless("application/json", `["`),
	"endless line":    endless("text/event-stream", "data: "),
	"endless event":   endless("text/event-stream", "data: x\n"),
}

func say(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text))
	}
}

// endless answers until the client goes away.
func endless(kind, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		chunk := []byte(strings.Repeat(begin, 1<<20/len(begin)))
		if !strings.HasSuffix(begin, "\n") {
			_, _ = w.Write([]byte(begin))
			chunk = []byte(strings.Repeat("x", 1<<20))
		}
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
}

const pyVictim = `import sys, resource, sallyport
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
base, secret, names = sys.argv[1], sys.argv[2], sys.argv[3:]
for name in names:
    try:
        sallyport.connect(url=base.replace("://", "://user:in-the-address@") if name == "login" else f"{base}/{name.replace(' ', '-')}", token=secret)
        print(name, "=", sallyport.call("up.prompts/get" if name == "header" else "up.add", {"name": "a\r\nX: y\u00e9"} if name == "header" else {}))
    except sallyport.ToolError as err:
        print(name, ":", err.code, ":", err, err.hint, repr(err)[:50])
print("done", repr(vars(sallyport)).count(secret))
`

const tsVictim = `import { call, connect, ToolError } from "./sallyport/index.js";
const [base, secret, ...names] = process.argv.slice(1);
for (const name of names) {
  try {
    connect({ url: name === "login" ? base.replace("://", "://user:in-the-address@") : base + "/" + name.replaceAll(" ", "-"), token: secret });
    console.log(name, "=", await call(name === "header" ? "up.prompts/get" : "up.add", name === "header" ? { name: "a\r\nX: y\u00e9" } : {}));
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    console.log(name, ":", error.code, ":", error.message, error.hint);
  }
}
console.log("done 0");
`

// TestHostileGateway: whatever answers in place of a gateway, a program gets a ToolError, in bounded memory; the token
// goes nowhere else and is in no text.
func TestHostileGateway(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("redirected to, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	mux, names := http.NewServeMux(), []string{"redirect", "header", "login"}
	for name, answer := range hostileAnswers {
		names = append(names, name)
		mux.HandleFunc("/"+strings.ReplaceAll(name, " ", "-")+"/", answer)
	}
	mux.HandleFunc("/redirect/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/mcp", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/header/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X") != "" {
			t.Error("a name became a header")
		}
		say("application/json", `{"id":1}`)(w, r)
	})
	gateway := httptest.NewServer(mux)
	defer gateway.Close()
	dir := writeClient(t, "")
	for lang, command := range map[codegen.Language][]string{
		codegen.Python:     {"python3", "-c", pyVictim},
		codegen.TypeScript: {"node", "--max-old-space-size=512", "--input-type=module", "-e", tsVictim},
	} {
		t.Run(string(lang), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), testutil.Program(t, command[0]), append(append(command[1:], gateway.URL, clientSecret), names...)...)
			cmd.Dir, cmd.WaitDelay = dir, time.Second
			cmd.Env = append(os.Environ(), "http_proxy="+elsewhere.URL, "HTTP_PROXY="+elsewhere.URL)
			out, err := cmd.CombinedOutput()
			if text := string(out); err != nil || !strings.HasSuffix(text, "done 0\n") || strings.Contains(text, clientSecret) || strings.Contains(text, "in-the-address") {
				t.Fatalf("%v:\n%.4000s", err, text)
			}
			for _, name := range names {
				if !strings.Contains(string(out), fmt.Sprintf("\n%s : ", name)) && !strings.HasPrefix(string(out), name+" : ") {
					t.Errorf("%s: no ToolError:\n%.4000s", name, out)
				}
			}
			t.Logf("%.6000s", out)
		})
	}
}

// payloads end a text of each kind that stands in a file, and run something behind it.
var payloads = []string{
	"*/ globalThis.pwned = 1; /*", "\"); globalThis.pwned = 1; (\"", "'; globalThis.pwned = 1; '", "`${globalThis.pwned = 1}`", "\\\"); globalThis.pwned = 1; //", "\\'); globalThis.pwned = 1; //",
	"\u2028globalThis.pwned = 1;\u2029//", "a\nglobalThis.pwned = 1;\n", "\nimport \"../../pwned.js\";\nexport * from \"../../pwned.js\";\n", "\nimport x from \"../../pwned.js\";\n", "</script><script>globalThis.pwned = 1</script>",
	"\"\"\"\nimport builtins; builtins.pwned = 1\n\"\"\"", "\\", "#!x\r__import__('builtins').pwned = 1", "\x00", "\n//# sourceMappingURL=../../pwned.js\n", "-->\nglobalThis.pwned = 1;\n<!--", "__proto__", "then", "constructor",
}

// TestHostileTexts: the files that node and Python load on a person's machine do nothing when they are loaded, whatever
// the upstream's texts are.
func TestHostileTexts(t *testing.T) {
	var tools []tool.Tool
	for i, text := range payloads {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		schema := strings.ReplaceAll(`{"type":"object","title":X,"description":X,"required":["a"],"properties":{"a":{"enum":[X,"b"],"description":X,"default":X},X:{"type":"string","pattern":X,"format":X},
			"c":{"type":"object","description":X,"properties":{X:{"const":X}}},"cursor":{"type":"string","description":X}}}`, "X", string(quoted))
		output := strings.ReplaceAll(`{"type":"object","properties":{X:{"const":X,"description":X},"next_cursor":{"type":"string"}}}`, "X", string(quoted))
		tools = append(tools, tool.Tool{ID: tool.ID{Upstream: "up", Name: fmt.Sprint("t", i)}, Wire: text, Title: text, Description: text, Input: json.RawMessage(schema), Output: json.RawMessage(output)})
	}
	tree := map[string][]byte{}
	for _, f := range codegen.Generate([]codegen.Upstream{{ID: "up", Title: payloads[0], Tools: tools}}) {
		tree[f.Path] = f.Data
	}
	files, err := client.Files(tree, "")
	if err != nil {
		t.Fatal(err)
	}
	files["pwned.js"] = []byte("globalThis.pwned = 1; export const x = 1;")
	dir := t.TempDir()
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil { //nolint:gosec // for programs
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, command := range map[string][]string{
		"node": {"node", "--input-type=module", "-e", `import { readdirSync } from "node:fs";
const names = readdirSync("servers/up").filter((name) => name.endsWith(".js"));
for (const name of names) await import(process.cwd() + "/servers/up/" + name);
await import(process.cwd() + "/servers/index.js");
console.log(names.length, globalThis.pwned, ({}).pwned, Object.keys(Object.prototype).length);`},
		"python": {"python3", "-c", `import builtins, importlib, os
names = [name[:-3] for name in os.listdir("servers/up") if name.endswith(".py")]
for name in names: importlib.import_module("servers.up." + name)
print(len(names), "undefined" if not hasattr(builtins, "pwned") else "pwned", "undefined 0")`},
	} {
		cmd := exec.CommandContext(t.Context(), testutil.Program(t, command[0]), command[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("%d undefined undefined 0\n", len(payloads)+1); err != nil || string(out) != want {
			t.Errorf("%s: %v\n%.3000swant %s", name, err, out, want)
		}
	}
}
