//go:build linux

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/image"
	"sallyport/sandbox/image/imagetest"
	"sallyport/sandbox/runsc"
)

// inside runs a program in a root file system: real runsc, the real guest, the real bridge. It returns the program's value.
func inside(t *testing.T, h *Host, r *rootfs, kind Interpreter, code string) string {
	t.Helper()
	program, err := r.program(kind)
	must(t, err)
	dir := testutil.ShortDir(t)
	sockets := filepath.Join(dir, "bridge")
	must(t, os.Mkdir(sockets, 0o755), os.Chmod(sockets, 0o755))
	b, err := bridge.Listen(filepath.Join(sockets, "bridge.sock"), bridge.Options{Logger: h.log})
	must(t, err)
	defer b.Close()
	args := map[Interpreter][]string{Python: {program, "-I", "-S", "-B", guestDir + "/guest.py"}, Node: {program, "--no-warnings", guestDir + "/guest.mjs"}}[kind]
	spec, err := json.Marshal(specs.Spec{
		Version: specs.Version, Root: &specs.Root{Path: r.dir, Readonly: true},
		Process: &specs.Process{Args: args, Cwd: "/workspace", Env: []string{"PATH=" + r.path, "HOME=/workspace", "LANG=C.UTF-8"},
			User: specs.User{UID: nobodyID, GID: nobodyID}, Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: true},
		Mounts: slices.Concat([]specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"}, {Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"size=1048576", "mode=1777"}},
			{Destination: "/workspace", Type: "tmpfs", Source: "tmpfs", Options: []string{"size=1048576", "mode=0777"}},
			bind(guestDir, filepath.Join(h.dir, "guest")), bind(serversDir, h.servers()), bind(bridgeDir, sockets),
		}, r.mounts),
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}}},
	})
	must(t, err, os.WriteFile(filepath.Join(dir, "config.json"), spec, 0o600))
	read, write, err := os.Pipe()
	must(t, err)
	process, err := h.runsc.Start("test-"+filepath.Base(dir), dir, runsc.Stdio{Stdout: write, Stderr: write})
	write.Close()
	must(t, err)
	printed := make(chan string, 1)
	go func() {
		out, _ := io.ReadAll(io.LimitReader(read, 1<<20))
		printed <- string(out)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, func() { b.Close() })()
	connecting, stop := context.WithCancel(ctx)
	go func() { // a guest that ends connects no more; what it has sent before is read
		<-process.Done()
		stop()
	}()
	report, err := bridge.Report{}, b.Wait(connecting)
	if err == nil {
		report, err = b.Run(ctx, bridge.Program{Code: code, ValueLimit: 4096}, bridge.Account{Execution: "test", Limits: bridge.Limits{Calls: 1, Concurrency: 1, Traffic: 1 << 20}}, func() {})
	}
	must(t, process.Destroy())
	out := <-printed
	read.Close()
	if err != nil || report.Result.Value == nil {
		t.Fatalf("%v, %+v, printed %s", err, report.Result.Fault, out)
	}
	return report.Result.Value.Text
}

