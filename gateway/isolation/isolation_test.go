//go:build linux

package isolation_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/isolation"
	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestRealServers checks that the npm servers of the test set offer the same tools with and without a sandbox, and from a checkpoint.
func TestRealServers(t *testing.T) {
	launcher, modules := launcherWith(t, isolation.Options{Checkpoints: t.TempDir()}), testutil.Upstreams(t)
	for _, server := range servers(t, modules) {
		t.Run(server.name, func(t *testing.T) {
			bare := start(t, launcher, server.settings(modules, "")).Tools()
			_ = start(t, launcher, server.settings(modules, fromCheckpoint)).Close() // makes the checkpoint
			for _, isolate := range []string{"checkpoint: false", fromCheckpoint} {
				isolated := start(t, launcher, server.settings(modules, isolate))
				if diff := cmp.Diff(bare, isolated.Tools()); diff != "" || len(bare) == 0 {
					t.Errorf("%s: %s", isolate, diff)
				}
				if server.name == "filesystem" {
					writesToItsMount(t, isolated, server.dir)
				}
			}
		})
	}
}

func writesToItsMount(t *testing.T, s *upstream.Session, dir string) {
	t.Helper()
	path := filepath.Join(dir, "a.txt")
	_ = os.Remove(path)
	if _, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "it", Name: "write_file"}, Args: []byte(`{"path": "` + path + `", "content": "from inside"}`)}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "from inside" {
		t.Errorf("the mounted folder has %q, %v", data, err)
	}
}

// TestConfined has a hostile server look for what is not its own.
func TestConfined(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("S3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEWAY_TOKEN", "S3cret")
	up := parse(t, hostile(t, "  home: keep\n  limits: {memory: 256MiB, processes: 16}\nenv: {GIVEN: yes it is}"))
	s := open(t, newLauncher(t), up)
	for _, test := range []struct{ name, code, want string }{
		{"a file of the host", "answer = open('" + secret + "').read()", "FileNotFoundError"},
		{"the settings", "answer = open('" + filepath.Join(up.Dir, "upstreams.yaml") + "').read()", "FileNotFoundError"},
		{"the passwords", "answer = open('/etc/shadow').read()", "FileNotFoundError"},
		{"folders at the root", "import os; answer = [n for n in os.listdir('/') if n in ('root', 'boot', 'var', 'srv')]", "[]"},
		{"wrappers of other upstreams", "import os; answer = os.listdir('/servers') + os.listdir('/opt/sallyport')", "[]"},
		{"the environment", "import os; answer = ' '.join(sorted(os.environ))", "GIVEN HOME LANG MALLOC_ARENA_MAX PATH TMPDIR"},
		{"a variable of the settings", "import os; answer = os.environ['GIVEN']", "yes it is"},
		{"its own code", "open(__import__('sys').argv[0], 'a')", "Error: [Errno "},
		{"the runtime", "open('/usr/bin/python3', 'a')", "Error: [Errno "},
		{"the root", "import os; os.mkdir('/new')", "OSError: [Errno 30]"},
		{"its home", "import os; p = os.path.expanduser('~/note'); open(p, 'w').write('kept'); answer = os.getcwd() + ' ' + open(p).read()", "/home/server kept"},
		{"processes of the host", "import os; answer = ' '.join(sorted(n for n in os.listdir('/proc') if n.isdigit()))", "1"},
		{"rights", "answer = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapBnd'))]", "[0000000000000000 0000000000000000]"},
		{"a mount", "import ctypes; answer = ctypes.CDLL(None, use_errno=True).mount(b'x', b'/tmp', b'tmpfs', 0, b'')", "-1"},
		{"a device", "import os; os.mknod('/tmp/sda', 0o60600, os.makedev(8, 0))", "PermissionError"},
		{"loopback of the host", "import socket; socket.create_connection(('127.0.0.1', " + listen(t) + "), 3)", "ConnectionRefusedError"},
		{"another host", "import socket; socket.create_connection(('1.1.1.1', 443), 3)", "OSError: [Errno 101]"},
		{"a name", "import socket; socket.getaddrinfo('example.com', 443)", "gaierror"},
		{"interfaces", "import socket; answer = ' '.join(n for _, n in socket.if_nameindex())", "lo"},
		{"a raw socket", "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 6)", "PermissionError"},
		{"sockets of the host", "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/sallyport/service.sock')", "FileNotFoundError"},
		{"many processes", "import os, time\nn = 0\ntry:\n  for n in range(100):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\nexcept OSError: answer = n < 16\nelse: answer = n", "true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := text(run(t, s, test.code))
			if !strings.Contains(got, test.want) {
				t.Errorf("%s: %q, want %q", test.code, got, test.want)
			}
		})
	}
	if stderr := s.State().Stderr; !strings.Contains(stderr, "arguments: ['one']") {
		t.Errorf("stderr: %q", stderr)
	}
	_, err := s.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "it", Name: "run"}, Args: []byte(`{"code": "answer = len(bytearray(900_000_000))"}`)})
	if err == nil || !strings.Contains(err.Error(), "it used more memory than isolate.limits.memory, 256MiB") {
		t.Errorf("much memory: %v", err)
	}
	testutil.Eventually(t, "it starts again", time.Minute, func() bool { return s.Connect(t.Context()) == nil })
	if got := run(t, s, "import os; answer = open(os.path.expanduser('~/note')).read()"); got != "kept" {
		t.Errorf("the home that is kept has %v", got)
	}
}

// TestBinary checks that a program of this machine is all that its sandbox has of its folder.
func TestBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, newLauncher(t), parse(t, "command: "+self+"\nenv: {UPSTREAMTEST_MODE: good}\nisolate: true"))
	if err := s.Connect(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, s.State().Stderr)
	}
	if len(s.Tools()) == 0 {
		t.Error("no tools")
	}
}

// TestRefused checks that what cannot be isolated is not started, and what the error says.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "serve.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+dir+"/ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	launcher := newLauncher(t)
	for name, test := range map[string]struct{ settings, want string }{
		"a script":         {"command: " + script + "\nisolate: true", "its command " + script + " is not in the sandbox; add to isolate: mounts: [{path: " + dir + "}]"},
		"a script of node": {"command: node\nargs: [" + dir + "/x.js]\nisolate: true", "the script " + dir + "/x.js is not in the sandbox"},
		"docker":           {"command: docker\nargs: [run, x]\nisolate: true", "isolate cannot run docker"},
		"nothing":          {"command: no-such-program\nisolate: true", "no-such-program"},
		"an option":        {"command: npx\nargs: [--registry, x, y]\nisolate: true", "isolate does not know the option \"--registry\" of npx"},
		"no package":       {"command: uvx\nisolate: true", "uvx has no package in its arguments"},
		"a path":           {"command: npx\nargs: [-y, ./server]\nisolate: true", "refused"},
		"a mount":          {"command: python3\nargs: [-c, pass]\nisolate: {mounts: [{path: " + dir + "/none}]}", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := open(t, launcher, parse(t, test.settings)).Connect(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the script ran")
	}
	s := upstream.New(parse(t, "command: "+script+"\nisolate: true"), nil)
	if err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "starts no sandboxes") {
		t.Errorf("without sandboxes: %v", err)
	}
	_ = s.Close()
}

// text returns a value of a server as text.
func text(value any) string { return strings.Trim(fmt.Sprint(value), `"`) }

// listen returns a port of this machine that accepts connections.
func listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
