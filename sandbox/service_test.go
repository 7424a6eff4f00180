//go:build linux

package sandbox_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// evaluator answers each line, an expression of Python's, with its value as JSON.
const evaluator = `import json, os, socket, sys
for line in sys.stdin:
    try: value = eval(line)
    except OSError: value = "OSError"
    except BaseException as err: value = repr(err)
    print(json.dumps(value), flush=True)
`

func service(t *testing.T, id string) sandbox.Service {
	t.Helper()
	dir := testutil.ShortDir(t)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "tool"), []byte("of the host"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return sandbox.Service{
		ID: id, Interpreter: sandbox.Python, Args: []string{"-I", "-S", "/work/main.py", "argument"}, Dir: "/work",
		Files:  map[string][]byte{"main.py": []byte(evaluator), "sub/data": []byte("1")},
		Mounts: map[string]string{"/opt/tool": dir}, Memory: 200 << 20, Processes: 16, OpenFiles: 64,
	}
}

// ask writes a line and reads the answer.
func ask(t *testing.T, s *sandbox.Server, answers *bufio.Reader, expression string) string {
	t.Helper()
	if _, err := io.WriteString(s, expression+"\n"); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	line, err := answers.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return strings.TrimSpace(line)
}

// TestService speaks with one: what it sees and what it does not.
func TestService(t *testing.T) {
	host, state := newColdHost(t)
	s, err := host.Serve(service(t, "check"))
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(s)
	for _, test := range []struct{ expression, want string }{
		{`sys.argv[1], os.getcwd(), os.getuid(), sorted(os.listdir("."))`, `["argument", "/work", 65534, ["main.py", "sub"]]`},
		{`open("sub/data").read(), open("/opt/tool/tool").read()`, `["1", "of the host"]`},
		{`sorted(k for k in os.environ if "SALLYPORT" in k or "CANARY" in k), os.environ["HOME"]`, `[[], "/tmp"]`},
		{`open("/work/new", "w")`, `"OSError"`},
		{`open("/opt/tool/new", "w")`, `"OSError"`},
		{`open("/servers/new", "w")`, `"OSError"`},
		{`os.path.exists("/run/sallyport") and os.listdir("/run/sallyport")`, `[]`},
		{fmt.Sprintf(`os.path.exists(%q), os.path.exists("/root") or os.path.exists("/home")`, state), `[false, false]`},
		{`[name for _, name in socket.if_nameindex() if name != "lo"]`, `[]`},
		{`socket.create_connection(("1.1.1.1", 53), 1)`, `"OSError"`},
		{`open("/etc/hosts").read()`, `"127.0.0.1 localhost\n"`},
		{`os.path.exists("/servers/test/echo.py"), os.path.exists("/opt/sallyport/sallyport/__init__.py")`, `[true, true]`},
	} {
		if got := ask(t, s, answers, test.expression); got != test.want {
			t.Errorf("%s is %s, want %s", test.expression, got, test.want)
		}
	}
	// What is published while it runs it sees, unlike a program.
	tree := sandboxtest.Tree()
	tree["test/echo.py"], tree["added/x.py"] = []byte("changed"), []byte("new")
	if err := host.Publish(tree); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, answers, `open("/servers/test/echo.py").read(), open("/servers/added/x.py").read()`); got != `["changed", "new"]` {
		t.Errorf("after Publish it sees %s", got)
	}
	// Programs run beside it.
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "6 * 7"), sandboxtest.Echo{})
	if err != nil || outcome.Value == nil || outcome.Value.Text != "42" {
		t.Errorf("a program beside a service: %+v, %v", outcome, err)
	}
	if _, err := host.Serve(service(t, "check")); err == nil {
		t.Error("two services with one id were started")
	}
	if got := ask(t, s, answers, `1`); got != "1" {
		t.Errorf("after that it says %s", got)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := s.Write([]byte("1\n")); err == nil {
		t.Error("a closed service was written to")
	}
	if left, _ := filepath.Glob(filepath.Join(state, "host-*", "check")); len(left) > 0 {
		t.Errorf("left of a closed service: %v", left)
	}
}

// TestServiceEnds: each kind of end is seen by who reads, and leaves nothing while the host is open.
func TestServiceEnds(t *testing.T) {
	host, state := newColdHost(t)
	for name, end := range map[string]func(t *testing.T, s *sandbox.Server, answers *bufio.Reader){
		"exit": func(_ *testing.T, s *sandbox.Server, _ *bufio.Reader) { _, _ = io.WriteString(s, "os._exit(3)\n") },
		"memory": func(_ *testing.T, s *sandbox.Server, _ *bufio.Reader) {
			_, _ = io.WriteString(s, "len([bytearray(1 << 20) for _ in range(4000)])\n")
		},
		"killed": func(t *testing.T, _ *sandbox.Server, _ *bufio.Reader) {
			t.Helper()
			_ = syscall.Kill(sentry(t, state, "ends"), syscall.SIGKILL)
		},
		"closed": func(_ *testing.T, s *sandbox.Server, _ *bufio.Reader) { _ = s.Close() },
	} {
		s, err := host.Serve(service(t, "ends"))
		if err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(s)
		ask(t, s, answers, "1")
		end(t, s, answers)
		if _, err := answers.ReadString('\n'); err == nil {
			t.Errorf("%s: something was read after the end", name)
		}
		select {
		case <-s.Done():
		case <-time.After(time.Minute):
			t.Fatalf("%s: it does not end", name)
		}
		if left := append(testutil.Processes(filepath.Join(state, "host-")), cgroups(hostNames(t, state))...); len(left) > 0 {
			t.Errorf("%s: left while the host is open: %v", name, left)
		}
	}
}

// TestServiceOfClosedHost: closing the host ends its services, and none starts afterwards.
func TestServiceOfClosedHost(t *testing.T) {
	host, _ := newColdHost(t)
	s, err := host.Serve(service(t, "last"))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-s.Done():
	default:
		t.Error("the host is closed, and its service is not")
	}
	if _, err := host.Serve(service(t, "next")); err == nil {
		t.Error("a closed host started a service")
	}
}

func TestServiceRefused(t *testing.T) {
	host, _ := newColdHost(t)
	odd := service(t, "../x")
	if _, err := host.Serve(odd); err == nil {
		t.Error("a service with an odd id was started")
	}
	gone := service(t, "gone")
	gone.Mounts = map[string]string{"/opt/tool": "/nonexistent"}
	if _, err := host.Serve(gone); err == nil || !strings.Contains(err.Error(), "/opt/tool") {
		t.Errorf("a mount of nothing: %v", err)
	}
	gone = service(t, "gone")
	gone.Args = []string{"/nonexistent"}
	s, err := host.Serve(gone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("a service that cannot start says something")
	}
	<-s.Done()
	bad := service(t, "bad")
	bad.Files["../x"] = nil
	if _, err := host.Serve(bad); err == nil {
		t.Error("a file outside of the folder was written")
	}
	bad = service(t, "bad")
	if s, err = host.Serve(bad); err != nil {
		t.Fatalf("the id of one that did not start is taken: %v", err)
	}
	var one int
	if err := json.Unmarshal([]byte(ask(t, s, bufio.NewReader(s), "1")), &one); err != nil || one != 1 {
		t.Errorf("%d, %v", one, err)
	}
}