func testHost(t *testing.T) *Host {
	t.Helper()
	h, err := New(Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t), Logger: testutil.Logger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

func TestMasks(t *testing.T) {
	h := testHost(t)
	h.opts.Masked = []string{"/usr/share/doc", "/usr/bin/perl", "/usr/share/gone", "/etc", "/usr/local/etc", "/usr/share/doc/"}
	r, err := h.root(filepath.Join(h.dir, "env"), Environment{Masked: []string{"/usr/share/zoneinfo", "/bin/env"}})
	must(t, err)
	got := inside(t, h, r, Python, `
import os
def write(p):
    try: open(p, "w").close(); return "written"
    except OSError as e: return "refused"
[os.listdir(p) for p in ("/usr/share/doc", "/usr/share/zoneinfo")], [os.path.getsize(p) for p in ("/usr/bin/env",)], len(os.listdir("/usr/share")) > 5, os.path.exists("/usr/local"), sorted(os.listdir("/etc")), [write(p) for p in ("/usr/share/doc/x", "/usr/bin/env")]`)
	if want := `[[[],[]],[0],true,false,["gitconfig","group","hosts","nsswitch.conf","passwd"],["refused","refused"]]`; got != want {
		t.Errorf("inside: %s", got)
	}
	for i, masked := range []string{"relative", "/", "/usr", "/usr/bin", "/usr/bin/python3"} {
		if _, err := h.root(filepath.Join(h.dir, "bad"+string(rune('a'+i))), Environment{Masked: []string{masked}}); err == nil {
			t.Errorf("%s can be masked", masked)
		}
	}
}

// TestSetuidGivesNothing: programs of the host whose bit says that they run as root run as who starts them.
func TestSetuidGivesNothing(t *testing.T) {
	h := testHost(t)
	dir := testutil.ShortDir(t)
	must(t, os.Chmod(dir, 0o755))
	copyFile(t, testutil.Program(t, "id"), filepath.Join(dir, "id"))
	must(t, os.Chmod(filepath.Join(dir, "id"), os.ModeSetuid|os.ModeSetgid|0o755))
	r, err := h.root(filepath.Join(h.dir, "env"), Environment{Layers: map[string]string{"/opt/tools": dir}})
	must(t, err)
	got := inside(t, h, r, Python, `
import os, subprocess
[subprocess.run(["/opt/tools/id", flag], capture_output=True, text=True).stdout.strip() for flag in ("-u", "-g", "-ru", "-rg")]`)
	if want := `["65534","65534","65534","65534"]`; got != want {
		t.Errorf("inside: %s", got)
	}
}

// TestImage runs the guest on a Python that came as an OCI image, through a registry.
func TestImage(t *testing.T) {
	h := testHost(t)
	start := time.Now()
	reference := imagetest.Push(t, imagetest.Python(t), imagetest.Layer(t, "/etc/passwd"))
	made := time.Since(start)
	root, err := image.Pull(t.Context(), reference, image.Options{Dir: filepath.Join(testutil.ShortDir(t), "images"), MountPoints: MountPoints(), Logger: testutil.Logger(t)})
	must(t, err)
	t.Logf("made in %v, pulled in %v", made, time.Since(start)-made)
	must(t, os.Chmod(filepath.Dir(filepath.Dir(filepath.Dir(root.Dir))), 0o755))
	r, err := h.root(filepath.Join(h.dir, "env"), Environment{Root: root.Dir, Masked: []string{"/etc/passwd"}})
	must(t, err)
	if r.dir != root.Dir {
		t.Errorf("it is not used as it is: %s", r.dir)
	}
	got := inside(t, h, r, Python, `
import os, sys, json, ssl, hashlib
sorted(os.listdir("/")), sys.executable, os.path.getsize("/etc/passwd"), os.path.exists("/usr/share"), os.getuid()`)
	if !strings.HasSuffix(got, `,"/usr/bin/python3",0,false,65534]`) || strings.Contains(got, "root") {
		t.Errorf("inside: %s", got)
	}
	if _, err := r.program(Node); !errors.Is(err, ErrNoInterpreter) || !strings.Contains(err.Error(), "no node or nodejs in /usr/local/bin, /usr/bin, /bin") {
		t.Errorf("it has no node: %v", err)
	}
}

// TestGivenRoot runs the guest on a node in a directory that was made for something else and has no places for us.
func TestGivenRoot(t *testing.T) {
	h, dir := testHost(t), testutil.ShortDir(t)
	node, err := filepath.EvalSymlinks(testutil.Program(t, "node"))
	must(t, err, os.Chmod(dir, 0o755))
	copyFile(t, node, filepath.Join(dir, "usr/local/bin/node"))
	for _, library := range imagetest.Libraries(t, node) {
		copyFile(t, library, filepath.Join(dir, library))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "opt/own"), 0o755), os.WriteFile(filepath.Join(dir, "opt/own/x"), []byte("theirs"), 0o644), os.WriteFile(filepath.Join(dir, "top"), []byte("top"), 0o644),
		os.Symlink("opt/own", filepath.Join(dir, "link")), os.Symlink("/var/tmp", filepath.Join(dir, "tmp")), os.Symlink("/etc", filepath.Join(dir, "out")))
	before, err := DigestRoot(t.Context(), dir)
	must(t, err)
	r, err := h.root(filepath.Join(h.dir, "env"), Environment{Root: dir, Layers: map[string]string{"/opt/packages": filepath.Join(dir, "opt")}})
	must(t, err)
	got := inside(t, h, r, Node, `
import fs from "node:fs";
const refused = (p) => { try { fs.writeFileSync(p, "x"); return false } catch { return true } };
export default [fs.readFileSync("/link/x", "utf8"), fs.readFileSync("/top", "utf8"), fs.readdirSync("/opt").sort(), fs.readdirSync("/opt/packages"), fs.existsSync("/out"),
  ["/x", "/opt/own/x", "/opt/packages/x", "/usr/x"].map(refused), refused("/tmp/x"), process.execPath];`)
	if want := `["theirs","top",["own","packages","sallyport"],["own"],false,[true,true,true,true],false,"/usr/local/bin/node"]`; got != want {
		t.Errorf("inside: %s", got)
	}
	after, err := DigestRoot(t.Context(), dir)
	must(t, err)
	if before != after {
		t.Error("the directory was changed")
	}
	if _, err := r.program(Python); !errors.Is(err, ErrNoInterpreter) {
		t.Errorf("it has no python: %v", err)
	}
}

