package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
)

// rig is a client that speaks over stdio with the built binary, which holds the
// three real npm upstreams, a dead one, and a folder with one file.
type rig struct {
	t       *testing.T
	session *mcp.ClientSession
	state   string // XDG_RUNTIME_DIR of the gateway: all that it may leave behind
	folder  string
	marker  string // a word that only this test's file holds
}

func newRig(t *testing.T) *rig {
	t.Helper()
	runsc, modules := testutil.Runsc(t), testutil.Upstreams(t)
	binary := testutil.Binary(t)
	r := &rig{t: t, folder: t.TempDir(), state: testutil.ShortDir(t), marker: fmt.Sprintf("marker-%d", time.Now().UnixNano())}
	r.write(filepath.Join(r.folder, r.marker+".txt"), "the content of "+r.marker)
	config := filepath.Join(t.TempDir(), "upstreams.yaml")
	script := func(name string) string {
		return filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	r.write(config, fmt.Sprintf(`upstreams:
  everything: {command: node, args: [%q, stdio]}
  filesystem: {command: node, args: [%q, %q], description: files of the test}
  memory:
    command: node
    args: [%q]
    env: {MEMORY_FILE_PATH: %q}
  dead: {command: sh, args: [-c, "echo 'no licence' >&2; exit 3"]}
sandbox: {timeout: 20s, runsc: %q}
`, script("everything"), script("filesystem"), r.folder, script("memory"), filepath.Join(t.TempDir(), "memory.jsonl"), runsc))
	r.connect(binary, config)
	return r
}

func (r *rig) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) connect(binary, config string) {
	r.t.Helper()
	cmd := exec.Command(binary, "serve", "--config", config)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+r.state, "XDG_DATA_HOME="+filepath.Join(r.state, "data"), "SECRET_OF_THE_HOST=canary")
	cmd.Stderr = r.t.Output()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(r.t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.session = session
}

// call makes one tool call as a client does and returns what the model reads.
func (r *rig) call(name string, args map[string]any) (string, bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	result, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	var text strings.Builder
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			text.WriteString(block.Text)
		}
	}
	return text.String(), result.IsError
}

func (r *rig) wantSearch(query string, want ...string) {
	r.t.Helper()
	text, isError := r.call("search_tools", map[string]any{"query": query})
	r.compare("search "+query, text, isError, false, want)
}

func (r *rig) wantRun(language, code string, fails bool, want ...string) {
	r.t.Helper()
	text, isError := r.call("execute_code", map[string]any{"code": code, "language": language, "timeout": 15})
	r.compare(code, text, isError, fails, want)
}

func (r *rig) compare(what, text string, isError, fails bool, want []string) {
	r.t.Helper()
	if isError != fails {
		r.t.Errorf("%s\nisError is %v:\n%s", what, isError, text)
	}
	for _, part := range want {
		if !strings.Contains(text, part) {
			r.t.Errorf("%s\nno %q in:\n%s", what, part, text)
		}
	}
	if len(text) > 60<<10 || strings.Contains(text, "canary") {
		r.t.Errorf("%s\nanswer of %d bytes:\n%.2000s", what, len(text), text)
	}
}

func TestEndToEnd(t *testing.T) {
	r := newRig(t)
	t.Run("two tools", r.twoTools)
	t.Run("search", r.search)
	t.Run("readme", r.readme)
	t.Run("programs", r.programs)
	t.Run("mistakes", r.mistakes)
	t.Run("abuse", r.abuse)
	t.Run("dashboard", r.dashboard)
	if err := r.session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	r.nothingLeft()
}

func (r *rig) twoTools(t *testing.T) {
	list, err := r.session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	if list.Tools[0].Name+list.Tools[1].Name != "execute_codesearch_tools" {
		t.Errorf("tools %s and %s", list.Tools[0].Name, list.Tools[1].Name)
	}
}

func (r *rig) search(t *testing.T) {
	testutil.Eventually(t, "all upstreams have answered", time.Minute, func() bool { // a search does not wait long for a slow one
		text, _ := r.call("search_tools", map[string]any{})
		return !strings.Contains(text, "still connecting")
	})
	r.wantSearch("create entities", "from servers.memory import", "create_entities(entities: list[{name: str")
	r.wantSearch("read a text file", "read_text_file(path: str")
	r.wantSearch("", "everything (", "filesystem (", "memory (", "dead (0 tools)", "no licence")
}

