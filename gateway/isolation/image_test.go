//go:build linux

package isolation_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/isolation"
	"sallyport/internal/testutil"
	"sallyport/sandbox/image/imagetest"
)

// passwd returns a layer with a user.
func passwd(t testing.TB) []byte {
	t.Helper()
	return imagetest.Texts(t, map[string]string{"/etc/passwd": "root:x:0:0::/root:/bin/sh\nmcp:x:1234:77::/app:/bin/sh\n", "/app/a.txt": "of the image", "/data/kept": "x"})
}

// TestImage runs the program of an image as docker run does, confined as other upstreams are, and starts it from its checkpoint.
func TestImage(t *testing.T) {
	registry := imagetest.NewRegistry(t)
	pinned := registry.Push(t, "1.0", imagetest.Config{
		Entrypoint: []string{"server"}, Cmd: []string{"of", "image"}, Env: []string{"GREETING=hello", "OTHER=image", "PATH=/bin:/", "HOME=/root"}, WorkingDir: "/app", User: "mcp",
		Volumes: map[string]struct{}{"/data": {}, "/state": {}, "/proc": {}},
	}, imagetest.Server(t), passwd(t))
	launcher, dir := launcherWith(t, isolation.Options{Checkpoints: t.TempDir()}), t.TempDir()
	isolate := "isolate: {image: " + pinned + "}\n"
	const about = "$GREETING $OTHER $HOME $PATH"
	for _, test := range []struct{ name, settings, want string }{
		{"as described", isolate, "[server of image] /app 1234:77 hello image /home/server /bin:/"},
		{"from its checkpoint", isolate, "[server of image] /app 1234:77 hello image /home/server /bin:/"},
		{"other arguments", isolate + "args: [one, two words]\nenv: {OTHER: mine}", "[server one two words] /app 1234:77 hello mine /home/server /bin:/"},
		{"another program", isolate + "command: /server\ncwd: /", "[/server] / 1234:77 hello image /home/server /bin:/"},
		{"with a mount", "isolate: {image: " + pinned + ", mounts: [{path: " + dir + ", mode: rw}]}", "[server of image] /app 0:0 hello image /home/server /bin:/"},
	} {
		s := open(t, launcher, parse(t, test.settings))
		if got, _ := callTool(t, s, "about", `{"text": "`+about+`"}`); got != test.want {
			t.Errorf("%s: %s, want %s\n%s", test.name, got, test.want, s.State().Stderr)
		}
		if names := len(s.Tools()); names != 4 {
			t.Errorf("%s: %d tools", test.name, names)
		}
		if stderr := s.State().Stderr; strings.Contains(stderr, "banner") == (test.name == "from its checkpoint") {
			t.Errorf("%s: %q", test.name, stderr)
		}
		_ = s.Close()
	}
	s := open(t, launcher, parse(t, isolate))
	for _, test := range []struct{ tool, text, want string }{
		{"read", "/app/a.txt", "of the image"},
		{"read", "/usr/bin/env", "error: open /usr/bin/env: no such file"},
		{"read", filepath.Join(dir, "x"), "error: open"},
		{"read", "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
		{"write", "/app/x", "error: open /app/x: "},
		{"write", "/server", "error: open /server: "},
		{"write", "/data/x", "error: open /data/x: "}, // a volume that is not empty
		{"write", "/state/x", "written"},
		{"write", "/tmp/x", "written"},
		{"write", "/home/server/x", "written"},
		{"dial", "1.1.1.1:443", "error: dial tcp 1.1.1.1:443: connect: network is unreachable"},
		{"dial", "127.0.0.1:" + listen(t), "connection refused"},
		{"dial", "example.com:443", "error: dial tcp: lookup example.com"},
	} {
		if got, _ := callTool(t, s, test.tool, `{"text": "`+test.text+`"}`); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q, want %q", test.tool, test.text, got, test.want)
		}
	}
}

