//go:build linux

package remote_test

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// evaluator answers each line, an expression of Python's, with its value as JSON.
const evaluator = `import json, os, sys
for line in sys.stdin:
    try: value = eval(line)
    except BaseException as err: value = type(err).__name__
    print(json.dumps(value), flush=True)
`

// newServiceMachine is a machine with two services: one that evaluates, and one that does nothing but write.
func newServiceMachine(t testing.TB) *machine {
	t.Helper()
	m := newMachine(t)
	service := func(code string) sandbox.Service {
		return sandbox.Service{
			Interpreter: sandbox.Python, Args: []string{"-I", "-S", "/work/main.py"}, Dir: "/work", Files: map[string][]byte{"main.py": []byte(code)},
			Memory: 200 << 20, Processes: 16, OpenFiles: 64,
		}
	}
	m.opts.Services = map[string]sandbox.Service{"eval": service(evaluator), "flood": service("while True: print('x' * 65536)")}
	return m
}

// conversation is a service that is asked.
type conversation struct {
	io.ReadWriteCloser

	answers *bufio.Reader
}

func serve(t *testing.T, c *remote.Client, name string) conversation {
	t.Helper()
	s, err := c.Serve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return conversation{s, bufio.NewReader(s)}
}

func (c conversation) wants(t *testing.T, expression, want string) {
	t.Helper()
	_, err := io.WriteString(c, expression+"\n")
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	line, err := c.answers.ReadString('\n')
	if got := strings.TrimSpace(line); err != nil || got != want {
		t.Errorf("%s is %s, %v; want %s", expression, got, err, want)
	}
}

// services are the folders of the services that run on the machine.
func (m *machine) services() []string {
	found, _ := filepath.Glob(filepath.Join(m.opts.Host.State, "host-*", "service-*"))
	return found
}

// TestService has services on a worker: each sees the wrappers that were published before a write, and nothing is left of it.
func TestService(t *testing.T) {
	m := newServiceMachine(t)
	c := newClient(t, m, sandbox.Pool{})
	one, two := serve(t, c, "eval"), serve(t, c, "eval")
	one.wants(t, `os.path.exists("/servers/test/echo.py"), os.listdir("/work"), os.getuid()`, `[true, ["main.py"], 65534]`)
	two.wants(t, `os.path.exists("/etc/shadow"), sorted(os.environ)`, `[false, ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "TMPDIR"]]`)
	for _, content := range []string{"first", "second", strings.Repeat("long", 1<<18)} {
		tree := sandboxtest.Tree()
		tree["added/x.txt"] = []byte(content)
		if err := c.Publish(tree); err != nil {
			t.Fatal(err)
		}
		one.wants(t, `open("/servers/added/x.txt").read()[:6]`, `"`+content[:min(6, len(content))]+`"`)
	}
	wants(t, c, sandboxtest.Job(sandbox.Python, "6*7"), "42")
	if len(m.services()) != 2 {
		t.Errorf("services of the machine: %q", m.services())
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "the closed one is gone", 20*time.Second, func() bool { return len(m.services()) == 1 })
	two.wants(t, "1+1", "2")
	if _, err := io.WriteString(two, "os._exit(3)\n"); err != nil {
		t.Error(err)
	}
	if line, err := two.answers.ReadString('\n'); err == nil {
		t.Errorf("a service that has ended says %q", line)
	}
	testutil.Eventually(t, "the ended one is gone", 20*time.Second, func() bool { return len(m.services()) == 0 })
}

// TestServiceEnds: a service ends with its connection and with its gateway, also while it writes what is not read.
func TestServiceEnds(t *testing.T) {
	t.Parallel()
	m := newServiceMachine(t)
	c := newClient(t, m, sandbox.Pool{})
	lost, flooding := serve(t, c, "eval"), serve(t, c, "flood")
	lost.wants(t, "1", "1")
	if _, err := flooding.answers.ReadString('\n'); err != nil {
		t.Error(err)
	}
	m.cut()
	if _, err := lost.answers.ReadString('\n'); err == nil {
		t.Error("a service on a lost connection says something")
	}
	testutil.Eventually(t, "a write fails", 10*time.Second, func() bool { _, err := io.WriteString(lost, "1\n"); return err != nil })
	testutil.Eventually(t, "both are gone", 20*time.Second, func() bool { return len(m.services()) == 0 })

	open, flooding := serve(t, c, "eval"), serve(t, c, "flood")
	open.wants(t, "2", "2")
	if _, err := flooding.answers.ReadString('\n'); err != nil {
		t.Error(err)
	}
	if err := flooding.Close(); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "one is left", 20*time.Second, func() bool { return len(m.services()) == 1 })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := open.answers.ReadString('\n'); err == nil {
		t.Error("a service of a closed client says something")
	}
	if _, err := c.Serve(t.Context(), "eval"); err == nil {
		t.Error("a closed client starts a service")
	}
	m.work.Wait()
	testutil.NoProcesses(t, m.opts.Host.State)
}

// TestServiceRefused: a worker starts the services that it has, and a limited number of them.
func TestServiceRefused(t *testing.T) {
	t.Parallel()
	m := newServiceMachine(t)
	c := newClient(t, m, sandbox.Pool{})
	for _, name := range []string{"", "other", "../run", "eval/x", "eval?x=1"} {
		if _, err := c.Serve(t.Context(), name); !errors.Is(err, remote.ErrNoService) || !strings.Contains(err.Error(), "ssh://box") {
			t.Errorf("%q: %v", name, err)
		}
	}
	var all []conversation
	for range 16 {
		all = append(all, serve(t, c, "eval"))
	}
	for _, one := range all {
		one.wants(t, "1", "1")
	}
	if _, err := serve(t, c, "eval").answers.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("one too many: %v", err)
	}
	for _, one := range all {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}
