package mcpserver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// TestAdjacentTokensInPrograms has programs of both languages, and a client in direct mode, glue letters to tokens and read what
// real servers say: in an answer, in a file that one call writes and another reads, and in an error.
func TestAdjacentTokensInPrograms(t *testing.T) {
	t.Parallel()
	folder, modules := t.TempDir(), testutil.Upstreams(t)
	const person = `{"first_name":"Ottilie","last_name":"Quarrendon","email":"ottilie.q@corp.example","phone":"+14155552671"}`
	if err := os.WriteFile(filepath.Join(folder, "person.json"), []byte(person), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(name string, args ...string) config.Upstream {
		script := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
		return config.Upstream{Name: name, ID: name, Command: "node", Args: append([]string{script}, args...), Dir: folder, Timeout: 20 * time.Second}
	}
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{server("filesystem", folder), server("everything", "stdio")}
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"*"}}
	g, err := gateway.Open(withRunsc(t, &cfg), &gateway.Options{Snapshots: testutil.Snapshots(), ConnectWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	check := func(what, said string, shown ...string) {
		t.Helper()
		for _, hidden := range []string{"Ottilie", "Quarrendon", "ottilie", "4155552671"} {
			if strings.Contains(said, hidden) {
				t.Errorf("%s: %q in\n%s", what, hidden, said)
			}
		}
		for _, want := range shown {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", what, want, said)
			}
		}
	}
	python := `
from servers.filesystem import read_text_file, write_file
from servers.everything import echo
import json
p = json.loads(read_text_file(path="FOLDER/person.json")["content"])
for token in p.values():
    print(str(echo(message="a" + token + "b")))
    write_file(path="FOLDER/glued.txt", content="x" + token + "9")
    print(str(read_text_file(path="FOLDER/glued.txt")))
    try:
        read_text_file(path="FOLDER/none" + token + "b")
    except Exception as e:
        print("failed", e)
print(str(echo(message=p["first_name"] + p["last_name"])))
try:
    echo(message="[EMAIL_999]")
except Exception as e:
    print(e)
`
	typescript := `
import { read_text_file, write_file } from "servers/filesystem";
import { echo } from "servers/everything";
const p = JSON.parse((await read_text_file({ path: "FOLDER/person.json" })).content);
for (const token of Object.values(p)) {
  console.log(JSON.stringify(await echo({ message: "a" + token + "b" })));
  await write_file({ path: "FOLDER/glued.txt", content: "x" + token + "9" });
  console.log(JSON.stringify(await read_text_file({ path: "FOLDER/glued.txt" })));
  try { await read_text_file({ path: "FOLDER/none" + token + "b" }); } catch (e) { console.log("failed", String(e)); }
}
console.log(JSON.stringify(await echo({ message: p.first_name + p.last_name })));
try { await echo({ message: "[EMAIL_999]" }); } catch (e) { console.log(String(e)); }
`
	client := connectWith(t, g.Service(), &mcpserver.Options{})
	for language, code := range map[string]string{"python": python, "typescript": typescript} {
		said, failed := call(t, client, "execute_code", map[string]any{"language": language, "code": strings.ReplaceAll(code, "FOLDER", folder)})
		if failed {
			t.Errorf("%s: %s", language, said)
		}
		check(language, said, "Echo: [EMAIL_", "a[PHONE_1]b", "x[PHONE_1]9", "Echo: [NAME_1][NAME_2]", "failed", "a[NAME_1]b", "unknown token [EMAIL_999]")
	}
	face := mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{WireNames: true, Logger: testutil.Logger(t)})
	t.Cleanup(face.Close)
	d := &direct{t: t, face: face}
	d.url = serve(t, face, &siteOptions{Settings: cfg.HTTP}) + "/mcp"
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := d.dialogue(version)
		said := c.ask("tools/call", `{"name":"read_text_file","arguments":{"path":"`+filepath.Join(folder, "person.json")+`"}}`)
		check("direct", said, "[EMAIL_")
		token := emailToken.FindString(said)
		check("direct", c.ask("tools/call", `{"name":"echo","arguments":{"message":"a`+token+`b"}}`), "Echo: [EMAIL_")
	}
}

var emailToken = regexp.MustCompile(`\[EMAIL_\d+\]`)
