package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil"
)

// TestAddIsolatedServer adds a server by its name in the registry while a gateway runs. Its process starts in a sandbox. A program calls it,
// the log says which host was refused, with the line that allows it, and after that edit a second call gets as far as the name server.
func TestAddIsolatedServer(t *testing.T) {
	t.Parallel()
	runsc := testutil.Runsc(t)
	testutil.TAP(t)
	servers, packages := registrytest.Weather(t)
	const place = "forecast.test:443" // a name that exists nowhere
	dir := testutil.ShortDir(t)
	settings := filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "registry: "+servers.URL+"\nupstreams: {}\nsandbox: {runsc: "+runsc+", pool: {max: 0}, typecheck: false} # mine\n")
	user := packageUser{t, dir, packages.URL}
	run := func(want string, args ...string) {
		t.Helper()
		user.run(want, append([]string{"sallyport"}, args...)...)
	}
	serve := user.command("sallyport", "serve", "--http", "127.0.0.1:0")
	address, rest := startListening(t, serve)
	run("added weather to upstreams.yaml: 1 tool (ask)", "add", "io.github.acme/weather", "--yes", "--host", "api.test", "--set", "place="+place, "--set", "WEATHER_KEY=hunter2-hunter2")
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), "} # mine\n") || strings.Contains(string(text), "hunter2") {
		t.Errorf("%v\n%s", err, text)
	}
	session := dial(t, address)
	program := "from servers.weather import ask\nask()"
	testutil.Eventually(t, "the gateway has read the settings, and the host is refused", 30*time.Second, func() bool {
		return strings.Contains(runPython(t, session, program), "no forecast: ENOTFOUND")
	})
	run(`sallyport: refused forecast.test: the host is not allowed; to allow it, add to isolate: hosts: ["forecast.test"]`, "upstreams", "logs", "weather")
	run("changed weather", "upstreams", "edit", "weather", "isolate.hosts=[forecast.test]")
	testutil.Eventually(t, "the allowed host is asked for", 30*time.Second, func() bool {
		return strings.Contains(runPython(t, session, program), "no forecast: ECONNREFUSED")
	})
	run("sallyport: refused forecast.test:443: its name was not resolved", "upstreams", "logs", "weather")
	_ = session.Close()
	if err := stop(serve); err != nil {
		t.Error(err)
	}
	<-rest
}

// packageUser is a user with a home directory, a registry of npm packages and no keyring.
type packageUser struct {
	t             *testing.T
	dir, registry string
}

func (u packageUser) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(u.t.Context(), args[0], args[1:]...)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "HOME="+u.dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+u.dir, "npm_config_registry="+u.registry, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus")
	return cmd
}

// run wants that a command succeeds, and that its output contains a text.
func (u packageUser) run(want string, args ...string) {
	u.t.Helper()
	if out, err := u.command(args...).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		u.t.Fatalf("%v: %v, want %s in\n%s", args, err, want, out)
	}
}

func dial(t *testing.T, address string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// runPython runs a Python program by a call of execute_code, and returns the answer.
func runPython(t *testing.T, session *mcp.ClientSession, program string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": program, "language": "python"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}
