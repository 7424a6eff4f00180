package main_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/walkthrough"
)

// TestTutorial runs the commands of each lesson in a shell, in their order, and compares what they print with the page.
func TestTutorial(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(testutil.ModuleRoot(t), "docs", "tutorial", "*.md"))
	if err != nil || len(pages) < 4 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	home := newReader(t)
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) { home.follow(t, page) })
	}
	testutil.NoProcesses(t, string(home))
}

// TestSetUpByAnAgent runs the commands of the page for agents, for a person who has one MCP server in Claude Code.
func TestSetUpByAnAgent(t *testing.T) {
	home := newReader(t)
	memory := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-memory", "dist", "index.js")
	settings := fmt.Sprintf(`{"mcpServers": {"notes": {"command": "node", "args": [%q], "env": {"NOTES_TOKEN": "hunter2-hunter2", "MEMORY_FILE_PATH": %q}}}}`,
		memory, filepath.Join(string(home), "notes.jsonl"))
	if err := os.WriteFile(filepath.Join(string(home), ".claude.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	home.follow(t, filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "set-up-by-an-agent.md"))
	testutil.NoProcesses(t, string(home))
}

// reader is the home folder of a person who follows a page, with a clone in which everything is built.
type reader string

func newReader(t *testing.T) reader {
	t.Helper()
	runsc, modules := testutil.Runsc(t), testutil.Upstreams(t)
	binary, err := exec.LookPath("sallyport")
	if err != nil {
		t.Fatal(err)
	}
	home := reader(testutil.ShortDir(t))
	for name, target := range map[string]string{
		".cache/bin/sallyport": binary, ".cache/bin/runsc": runsc, "tools/upstreams/node_modules": modules,
		"Makefile": filepath.Join(testutil.ModuleRoot(t), "Makefile"),
	} {
		path := filepath.Join(home.clone(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func (r reader) clone() string { return filepath.Join(string(r), "sallyport") }

// steps returns the commands of a page.
func steps(t *testing.T, page string) []walkthrough.Step {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all, err := walkthrough.Steps(string(text))
	if err != nil || len(all) < 5 {
		t.Fatalf("%s has only %d commands: %v", page, len(all), err)
	}
	return all
}

const stepMark = "\x1e"

// prelude stands in for make, which would build what this test has: it names the steps of its targets, and installs.
const prelude = `set -e -o pipefail
exec 2>&1 </dev/null
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' EXIT
make() {
	if [ "$1" = install ]; then SUDO_USER=ann command make -s -C "$MODULE" BIN="$PWD/.cache/bin" "$@"; return; fi
	command make -n -C "$MODULE" "$@" | sed -n -E \
		-e 's/.*step\.sh "([^"]*)" .*/==> \1 . 1 s/p' \
		-e 's/.*tool\.sh (\w+) \S+ "([^"]*)".*/==> fetching the sources of \1 . 1 s\n==> building \1 (\2) . 1 s/p' \
		-e 's/^echo "(.*)"$/\1/p' \
		-e 's/.*npm\.sh \S+ "([^"]*)".*/==> \1 . 1 s/p'
}
`

// follow runs the steps of a page.
func (r reader) follow(t *testing.T, page string) {
	t.Helper()
	all := steps(t, page)
	port := freePort(t)
	var script strings.Builder
	script.WriteString(prelude)
	for _, s := range all {
		commands := strings.ReplaceAll(s.Commands, "8080", port)
		if s.Fails {
			commands = fmt.Sprintf("if {\n%s}; then echo 'this does not fail'; exit 1; fi\n", commands)
		}
		script.WriteString(commands + "printf '" + `\036` + "'\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = r.clone()
	cmd.Env = append(os.Environ(), "HOME="+string(r), "MODULE="+testutil.ModuleRoot(t), "XDG_RUNTIME_DIR="+filepath.Join(string(r), "run"),
		"XDG_CACHE_HOME="+filepath.Join(string(r), "cache"), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	printed := strings.Split(strings.NewReplacer(r.clone(), "/home/ann/sallyport", string(r), "/home/ann", port, "8080").Replace(string(out)), stepMark)
	if err != nil || len(printed) != len(all)+1 {
		t.Errorf("%v; step %d of %d:\n%s\n%s", err, len(printed), len(all), all[min(len(printed), len(all))-1].Commands, printed[len(printed)-1])
	}
	for i, s := range all[:min(len(printed)-1, len(all))] {
		if !s.Matches(printed[i]) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", s.Commands, printed[i], s.Prints)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
