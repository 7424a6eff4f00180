//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestInterpreterFromElsewhere runs programs on a node that is not in /usr, as
// nvm or a tarball puts it, and on a python that is a link from there.
func TestInterpreterFromElsewhere(t *testing.T) {
	dir := testutil.ShortDir(t)
	real, err := filepath.EvalSymlinks(testutil.Program(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "--reflink=auto", real, filepath.Join(dir, "node")).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v: %s", err, out)
	}
	if err := os.Symlink("/usr/bin/python3", filepath.Join(dir, "python3")); err != nil {
		t.Fatal(err)
	}
	host, _ := hostWith(t, sandbox.Options{Python: filepath.Join(dir, "python3"), Node: filepath.Join(dir, "node")})
	for _, test := range []struct {
		interpreter sandbox.Interpreter
		code, want  string
	}{
		{sandbox.Node, "export default [process.execPath, 6 * 7]", `["/opt/interpreter/node",42]`},
		{sandbox.Python, "import os; sorted(os.listdir('/opt/interpreter')), os.path.dirname(os.readlink('/proc/self/exe'))", `[["node"],"/usr/bin"]`},
	} {
		outcome, err := host.Run(t.Context(), sandboxtest.Job(test.interpreter, test.code), sandboxtest.Echo{})
		if err != nil || outcome.Value == nil || outcome.Value.Text != test.want {
			t.Errorf("%s: %+v, %v", test.interpreter, outcome, err)
		}
	}
}

// TestUmask: what the gateway makes under a strict umask is for a sandbox's user to read all the same.
func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	host, _ := newColdHost(t)
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "from servers.test import echo\nopen('/workspace/x', 'w').write('1')\necho(2)"), sandboxtest.Echo{})
	if err != nil || outcome.Value == nil || outcome.Value.Text != "2" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestPublishWhileProgramsRun: a program keeps the files that it started with, and one that starts after Publish sees what it published.
func TestPublishWhileProgramsRun(t *testing.T) {
	const files = 60
	host, _ := newHost(t)
	version := func(n int) map[string][]byte {
		tree := sandboxtest.Tree()
		for i := range files {
			tree[fmt.Sprintf("test/f%d.txt", i)] = bytes.Repeat([]byte{'a' + byte(n%26)}, 100<<10)
		}
		return tree
	}
	if err := host.Publish(version(0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ctx.Err() == nil; n++ {
			if err := host.Publish(version(n)); err != nil {
				t.Errorf("publish: %v", err)
			}
		}
	}()
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, fmt.Sprintf(`import time
wrong, seen = [], set()
for i in range(%d):
    data = open(f'/servers/test/f{i}.txt').read()
    seen.add(data[:1])
    if data != data[:1] * (100 << 10): wrong.append((i, len(data), sorted(set(data))))
    time.sleep(0.01)
wrong, len(seen) > 1`, files)), sandboxtest.Echo{})
	cancel()
	<-done
	if err != nil || outcome.Value == nil || outcome.Value.Text != "[[],false]" {
		t.Errorf("%s, value %+v, fault %+v, %v", outcome.Status, outcome.Value, outcome.Fault, err)
	}
	if err := host.Publish(version(25)); err != nil {
		t.Fatal(err)
	}
	outcome, err = host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "open('/servers/test/f0.txt').read(1)"), sandboxtest.Echo{})
	if err != nil || outcome.Value == nil || outcome.Value.Text != `"z"` {
		t.Errorf("the next program: %+v, %v", outcome, err)
	}
}

func TestHostRefuses(t *testing.T) {
	host, _ := newHost(t)
	for _, id := range []string{"", "A", "../x", "a/b", "a b", "é", strings.Repeat("x", 41)} {
		job := sandboxtest.Job(sandbox.Python, "1")
		job.ID = id
		if _, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err == nil {
			t.Errorf("a program with the id %q was run", id)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome, err := host.Run(ctx, sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.Canceled {
		t.Errorf("a program of somebody who has gone: %+v, %v", outcome, err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if err := host.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
