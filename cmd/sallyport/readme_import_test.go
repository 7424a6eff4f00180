package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/internal/testutil"
)

// moved checks what the commands that move the servers of a client have done.
const moved = `stdout 'removed, as upstreams.yaml has them: github$'
grep '"sallyport"' home/.claude.json
! grep hunter2 home/.claude.json
! grep hunter2 home/.config/sallyport/upstreams.yaml
grep 'GITHUB_TOKEN=''hunter2-hunter2''' home/.config/sallyport/secrets.env
exec sh -c '. home/.config/sallyport/secrets.env && sallyport upstreams list'
stdout '^github '
-- home/.claude.json --
{"mcpServers": {"github": {"type": "stdio", "command": "toyserver", "args": ["alpha"], "env": {"GITHUB_TOKEN": "hunter2-hunter2"}}}}
`

// TestReadmeInit runs the command of the README that sets up everything without questions.
func TestReadmeInit(t *testing.T) {
	t.Parallel()
	runMoving(t, filepath.Dir(testutil.Runsc(t)), command(t, "README.md", "sallyport init --"))
}

// TestMoving runs the two commands of the guide that import the servers of a client and replace them.
func TestMoving(t *testing.T) {
	t.Parallel()
	const page = "docs/how-to/add-to-a-client.md"
	runMoving(t, "/nowhere", command(t, page, "sallyport import --env-file "), command(t, page, "sallyport install "))
}

// runMoving runs commands in the home of a user of Claude Code.
func runMoving(t *testing.T, tools string, commands ...string) {
	t.Helper()
	var script strings.Builder
	script.WriteString("env HOME=$WORK/home\nenv XDG_CONFIG_HOME=\nenv XDG_RUNTIME_DIR=" + testutil.ShortDir(t) + "\nenv PATH=" + tools + "${:}$PATH\n")
	for _, line := range commands {
		script.WriteString("exec sh -c '" + line + "'\n")
	}
	script.WriteString(moved)
	file := filepath.Join(t.TempDir(), "moving.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}})
}
