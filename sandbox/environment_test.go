//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox/runsc"
)

// inside runs an interpreter of a root file system in runsc, without a guest, and returns what it printed.
func inside(t *testing.T, h *Host, r *rootfs, kind Interpreter, args ...string) string {
	t.Helper()
	program, err := r.program(kind)
	must(t, err)
	id := "t" + strings.ToLower(strings.Map(letters, t.Name()))
	id = id[:min(len(id), 30)]
	dir := filepath.Join(h.dir, id)
	must(t, os.Mkdir(dir, 0o700))
	defer os.RemoveAll(dir)
	size := "size=1048576"
	spec, err := json.Marshal(specs.Spec{
		Version: specs.Version, Root: &specs.Root{Path: r.dir, Readonly: true},
		Process: &specs.Process{Args: append([]string{program}, args...), Cwd: "/workspace", Env: []string{"PATH=" + r.path},
			User: specs.User{UID: nobody, GID: nobody}, Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: true},
		Mounts: slices.Concat([]specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"}, {Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{size, "mode=1777"}},
			{Destination: "/workspace", Type: "tmpfs", Source: "tmpfs", Options: []string{size, "mode=0777"}}, bind(guestDir, filepath.Join(h.dir, "guest")),
		}, r.mounts),
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}}},
	})
	must(t, err, os.WriteFile(filepath.Join(dir, "config.json"), spec, 0o600))
	read, write, err := os.Pipe()
	must(t, err)
	process, err := h.runsc.Start(id, dir, runsc.Stdio{Stdout: write, Stderr: write})
	write.Close()
	must(t, err)
	out, _ := io.ReadAll(io.LimitReader(read, 1<<20))
	read.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	must(t, process.Destroy(ctx))
	return strings.TrimSpace(string(out))
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

func testHost(t *testing.T) *Host {
	t.Helper()
	h, err := New(Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t), Logger: testutil.Logger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

// TestSetuidGivesNothing: a setuid program of the host's /usr, of another user's root file system, runs as who started it.
func TestMasks(t *testing.T) {
	h := testHost(t)
	h.opts.Masked = []string{"/usr/share/doc", "/usr/bin/perl", "/usr/share/gone", "/etc", "/usr/local/etc"}
	r, err := h.root(filepath.Join(h.dir, "env"), Environment{Masked: []string{"/usr/share/zoneinfo", "/bin/env"}})
	must(t, err)
	start := time.Now()
	got := inside(t, h, r, Python, "-I", "-S", "-c", `
import os
print([os.listdir(p) for p in ("/usr/share/doc", "/usr/share/zoneinfo")], [open(p).read() for p in ("/usr/bin/perl", "/usr/bin/env")], oct(os.stat("/usr/bin/su").st_mode), len(os.listdir("/usr/share")) > 5)
try: open("/usr/share/doc/x", "w")
except OSError as e: print(e.errno)
print(os.path.exists("/usr/local"), sorted(os.listdir("/etc")))`)
	t.Log(time.Since(start), "\n", got)
}

var _ = errors.Join
var _ fs.FS
var _ bytes.Buffer
