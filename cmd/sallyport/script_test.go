package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/bench/chaos/killtest"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox/egress"
)

// TestMain makes the test binary every program that a script names: sallyport
// itself, and what stands on both sides of it.
func TestMain(m *testing.M) {
	natscluster.Serve()
	egress.Child()
	upstreamtest.Main()
	testscript.Main(tlstest.M{Tests: m}, map[string]func(){
		"sallyport":  withSharedSnapshots(main),
		"toyserver":  toyServer,
		"listserver": listServer,
		"leaky":      leaky,
		"till":       till,
		"checktools": checkTools,
		"mcpclient":  mcpClient,
		"hold":       hold,
		"brokenpipe": brokenPipe,
		"xdg-open":   browse,
		"taken":      withUsedPort,
		"beside":     withGateway,
		"limactl":    limactl,
		"wsl.exe":    wsl,
	})
}

// till is "till FILE": an upstream that writes what it does to a file.
func till() { check(killtest.Upstream(context.Background(), os.Args[1])) }

// leaky is "leaky FILE [die] ...": an upstream that says all secrets in the file, which holds a list in JSON.
func leaky() {
	known := func() (list []string) {
		data, err := os.ReadFile(os.Args[1])
		check(err)
		check(json.Unmarshal(data, &list))
		return list
	}
	fmt.Fprintln(os.Stderr, known(), os.Args, os.Environ())
	if len(os.Args) > 2 && os.Args[2] == "die" {
		os.Exit(7)
	}
	check(upstreamtest.Leaky(known).Run(context.Background(), &mcp.StdioTransport{}))
}

// browse is the person at the browser that auth login opens.
func browse() {
	if err := (&authserver.Browser{}).Open(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestScripts(t *testing.T) {
	as := authserver.New(t, &authserver.Options{Clients: []authserver.Client{{ID: "robot", Secret: "s3cret", Service: true}}})
	guarded := oauthtest.New(t, as, nil)
	model := modeltest.New(t, models.OpenAI, modelOfScripts)
	servers, packages := registrytest.Weather(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GUARDED", guarded.URL)
			env.Setenv("REGISTRY", servers.URL)
			env.Setenv("npm_config_registry", packages.URL)
			env.Setenv("MODEL", model.URL)
			env.Setenv("MODEL_KEY", modeltest.Key)
			env.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
			return setUp(env)
		},
		Condition:          condition,
		RequireUniqueNames: true,
		UpdateScripts:      golden.Update(),
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":      wantStatus,
			"nothingleft": nothingLeft,
			"lines":       wantLines,
			"edited":      editFile,
			"lastrun":     lastRun,
			"timeless":    timeless,
		},
	})
}

// modelOfScripts is a model that searches, writes a program with a mistake, repairs it, and answers.
func modelOfScripts(t modeltest.Turn) string {
	return []string{
		"```search\norders of the shop\n```",
		"```python\nfrom servers.shop import list_orders\nprint(len([o for o in list_orders()[\"order\"] if o[\"customer\"] == \"Borg\"]))\n```",
		"```python\nfrom servers.shop import list_orders\nprint(len([o for o in list_orders()[\"orders\"] if o[\"customer\"] == \"Borg\"]))\n```",
		"```answer\nBorg placed 3 orders.\n```",
	}[min(len(t.Messages)/2, 3)]
}

// setUp gives each script a directory for sandboxes whose path is short enough for sockets.
func setUp(env *testscript.Env) error {
	dir, err := os.MkdirTemp("/tmp", "sp")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	env.Setenv("XDG_RUNTIME_DIR", dir)
	env.Setenv("SSL_CERT_FILE", os.Getenv("SSL_CERT_FILE"))
	env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every command takes a second to exit
	env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
	env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, ".data"))
	env.Setenv("SALLYPORT_TEST_SNAPSHOTS", testutil.Snapshots())
	env.Setenv("RUNSC", part("SALLYPORT_TEST_RUNSC", ".cache/bin/runsc"))
	env.Setenv("CHECKERS", part("SALLYPORT_TEST_CHECKERS", "tools/typecheck/node_modules"))
	env.Setenv("TOOLS", part("", "tools"))
	env.Setenv("UPSTREAMS", part("SALLYPORT_TEST_UPSTREAMS", "tools/upstreams/node_modules"))
	return nil
}

// part is where something that make builds is.
func part(variable, usual string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := filepath.Abs(filepath.Join("..", "..", usual))
	if err != nil {
		return usual
	}
	return path
}

// condition is [runsc], [upstreams] and [checkers]; what is missing is an error where it must not be.
func condition(name string) (bool, error) {
	var path string
	mend := "run make " + name
	if testing.Short() && name != "upstreams" {
		return false, nil
	}
	switch name {
	case "runsc":
		path = part("SALLYPORT_TEST_RUNSC", ".cache/bin/runsc")
	case "checkers":
		path = filepath.Join(part("SALLYPORT_TEST_CHECKERS", "tools/typecheck/node_modules"), "pyright")
	case "upstreams":
		path = filepath.Join(part("SALLYPORT_TEST_UPSTREAMS", "tools/upstreams/node_modules"), "@modelcontextprotocol", "server-memory")
	case "tap":
		path, mend = "/dev/net/tun", "load the kernel module tun"
	default:
		return false, fmt.Errorf("unknown condition %s", name)
	}
	_, err := os.Stat(path)
	if err != nil && os.Getenv("SALLYPORT_REQUIRE") != "" {
		return false, fmt.Errorf("SALLYPORT_REQUIRE is set: %s: %w", mend, err)
	}
	return err == nil, nil
}

// wantStatus is "status N command...": the command ends with that exit status.
func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// editFile is "edited FILE OLD NEW": the first OLD in the file becomes NEW.
func editFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edited FILE OLD NEW")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	with := strings.Replace(string(data), args[1], args[2], 1)
	if with == string(data) {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(with), 0o600))
}

// wantLines is "lines N FILE": the file, stdout or stderr has that many lines.
func wantLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s has %d lines, want %s", args[1], got, args[0])
	}
}

// nothingLeft checks that no upstream runs any more, and that no sandbox has left a file.
func nothingLeft(ts *testscript.TestScript, _ bool, _ []string) {
	pids, err := filepath.Glob(filepath.Join(ts.Getenv("TMPDIR"), "toy-*"))
	ts.Check(err)
	for _, path := range pids {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "toy-"))
		ts.Check(err)
		for try := 0; runs(pid); try++ {
			if try == 200 {
				ts.Fatalf("the upstream with pid %d still runs", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	state := filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "sallyport")
	if entries, _ := os.ReadDir(state); len(entries) > 0 {
		ts.Fatalf("%s is left in the state directory", entries[0].Name())
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, path := range commands {
		if line, _ := os.ReadFile(path); strings.Contains(string(line), state) {
			ts.Fatalf("a process of a sandbox is left: %q", line)
		}
	}
}

// runs reports whether a process is there and no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}
