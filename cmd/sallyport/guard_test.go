package main_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuard is issue 8, point by point, in both eras: what a client sees of it, what upstreams get to see, and what
// the operator's commands say afterwards. Each era has one gateway, which is killed once and started again.
func TestGuard(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "sallyport")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, binary, version)
			g.serve(true)
			t.Run("privacy", g.privacy)
			t.Run("secrets", g.secrets)
			t.Run("sandbox", g.fromInside)
			if g.url != "" {
				t.Run("api", g.overAPI)
			}
			g.stop()
			g.nothingLeaked(t)
		})
	}
}

// privacy: personal data goes from one upstream to another, and neither a program nor a model sees it.
func (g *guarded) privacy(t *testing.T) {
	got := g.run(fmt.Sprintf(`
import re
from servers.files import read_text_file
from servers.memory import create_entities
from servers.desk import look
text = read_text_file(%q)["content"]
tokens = re.findall(r"\[EMAIL[^\]]*\]", text)
create_entities([{"name": "ann", "entityType": "person", "observations": [tokens[0]]}])
look(text=tokens[1])
print(len(set(tokens)), "@" in text, text)`, g.path("files/people.csv")))
	want(t, "the program", got, "2 False", "!example.com", "[EMAIL_")
	want(t, "the second upstream", g.read("graph.jsonl"), "ann.lee@example.com", "![EMAIL")
	if n := g.desk.times("look bob.roy@example.com"); n != 0 {
		t.Error("an upstream that may not have it got the value")
	}
	if g.url != "" {
		token := got[strings.Index(got, "[EMAIL_"):]
		token = token[:strings.Index(token, "]")+1]
		stranger := g.as(malloryToken, false)
		want(t, "another's token", execute(t.Context(), stranger, map[string]any{"code": fmt.Sprintf(
			"from servers.memory import create_entities\ncreate_entities([{'name': 'stolen', 'entityType': 'x', 'observations': [%q]}])", token)}), "stolen")
		want(t, "the second upstream", g.read("graph.jsonl"), `"stolen"`, token)
	}
}

// secrets of the settings come back from no upstream, whatever it says.
func (g *guarded) secrets(t *testing.T) {
	got := g.run("from servers.desk import leak\nprint(leak(), leak().find('0451'))")
	want(t, "an upstream that says its key", got, "you sent", "-1", "!"+deskSecret)
}

// fromInside: what a program can try with all of its sandbox in its hands.
func (g *guarded) fromInside(t *testing.T) {
	got := g.run(fmt.Sprintf(`
import os, socket
found = []
for root, dirs, names in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/usr")):
        dirs[:] = []
        continue
    found += [os.path.join(root, n) for n in names if n.endswith(".sock") or n in ("upstreams.yaml", "schema", "people.csv")]
def reach(path):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        return "reached"
    except OSError as e:
        return type(e).__name__
print(found, os.path.exists(%q), reach(%q), reach("/run/sallyport/control.sock"))`, g.dir, g.path("data/sallyport/control/x.sock")))
	want(t, "sockets and files", got, "[] False FileNotFoundError FileNotFoundError")
	if n := len(strings.Fields(g.cli("executions"))); n < 10 {
		t.Errorf("the owner's command sees nothing: %d words", n)
	}
}

// overAPI: who may see and answer what, over HTTP.
func (g *guarded) overAPI(t *testing.T) {
	for _, test := range []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{aliceToken, http.MethodGet, "/executions", "", 200, `"principal":"token:alice"`},
		{opsToken, http.MethodGet, "/executions", "", 200, `"principal":"token:mallory"`},
		{"a-token-of-nobody", http.MethodGet, "/executions", "", 401, `"status":401`},
	} {
		if status, body := g.api(test.token, test.method, test.path, test.body); status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, body)
		}
	}
	if _, body := g.api(malloryToken, http.MethodGet, "/executions", ""); strings.Contains(body, "alice") {
		t.Errorf("mallory sees %s", body)
	}
}

// nothingLeaked looks through all that the gateway has kept and logged.
func (g *guarded) nothingLeaked(t *testing.T) {
	for _, word := range []string{deskSecret, aliceToken, "ann.lee@example", "bob.roy@example"} {
		if strings.Contains(g.log.String(), word) {
			t.Errorf("the log has %q", word)
		}
	}
}
