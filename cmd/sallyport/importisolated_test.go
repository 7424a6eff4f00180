package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil"
)

// TestImportIsolated imports a real server of a client, of which nothing is known, and calls it. It is installed from the registry and runs
// in a sandbox, where it can read the folder that its settings name; it can write there when upstreams.yaml says so.
func TestImportIsolated(t *testing.T) {
	t.Parallel()
	runsc, packages, dir := testutil.Runsc(t), registrytest.Modules(t, testutil.Upstreams(t)), testutil.ShortDir(t)
	testutil.TAP(t)
	repository, settings := filepath.Join(dir, "repository"), filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "upstreams: {}\nsandbox: {runsc: "+runsc+", pool: {max: 0}, typecheck: false}\n")
	client, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"git": map[string]any{
		"command": "npm", "args": []string{"exec", "-y", "--", "@cyanheads/git-mcp-server"}, "env": map[string]string{"GIT_BASE_DIR": repository},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	user := packageUser{t, dir, packages.URL}
	user.run("", "git", "init", "-q", repository)
	writeText(t, filepath.Join(repository, "new.txt"), "new")
	if err := os.Mkdir(filepath.Join(dir, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, ".cursor", "mcp.json"), string(client))
	user.run("isolated: reaches "+repository+" (read-only); may need more", "sallyport", "import", "cursor")
	serve := user.command("sallyport", "serve", "--http", "127.0.0.1:0")
	const readOnly = "ead-only file system"
	address, rest := startListening(t, serve)
	session := dial(t, address)
	ask := func(want, program string) {
		t.Helper()
		answer := ""
		testutil.Eventually(t, "it is installed, and its settings are read", 5*time.Minute, func() bool {
			answer = runPython(t, session, "from servers.git import git_status, git_add\n"+program)
			return strings.Contains(answer, want) || !strings.Contains(answer, "has no tool") && !strings.Contains(answer, "not available") && !strings.Contains(answer, readOnly)
		})
		if !strings.Contains(answer, want) {
			t.Fatalf("%s, want %s", answer, want)
		}
	}
	ask("new.txt", "git_status(path='"+repository+"')")
	add := "git_add(path='" + repository + "', paths=['new.txt'])\n'it ' + 'works'"
	ask(readOnly, add)
	user.run("changed git", "sallyport", "upstreams", "edit", "git", "isolate.mounts=[{path: "+repository+", mode: rw}]")
	ask("it works", add)
	user.run("A  new.txt", "git", "-C", repository, "status", "--short")
	_ = session.Close()
	if err := stop(serve); err != nil {
		t.Error(err)
	}
	<-rest
}
