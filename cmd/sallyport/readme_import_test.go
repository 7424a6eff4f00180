package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestReadmeMoving runs the two commands of the README that import the servers of a client and replace them.
func TestReadmeMoving(t *testing.T) {
	var script strings.Builder
	script.WriteString("env HOME=$WORK/home\nenv XDG_CONFIG_HOME=\n")
	for _, prefix := range []string{"sallyport import ", "sallyport install "} {
		script.WriteString("exec sh -c '" + command(t, "README.md", prefix) + "'\n")
	}
	script.WriteString(`stdout 'removed, as upstreams.yaml has them: github$'
grep '"sallyport"' home/.claude.json
! grep hunter2 home/.claude.json
! grep hunter2 home/.config/sallyport/upstreams.yaml
grep 'GITHUB_TOKEN=''hunter2-hunter2''' home/.config/sallyport/secrets.env
exec sh -c '. home/.config/sallyport/secrets.env && sallyport upstreams list'
stdout '^github '
-- home/.claude.json --
{"mcpServers": {"github": {"type": "stdio", "command": "toyserver", "args": ["alpha"], "env": {"GITHUB_TOKEN": "hunter2-hunter2"}}}}
`)
	file := filepath.Join(t.TempDir(), "readme.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}})
}