func (r *rig) programs(*testing.T) {
	r.wantRun("python", `
from servers.memory import create_entities
from servers.filesystem import list_directory, read_text_file
name = list_directory("`+r.folder+`")["content"].removeprefix("[FILE] ")
text = read_text_file("`+r.folder+`/" + name)["content"]
create_entities([{"name": name, "entityType": "file", "observations": [text]}])
name`, false, r.marker+".txt")
	r.wantRun("typescript", `
import { read_graph } from "servers/memory";
import { get_sum } from "servers/everything";
interface Entity { name: string; observations: string[] }
const graph = await read_graph();
const mine: Entity[] = graph.entities.filter((e: Entity) => e.name.startsWith("marker"));
console.log(mine[0].observations[0]);
await get_sum({ a: mine.length, b: 41 })`, false, "the content of "+r.marker, "The sum of 1 and 41 is 42")
	r.wantRun("python", "import os\nfrom servers.everything import get_tiny_image\n[type(x).__name__ for x in get_tiny_image()], sorted(os.listdir('/servers/memory'))[:2]",
		false, `[["str","Blob","str"],["__init__.py","add_observations.py"]]`)
	r.wantRun("python", "from servers.everything import echo\nfrom sallyport import parallel\nparallel([lambda i=i: echo(str(i)) for i in range(20)])[19]", false, "Echo: 19")
}

func (r *rig) mistakes(*testing.T) {
	r.wantRun("python", "from servers.memory import create_entity", true, "ImportError", "line 1", "create_entities")
	r.wantRun("python", "import servers.memroy", true, "did you mean servers.memory?")
	r.wantRun("python", "from servers.memory import create_entities\n\ncreate_entities(entitys=[])", true, "ToolError", "line 3", "did you mean entities?")
	r.wantRun("python", "from servers.filesystem import read_text_file\nread_text_file('/etc/hostname')", true, "ToolError", "line 2", "outside allowed directories")
	r.wantRun("python", "create_entities([])", true, "NameError", "from servers.memory import create_entities")
	r.wantRun("typescript", "import { create_entity } from 'servers/memory';\ncreate_entity({})", true, "servers/memory has no tool create_entity", "line 1", "did you mean create_entities?")
	r.wantRun("typescript", "import { get_sum } from 'servers/everything';\n\nawait get_sum({ a: 1, bb: 2 } as any)", true, "ToolError", "line 3", "did you mean b?")
	r.wantRun("typescript", "const x: number = ;", true, "SyntaxError", "line 1")
	r.wantRun("python", "from servers.dead import anything", true, "upstream dead is not available", "no licence")
	r.wantRun("ruby", "puts 1", true, `unknown language "ruby"`, "python or typescript")
	r.wantRun("python", " ", true, "code is blank")
}

// abuse is done twice over: after each, the gateway has to do its job as before.
func (r *rig) abuse(*testing.T) {
	for _, abuse := range []struct {
		language, code, want string
		timeout              int
	}{
		{"python", "import time\nwhile True: pass", "ran longer than", 3},
		{"typescript", "while (true);", "ran longer than", 3},
		{"python", "import os\nfor i in range(160000): os.write(1, b'A' * 65536)", "printed without end", 20},
		{"python", "import os\nwhile True: os.fork()", "BlockingIOError", 20},
		{"python", "x = []\nwhile True: x.append(bytearray(1 << 24))", "MemoryError", 20},
		{"python", "import os; os.kill(os.getpid(), 9)", "killed (signal 9)", 20},
	} {
		text, isError := r.call("execute_code", map[string]any{"code": abuse.code, "language": abuse.language, "timeout": abuse.timeout})
		r.compare(abuse.code, text, isError, true, []string{abuse.want})
		r.wantRun("python", "from servers.everything import echo\necho('still here')", false, "Echo: still here")
	}
}

// nothingLeft fails if the gateway has left a process, a socket or a directory.
func (r *rig) nothingLeft() {
	r.t.Helper()
	if left, err := filepath.Glob(filepath.Join(r.state, "sallyport", "*")); err != nil || len(left) > 0 {
		r.t.Errorf("left in the state directory: %v, %v", left, err)
	}
	testutil.Eventually(r.t, "all processes end", 2*time.Second, func() bool { return len(processesWith(r.state)) == 0 })
}

// processesWith returns the processes whose environment or command line has the text.
func processesWith(text string) []string {
	var found []string
	for _, file := range []string{"environ", "cmdline"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + file)
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
				found = append(found, path)
			}
		}
	}
	return found
}