// copyFile copies a file, or makes it another name of it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	must(t, err, os.MkdirAll(filepath.Dir(to), 0o755))
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err, out.Chmod(0o755), out.Close())
}

func TestCheckRoot(t *testing.T) {
	dir := testutil.ShortDir(t)
	must(t, os.MkdirAll(dir+"/root/state", 0o755), os.WriteFile(dir+"/file", nil, 0o644), os.Symlink("/", dir+"/slash"), os.Symlink("root", dir+"/link"))
	for root, want := range map[string]string{
		dir + "/root": "", "root": "absolute", "": "absolute", "/": "own root", dir + "/slash": "own root", dir + "/gone": "no such file",
		dir + "/file": "not a directory", dir: "own files", "/proc/..": "own root",
	} {
		err := CheckRoot(root, dir+"/elsewhere", "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", root, err)
		}
	}
	for _, root := range []string{dir, dir + "/root", dir + "/link", dir + "/root/state"} {
		if err := CheckRoot(root, dir+"/root/state"); err == nil || !strings.Contains(err.Error(), "own files") {
			t.Errorf("%s: %v", root, err)
		}
	}
}

func TestDigestRoot(t *testing.T) {
	dir := testutil.ShortDir(t)
	digest := func() string {
		t.Helper()
		d, err := DigestRoot(t.Context(), dir)
		must(t, err)
		return d
	}
	seen := map[string]bool{digest(): true}
	for i, change := range []func() error{
		func() error { return os.WriteFile(dir+"/a", []byte("1"), 0o644) },
		func() error { return os.WriteFile(dir+"/a", []byte("12"), 0o644) },
		func() error { return os.Chtimes(dir+"/a", time.Unix(1, 0), time.Unix(1, 0)) },
		func() error { return os.Chmod(dir+"/a", 0o755) },
		func() error { return os.Symlink("a", dir+"/l") },
		func() error { return os.Rename(dir+"/a", dir+"/b") },
		func() error { return os.Mkdir(dir+"/d", 0o755) },
	} {
		must(t, change())
		if d := digest(); seen[d] || d != digest() {
			t.Errorf("change %d is not seen", i)
		} else {
			seen[d] = true
		}
	}
}

func TestRootRefuses(t *testing.T) {
	h := &Host{dir: testutil.ShortDir(t)}
	empty, fake := testutil.ShortDir(t), testutil.ShortDir(t)
	must(t, os.MkdirAll(fake+"/bin", 0o755), os.WriteFile(fake+"/bin/python3", []byte("#!/bin/sh\n"), 0o755), os.Symlink("/usr/bin/node", fake+"/bin/node"), os.Symlink("/etc", fake+"/etc"))
	foreign := testutil.ShortDir(t)
	elf, err := os.ReadFile(testutil.Program(t, "true"))
	must(t, err)
	elf[18], elf[19] = 0xf3, 0 // RISC-V
	must(t, os.MkdirAll(foreign+"/bin", 0o755), os.WriteFile(foreign+"/bin/node", elf, 0o755))
	for i, test := range []struct {
		env  Environment
		want string
	}{
		{Environment{Root: empty}, "no python3 or python in"},
		{Environment{Root: fake}, "is a script that starts an interpreter"},
		{Environment{Root: fake, Node: "/bin/node"}, "no such file"},
		{Environment{Root: fake, Node: "bin/node"}, "not an absolute path"},
		{Environment{Root: foreign}, "it is for EM_RISCV"},
		{Environment{Root: h.dir}, "own files"},
		{Environment{Layers: map[string]string{"/opt": empty}}, "/opt/sallyport is there"},
		{Environment{Layers: map[string]string{"/workspace/x": empty}}, "/workspace is there"},
		{Environment{Layers: map[string]string{"/opt/a": empty, "/opt/a/b": empty}}, "within the one at /opt/a"},
		{Environment{Layers: map[string]string{"/opt/../etc": empty}}, "absolute"},
		{Environment{Layers: map[string]string{"/opt/x": empty + "/gone"}}, "not a readable folder"},
		{Environment{Root: "relative"}, "absolute"},
	} {
		if _, err := h.root(filepath.Join(h.dir, string(rune('a'+i))), test.env); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.env, err)
		}
	}
	if !reflect.DeepEqual(MountPoints()[:3], []string{"/proc", "/dev", "/tmp"}) {
		t.Error(MountPoints())
	}
}
