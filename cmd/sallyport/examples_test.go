package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/clients"
	"sallyport/internal/testutil"
)

// examplesRun is how each file of docs/examples is tried. What cannot be is here with the words that the page has for it.
var examplesRun = map[string]func(t *testing.T, s *site, path string){
	"claude-code/mcp.json":        settingsOf("claude-code"),
	"claude-code/mcp-http.json":   settingsOf("claude-code"),
	"cursor/mcp.json":             settingsOf("cursor"),
	"cursor/mcp-http.json":        settingsOf("cursor"),
	"vscode/mcp.json":             settingsOf("vscode"),
	"vscode/mcp-http.json":        settingsOf("vscode"),
	"codex/config.toml":           settingsOf("codex"),
	"codex/config-http.toml":      settingsOf("codex"),
	"langchain-js/agent.mjs":      withNode("execute_code search_tools\n", "get_sum(", "The sum of 2 and 40 is 42.\n"),
	"openapi/client.mjs":          withNode("everything.get_sum(a: float, b: float) -> ", "ok The sum of 2 and 40 is 42.\n", "Echo: hello\n"),
	"open-webui/connections.json": openWebUI,
	"litellm/config.yaml":         litellm,
	"langchain-python/agent.py":   pythonSyntax,
	"agno/agent.py":               pythonSyntax,
	"agno/code_executor.py":       pythonSyntax,
}

// TestExamples tries every file of docs/examples against a gateway that serves; the page tells of each, and what is
// not run is marked there.
func TestExamples(t *testing.T) {
	dir := filepath.Join(testutil.ModuleRoot(t), "docs", "examples")
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "README.md" {
			name, _ := filepath.Rel(dir, path)
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) != len(examplesRun) {
		t.Fatalf("%d files, %d of them tried: %v", len(files), len(examplesRun), err)
	}
	s := newSite(t, "")
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			try, known := examplesRun[name]
			if !known {
				t.Fatal("is neither run nor marked")
			}
			word := "run in CI"
			if slices.Contains([]string{".py", ".yaml"}, filepath.Ext(name)) || strings.HasPrefix(name, "open-webui/") {
				word = "not run"
			}
			if !regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| .*" + word).Match(page) {
				t.Errorf("README.md does not say of it: %s", word)
			}
			try(t, s, filepath.Join(dir, name))
		})
	}
	s.terminate(t)
	s.waitStopped(t)
}

// exampleText is a file with the test's gateway in the place of the reader's.
func (s *site) exampleText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("/path/to/sallyport", s.cmd.Path, "/path/to/upstreams.yaml", filepath.Join(s.dir, "upstreams.yaml"),
		"http://127.0.0.1:8080", s.base()).Replace(string(data))
}

// base is the address of the gateway without a path.
func (s *site) base() string { return strings.TrimSuffix(s.url, "/mcp") }

// settingsOf reads a client's settings by what import knows of it, and uses them as the client would.
func settingsOf(name string) func(t *testing.T, s *site, path string) {
	return func(t *testing.T, s *site, path string) {
		t.Helper()
		client, _ := clients.Find(name)
		servers, notes, err := clients.NewReader(clients.System{OS: "linux", Home: t.TempDir(), Dir: t.TempDir()}).Read(client, path, []byte(s.exampleText(t, path)))
		if err != nil || len(notes) > 0 || len(servers) != 1 || servers[0].Label != clients.OurName || servers[0].Skip != "" {
			t.Fatalf("%+v, %v, %v", servers, notes, err)
		}
		entry := servers[0].Entry
		if entry.URL == "" {
			cmd := exec.CommandContext(t.Context(), entry.Command, entry.Args...)
			cmd.Env = s.cmd.Env
			wantTools(t, &mcp.CommandTransport{Command: cmd})
			return
		}
		if !regexp.MustCompile(`^Bearer \$\{\w+\}$`).MatchString(entry.Headers["Authorization"]) || entry.Transport == "sse" {
			t.Errorf("%+v", entry)
		}
		wantTools(t, &mcp.StreamableClientTransport{Endpoint: entry.URL, HTTPClient: &http.Client{Transport: withToken{}}})
	}
}

