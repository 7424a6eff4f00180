package main_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
)

// TestDashboardAdds: a person adds a real server of npm in the dashboard, without script. Its packages are installed, it runs in a
// sandbox, and its page says that it works. A server with a secret cannot be installed: the page says why, and no page has the secret.
func TestDashboardAdds(t *testing.T) {
	runsc, packages, dir := testutil.Runsc(t), registrytest.Modules(t, testutil.Upstreams(t)), testutil.ShortDir(t)
	testutil.TAP(t)
	servers, _ := registrytest.Weather(t)
	settings := filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "registry: "+servers.URL+" # ours\nupstreams: {}\nsandbox: {runsc: "+runsc+", pool: {max: 0}, typecheck: false} # mine\n")
	writeText(t, filepath.Join(dir, "notes.txt"), "milk")
	user := packageUser{t, dir, packages.URL}
	serve := user.command("sallyport", "serve", "--http", "127.0.0.1:0")
	address, rest := startListening(t, serve)
	w := &walker{t: t, p: browser.Open(t).Page(t), home: strings.TrimSuffix(address, "/mcp")}
	out, err := user.command("sallyport", "dashboard", "--print").Output()
	if err != nil || w.p.Go(strings.TrimSpace(string(out))) != http.StatusOK {
		t.Fatalf("the login: %v, %s", err, out)
	}
	w.addFilesystem(dir, settings)
	w.addWeather(dir, settings)
	w.addURL(dir, settings)
	if err := stop(serve); err != nil {
		t.Error(err)
	}
	if log := <-rest; strings.Contains(log, "hunter2") || strings.Contains(log, "hunter3") {
		t.Errorf("the log has the secret:\n%s", log)
	}
}

// addFilesystem adds a server of npm that reads a folder, and calls it.
func (w *walker) addFilesystem(dir, settings string) {
	w.t.Helper()
	p := w.p
	w.follow("Upstreams")
	p.Follow("main a[href='/ui/add-upstream']")
	w.checkPage("add an upstream", "Well-known servers", "In the MCP registry")
	p.Fill("main input[name=server]", "npm:@modelcontextprotocol/server-filesystm")
	if status := p.Follow("main form button"); status != http.StatusNotFound {
		w.t.Errorf("a server that does not exist: %d", status)
	}
	w.checkPage("a server that does not exist", "server-filesystm")
	p.Complaints() // of the status
	p.NoScript(true)
	p.Go(w.home + "/ui/add-upstream")
	p.Fill("main input[name=server]", "npm:@modelcontextprotocol/server-filesystem")
	p.Follow("main form button")
	p.NoScript(false)
	p.Go(w.home + "/ui/add-upstream?server=npm%3A%40modelcontextprotocol%2Fserver-filesystem")
	w.checkPage("a server to add", "@modelcontextprotocol/server-filesystem", "npx", "Isolated", "Hosts", "none", "‹directory›", "Without a sandbox")
	p.NoScript(true)
	p.Go(w.home + "/ui/add-upstream?server=npm%3A%40modelcontextprotocol%2Fserver-filesystem")
	p.Fill("#add [name='name']", "my-files")
	p.Fill("#add [name='value.0']", dir)
	p.Follow("#add button.primary")
	p.NoScript(false)
	p.Go(w.home + "/ui/upstreams/my_files/test")
	testutil.Eventually(w.t, "it is installed, and works", 5*time.Minute, func() bool { return strings.Contains(p.Text("main"), "It works") })
	p.WaitText("main", "read_text_file") // without a reload
	w.checkPage("a server that was added", "It works", "read_text_file")
	p.Go(w.home + "/ui/catalogue/my_files/read_text_file")
	p.Fill("#try [name='in.path']", filepath.Join(dir, "notes.txt"))
	p.Follow("#try button.primary")
	p.WaitText("#try", "milk")
	text, err := os.ReadFile(settings)
	if err != nil || !strings.Contains(string(text), " # ours\n") || !strings.Contains(string(text), "} # mine\n") || !strings.Contains(string(text), "isolate:") || !strings.Contains(string(text), dir) {
		w.t.Errorf("%v\n%s", err, text)
	}
	w.follow("Audit")
	w.checkPage("audit after a server was added", "added upstreams.my-files")
}

