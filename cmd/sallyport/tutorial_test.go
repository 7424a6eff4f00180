package main_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
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

// step is a shell example of a page, and the text block after it: what it prints.
type step struct {
	commands, prints string
	fails, compared  bool
}

var anyFence = regexp.MustCompile("(?ms)^```([^\n]+)\n(.*?)^```$")

// steps returns the shell examples of a page. One that is marked "sh fails" ends with a status other than 0.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range anyFence.FindAllStringSubmatch(string(text), -1) {
		switch kind, body := block[1], block[2]; {
		case strings.HasPrefix(kind, "sh"):
			all = append(all, step{commands: body, fails: kind == "sh fails"})
		case kind == "text" && len(all) > 0 && !all[len(all)-1].compared:
			all[len(all)-1].prints, all[len(all)-1].compared = body, true
		default:
			t.Errorf("a block of %q follows no command:\n%s", kind, body)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%s has only %d commands", page, len(all))
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
		commands := strings.ReplaceAll(s.commands, "8080", port)
		if s.fails {
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
		t.Errorf("%v; step %d of %d:\n%s\n%s", err, len(printed), len(all), all[min(len(printed), len(all))-1].commands, printed[len(printed)-1])
	}
	for i, s := range all[:min(len(printed)-1, len(all))] {
		if s.compared && !pattern(s.prints).MatchString(normalize(printed[i])) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", s.commands, printed[i], s.prints)
		}
	}
}

// pattern matches what a page says that a command prints. Three dots are any text, and a line of them any lines.
func pattern(says string) *regexp.Regexp {
	var p strings.Builder
	p.WriteString(`\A`)
	for line := range strings.Lines(normalize(says)) {
		if line == "...\n" {
			p.WriteString(`(?:.*\n)*`)
			continue
		}
		p.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`))
	}
	return regexp.MustCompile(p.String() + `\z`)
}

var passing = []struct {
	what *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(µs|ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`\.+ DURATION`), "DURATION"}, // the dots of make
	{regexp.MustCompile(`\b(e|a|r)-[0-9a-z]{8,}\b`), "ID"},
	{regexp.MustCompile(`\bsp_[0-9A-Za-z_]+`), "TOKEN"},
	{regexp.MustCompile(` +`), " "}, // columns are as wide as what is in them
	{regexp.MustCompile(` +\n`), "\n"},
}

// normalize replaces what differs from one run to the next.
func normalize(text string) string {
	for _, p := range passing {
		text = p.what.ReplaceAllString(text, p.to)
	}
	return text
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
