package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/packageindex"
)

// TestWorkersInstall has a model install packages in an environment that two workers have. Programs find them on either worker, which installs
// them when it needs them; where the settings of the workers do not permit it, the error says so.
func TestWorkersInstall(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	s.appendTo(t, filepath.Join(s.dir, "upstreams.yaml"), "environments: {data: {description: tables, install: true}, fixed: {install: true}}\n")
	file := filepath.Join(s.dir, "worker.yaml")
	s.appendTo(t, file, "upstreams: {}\nenvironments:\n  data: {python: {index: "+packageindex.Serve(t, "alpha")+"}, install: true}\n  fixed: {}\n")
	for _, name := range []string{"w1", "w2"} {
		s.joinWith(t, name, "--creds", filepath.Join(s.keys, name+".creds"), "--environments", file)
	}
	s.serve(t)
	testutil.Eventually(t, "both have joined", workersPatience, func() bool { return len(s.workers(t)) == 2 })
	session := dialAs(t, s.url+"/mcp", flowsToken, nil)
	call := func(name string, args map[string]any) string {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		return text.Text
	}
	install := func(environment, name string) string {
		t.Helper()
		return call("install_dependencies", map[string]any{"packages": []string{name}, "environment": environment})
	}
	program := map[string]any{"language": "python", "code": "import alpha\nalpha.NAME", "environment": "data"}
	if answer := <-s.send(t, program); !strings.Contains(answer.raw, `alpha is not installed: install_dependencies(packages=[\"alpha\"], environment=\"data\")`) {
		t.Errorf("before: %s", answer.raw)
	}
	if said := install("data", "alpha"); said != "installed: alpha 1.0. The next program can import them; sessions restart." {
		t.Errorf("%s", said)
	}
	if said := call("check_installed_packages", map[string]any{"environment": "data"}); said != "alpha 1.0" {
		t.Errorf("%s", said)
	}
	for _, gone := range []string{"", "w1", "w2"} { // on either worker
		if gone != "" {
			s.wantOrder(t, true, `(?m)^`+gone+` +.* drain(ing|ed) `, "drain", gone)
		}
		if answer := <-s.send(t, program); answer.Status != "ok" || string(answer.Result) != `"alpha is here"` {
			t.Errorf("without %q: %s", gone, answer.raw)
		}
		if gone != "" {
			s.wantOrder(t, true, `(?m)^`+gone+` +.* ready `, "resume", gone)
		}
	}
	if said := install("data", "beta"); !strings.Contains(said, "beta") || strings.Contains(said, "installed: ") {
		t.Errorf("a package that does not exist: %s", said)
	}
	if said := install("fixed", "alpha"); !strings.Contains(said, "packages cannot be installed in environment fixed: the settings of that machine do not have `install: true`") {
		t.Errorf("where the workers do not permit it: %s", said)
	}
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
}