// addWeather adds a server that a search finds. The registry of packages does not have its package.
func (w *walker) addWeather(dir, settings string) {
	w.t.Helper()
	p := w.p
	p.Go(w.home + "/ui/add-upstream")
	p.Fill("main input[name=words]", "weather")
	p.Follow("main form[role=search] button")
	w.checkPage("servers of the registry", "io.github.acme/weather")
	p.Follow("main a[href*='acme']")
	w.checkPage("a server with a secret", "the GitHub account acme", "WEATHER_KEY", "(secret)")
	p.Fill("#add input[required]:not([name=name])", "forecast.test:443")
	p.Fill("#add input[type=password]", "hunter2-hunter2")
	p.Fill("#add input[name=hosts]", "not/a host")
	if status := p.Follow("#add button.primary"); status != http.StatusBadRequest {
		w.t.Errorf("a wrong host: %d", status)
	}
	w.checkPage("a server with a wrong host", "nothing was changed", "not/a")
	if secret := browser.Eval[string](p, `document.querySelector("#add input[type=password]").value`); secret != "" {
		w.t.Errorf("the page has the secret %q", secret)
	}
	p.Complaints() // of the status
	p.Fill("#add input[type=password]", "hunter2-hunter2")
	p.Fill("#add input[name=hosts]", "api.test")
	p.Follow("#add button.primary")
	testutil.Eventually(w.t, "the installation fails", 5*time.Minute, func() bool { return strings.Contains(p.Text("main"), "It does not work.") })
	w.checkPage("a server that does not work", "To do: ", "Try again")
	if html := browser.Eval[string](p, "document.documentElement.outerHTML"); strings.Contains(html, "hunter2") {
		w.t.Errorf("the page has the secret: %s", html)
	}
	text, err := os.ReadFile(settings)
	secrets, missing := os.ReadFile(filepath.Join(dir, "secrets.env"))
	if err != nil || missing != nil || !strings.Contains(string(text), "${WEATHER_KEY}") || strings.Contains(string(text), "hunter2") || !strings.Contains(string(secrets), "WEATHER_KEY='hunter2-hunter2'") {
		w.t.Errorf("%v, %v\n%s\n%d bytes of secrets", err, missing, text, len(secrets))
	}
	p.Follow("main form[action='/ui/upstreams/weather/switch'] button")
	w.checkPage("upstreams with one that is off", "Disabled: weather.", "my_files")
}

// addURL adds a server at a URL that requires a token, which is stored apart from the settings.
func (w *walker) addURL(dir, settings string) {
	w.t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "open_door", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter3-hunter3" {
			http.Error(rw, "no token", http.StatusForbidden)
			return
		}
		serve.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(web.Close)
	p := w.p
	p.Go(w.home + "/ui/add-upstream?server=" + url.QueryEscape(web.URL+"/mcp"))
	w.checkPage("a server at a URL", "Authorization", "(secret)", "stored apart from the settings")
	p.Fill("#add [name='name']", "guarded")
	p.Fill("#add input[type=password]", "Bearer hunter3-hunter3")
	p.Follow("#add button.primary")
	testutil.Eventually(w.t, "it works", time.Minute, func() bool { return strings.Contains(p.Text("main"), "It works") })
	if text := p.Text("main"); strings.Contains(text, "0 tools") {
		w.t.Errorf("a server that works has no tools:\n%s", text)
	}
	p.WaitText("main", "open_door") // without a reload
	w.checkPage("a server with a token", "open_door")
	text, err := os.ReadFile(settings)
	secrets, missing := os.ReadFile(filepath.Join(dir, "secrets.env"))
	if err != nil || missing != nil || !strings.Contains(string(text), "${GUARDED_AUTHORIZATION}") || strings.Contains(string(text), "hunter3") || !strings.Contains(string(secrets), "hunter3-hunter3") {
		w.t.Errorf("%v, %v\n%s", err, missing, text)
	}
}