// wantTools connects and finds the two tools.
func wantTools(t *testing.T, transport mcp.Transport) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// withNode runs an example, which finds its packages beside itself; what it prints has these parts, the first at its start and the
// last at its end.
func withNode(parts ...string) func(t *testing.T, s *site, path string) {
	return func(t *testing.T, s *site, path string) {
		t.Helper()
		got := node(t, s, path)
		if !strings.HasPrefix(got, parts[0]) || !strings.HasSuffix(got, parts[len(parts)-1]) {
			t.Error(got)
		}
		want(t, path, got, parts...)
	}
}

func node(t *testing.T, s *site, path string) string {
	t.Helper()
	modules := testutil.Clients(t)
	dir := t.TempDir()
	program := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(program, []byte(s.exampleText(t, path)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", program)
	cmd.Env = append(os.Environ(), "SALLYPORT_TOKEN=a-token-for-a-test")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// openWebUI does what Open WebUI does with a connection: it fetches the document and calls an operation by its id.
func openWebUI(t *testing.T, s *site, path string) {
	t.Helper()
	var connections []struct {
		Type, URL, Path, Key string
		AuthType             string `json:"auth_type"`
		Config               struct {
			Filter string `json:"function_name_filter_list"`
		}
	}
	if err := json.Unmarshal([]byte(s.exampleText(t, path)), &connections); err != nil || len(connections) != 1 {
		t.Fatal(err)
	}
	c := connections[0]
	if c.Type != "openapi" || c.AuthType != "bearer" || c.Key != "SALLYPORT_TOKEN" {
		t.Errorf("%+v", c)
	}
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
		}
	}
	s.fetch(t, http.MethodGet, c.URL+"/"+c.Path, "", &document)
	operations := map[string]string{} // by id
	for route, methods := range document.Paths {
		for method, operation := range methods {
			operations[operation.OperationID] = strings.ToUpper(method) + " " + route
		}
	}
	for name := range strings.SplitSeq(c.Config.Filter, ",") {
		if operations[name] == "" {
			t.Errorf("there is no operation %s", name)
		}
	}
	method, route, _ := strings.Cut(operations["execute_code"], " ")
	var answer struct{ Status, Result string }
	s.fetch(t, method, c.URL+route, `{"code": "from servers.everything import get_sum\nget_sum(a=2, b=40)", "language": "python"}`, &answer)
	if answer.Status != "ok" || !strings.Contains(answer.Result, "is 42") {
		t.Errorf("answers %+v", answer)
	}
}

// fetch makes a request with the token of the test.
func (s *site) fetch(t *testing.T, method, url, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Transport: withToken{}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(data, into) != nil {
		t.Fatalf("%s %s: %d %.300s, %v", method, url, resp.StatusCode, data, err)
	}
}

// litellm connects as the file says.
func litellm(t *testing.T, s *site, path string) {
	t.Helper()
	text := s.exampleText(t, path)
	fields := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^    (\w+): (.*)$`).FindAllStringSubmatch(text, -1) {
		fields[found[1]] = found[2]
	}
	if !strings.HasPrefix(text, "mcp_servers:\n  sallyport:\n") || fields["transport"] != "http" || fields["auth_type"] != "bearer_token" || fields["auth_value"] != "os.environ/SALLYPORT_TOKEN" {
		t.Errorf("%q", text)
	}
	wantTools(t, &mcp.StreamableClientTransport{Endpoint: fields["url"], HTTPClient: &http.Client{Transport: withToken{}}})
}

// pythonSyntax is all that can be said of a program whose packages are not here.
func pythonSyntax(t *testing.T, _ *site, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-I", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