// TestImageNetwork lets the program of an image reach a host by name, and says what it was refused.
func TestImageNetwork(t *testing.T) {
	testutil.TAP(t)
	const at = "127.0.0.83"
	site(t, at+":443")
	pinned := imagetest.NewRegistry(t).Push(t, "1.0", imagetest.Config{Cmd: []string{"/server"}}, imagetest.Server(t))
	launcher := launcherWith(t, isolation.Options{Lookup: zone(map[string]string{"api.test": at})})
	s := open(t, launcher, parse(t, "isolate: {image: "+pinned+", private_hosts: [api.test]}"))
	for name, want := range map[string]string{"api.test": "connected to 198.18.", "other.test": "error: dial tcp: lookup other.test"} {
		if got, _ := callTool(t, s, "dial", `{"text": "`+net.JoinHostPort(name, "443")+`"}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const refused = `sallyport: refused other.test: the host is not allowed; to allow it, add to isolate: hosts: ["other.test"]`
	testutil.Eventually(t, "the refusal is in the log", 30*time.Second, func() bool { return strings.Contains(s.State().Stderr, refused) })
}

// TestImageWithNode checks that programs of an image with Node.js have no checkpoint, which would repeat its random numbers.
func TestImageWithNode(t *testing.T) {
	pinned := imagetest.NewRegistry(t).Push(t, "1.0", imagetest.Config{Cmd: []string{"/server"}, Env: []string{"PATH=/bin"}}, imagetest.Server(t), imagetest.Link(t, "/bin/node", "/server"))
	launcher := launcherWith(t, isolation.Options{Checkpoints: t.TempDir()})
	for range 2 {
		s := open(t, launcher, parse(t, "isolate: {image: "+pinned+"}"))
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if stderr := s.State().Stderr; !strings.Contains(stderr, "starts without a checkpoint: its image has Node.js") {
			t.Errorf("%q", stderr)
		}
		_ = s.Close()
	}
}

// TestImageTag checks that a tag means the image of its first use, without a registry too, and that the log says when it has moved.
func TestImageTag(t *testing.T) {
	registry, cache, server := imagetest.NewRegistry(t), t.TempDir(), imagetest.Server(t)
	up := parse(t, "isolate: {image: \""+registry.Repository+":1\"}")
	about := func(launcher *isolation.Launcher, want string) {
		t.Helper()
		s := open(t, launcher, up)
		if got, _ := callTool(t, s, "about", `{"text": ""}`); !strings.HasPrefix(got, "[/server first] / 0:0 ") {
			t.Errorf("%s\n%s", got, s.State().Stderr)
		}
		testutil.Eventually(t, "the log has "+want, 30*time.Second, func() bool { return strings.Contains(s.State().Stderr, want) })
		_ = s.Close()
	}
	registry.Push(t, "1", imagetest.Config{Cmd: []string{"/server", "first"}}, server)
	about(launcherAt(t, cache, isolation.Options{}), "banner")
	moved := registry.Push(t, "1", imagetest.Config{Cmd: []string{"/server", "second"}}, server)
	_, digest, _ := strings.Cut(moved, "@")
	about(launcherAt(t, cache, isolation.Options{}), "to accept the new one, set isolate: image: "+registry.Repository+":1@"+digest)
	registry.Close()
	about(launcherAt(t, cache, isolation.Options{}), "banner")
}

// TestImageRefused checks what is said of images that cannot run.
func TestImageRefused(t *testing.T) {
	registry, launcher := imagetest.NewRegistry(t), newLauncher(t)
	for name, test := range map[string]struct {
		config imagetest.Config
		more   string
		want   string
	}{
		"no program":      {imagetest.Config{}, "", "names no program"},
		"a user":          {imagetest.Config{Cmd: []string{"/server"}, User: "nobody"}, "", `cannot run: its user \"nobody\" is not in its /etc/passwd`},
		"another program": {imagetest.Config{Cmd: []string{"/none"}}, "", "exited with status"},
	} {
		pinned := registry.Push(t, "latest", test.config)
		err := open(t, launcher, parse(t, "isolate: {image: "+pinned+"}\n"+test.more)).Connect(t.Context())
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(test.want, `\"`, `"`)) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	err := open(t, launcher, parse(t, "isolate: {image: \""+registry.Repository+":none\"}")).Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "pin image") {
		t.Errorf("a missing tag: %v", err)
	}
}
