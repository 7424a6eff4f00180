//go:build linux

package remote_test

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
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// TestWithSandboxes runs real programs on one machine that is reached through memory.
func TestWithSandboxes(t *testing.T) {
	m := newMachine(t)
	m.opts.Host.Snapshots = t.TempDir()
	c := newClient(t, m, sandbox.Pool{Min: 2, Max: 3})
	p := pair{m, c}
	t.Run("conformance", p.conforms)
	t.Run("printed", func(t *testing.T) { sandboxtest.LiveOutput(t, c) })
	t.Run("workspace", p.keepsFiles)
	t.Run("session", p.keepsSessions)
	t.Run("publish", p.publishes)
	t.Run("cancel", p.cancels)
	t.Run("refused", p.refuses)
	t.Run("waiting", func(t *testing.T) {
		testutil.Eventually(t, "a sandbox waits", 20*time.Second, func() bool { n, _ := c.Waiting(sandbox.Python); return n > 0 })
	})
	t.Run("break", p.breaks)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	m.work.Wait()
	if left, _ := filepath.Glob(filepath.Join(m.opts.Host.State, "*")); len(left) > 0 {
		t.Errorf("the worker left %q", left)
	}
	if left, _ := os.ReadDir(m.opts.Spool); len(left) > 0 {
		t.Errorf("the worker left %v among its files", left)
	}
}

// pair is a machine and its client, which tests share.
type pair struct {
	machine *machine
	client  *remote.Client
}

// conforms runs what depends on the way between a program and its gateway: what a sandbox does is
// tested with the host itself.
func (p pair) conforms(t *testing.T) {
	c := p.client
	sandboxtest.RunNamed(t, c,
		"things of every kind are emitted", "lone surrogates", "arguments that JSON has no type for", "a tool's error has the line of its call in node",
		"a tool's hint is in the fault", "results that are hard to read hurt no other call", "a megabyte both ways in node",
		"progress is heard where it was asked for", "C11 no more calls than allowed", "a call that never ends is cancelled with its program",
		"A14 killing itself", "what was printed before the limit is kept", "endless loop in python",
		"the clock stands still while a person is waited for, and goes on after it")
}

func run(t *testing.T, c *remote.Client, job sandbox.Job) sandbox.Outcome {
	t.Helper()
	o, err := c.Run(t.Context(), job, sandboxtest.Echo{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wants runs a program whose value must be this.
func wants(t *testing.T, c *remote.Client, job sandbox.Job, want string) sandbox.Outcome {
	t.Helper()
	o := run(t, c, job)
	if o.Value == nil || o.Value.Text != want {
		t.Errorf("%+v, value %v, fault %v; want %s", o, o.Value, o.Fault, want)
	}
	return o
}

func (p pair) keepsFiles(t *testing.T) {
	c := p.client
	ws, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	job := func(code string) sandbox.Job {
		job := sandboxtest.Job(sandbox.Python, code)
		job.Workspace = ws
		return job
	}
	wants(t, c, job("import os\nos.mkdir('d')\nopen('d/a', 'w').write('x' * 3_000_000)\nopen('b.sh', 'w').write('b')\nos.chmod('b.sh', 0o755)\nopen('empty', 'w').close()\n1"), "1")
	wants(t, c, job("import os\nos.remove('empty')\nopen('c', 'wb').write(bytes(range(256)))\nlen(open('d/a').read()), os.access('b.sh', os.X_OK)"), "[3000000,true]")
	o := wants(t, c, job("print('y' * 100_000)\nlen(open('c', 'rb').read())"), "256")
	stopped := job("import time\nopen('late', 'w').write('saved')\ntime.sleep(60)")
	stopped.Limits.Timeout = time.Second
	if o := run(t, c, stopped); o.Status != sandbox.TimedOut {
		t.Errorf("%+v", o)
	}
	files, err := ws.List()
	var paths []string
	for _, f := range files {
		if !f.Folder {
			paths = append(paths, f.Path)
		}
	}
	if want := []string{"b.sh", "c", "d/a", "late"}; err != nil || len(paths) != 5 || !slices.Equal(paths[1:], want) {
		t.Errorf("%q, %v; want output and %q", paths, err, want)
	}
	if !strings.Contains(o.Stdout.Text, "/workspace/"+paths[0]) || o.Stdout.Cut == 0 {
		t.Errorf("output that was cut is not said to be in %s: %.200q", paths[0], o.Stdout.Text[:min(200, len(o.Stdout.Text))])
	}
}

func (p pair) keepsSessions(t *testing.T) {
	c := p.client
	ws, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for i, step := range []struct{ code, want string }{
		{"x = 41\nopen('f', 'w').write('1')\nx", "41"},
		{"x += given\nopen('g', 'w').write(open('f').read())\nx", "42"},
		{"open('g').read() + str(x)", `"142"`},
	} {
		job := sandboxtest.Job(sandbox.Python, step.code)
		job.Session, job.Workspace, job.File = "one", ws, "step.py"
		job.Variables = map[string]json.RawMessage{"given": json.RawMessage("1")}
		if o := wants(t, c, job, step.want); o.Reused != (i > 0) {
			t.Errorf("step %d: reused %v", i, o.Reused)
		}
	}
}

func (p pair) publishes(t *testing.T) {
	c := p.client
	tree := sandboxtest.Tree()
	tree["test/extra.py"] = []byte("def extra(): return 'new'\n")
	if err := c.Publish(tree); err != nil {
		t.Fatal(err)
	}
	wants(t, c, sandboxtest.Job(sandbox.Python, "from servers.test.extra import extra\nextra()"), `"new"`)
	if err := c.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	if o := run(t, c, sandboxtest.Job(sandbox.Python, "from servers.test.extra import extra")); o.Status != sandbox.Failed {
		t.Errorf("what is gone can be imported: %+v", o)
	}
	if err := c.Publish(map[string][]byte{"../x": nil}); err == nil {
		t.Error("a path that leaves the tree is published")
	}
}

// countingCaller counts calls, and tells when one begins, and why it was cancelled: nil if it was released before.
type countingCaller struct {
	calls          atomic.Int64
	began, release chan struct{}
	stopped        chan error
}

func newCountingCaller() *countingCaller {
	return &countingCaller{began: make(chan struct{}, 8), release: make(chan struct{}), stopped: make(chan error, 8)}
}

func (c *countingCaller) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	c.calls.Add(1)
	c.began <- struct{}{}
	select {
	case <-ctx.Done():
	case <-c.release:
	}
	c.stopped <- ctx.Err()
	return tool.Result{}, ctx.Err()
}

const callingCode = "from servers.test import echo\necho(1)"

func (p pair) cancels(t *testing.T) {
	c := p.client
	ws, err := workspace.Open(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	// The main thread does not wait for the answer: when the bridge closes, who does dies of it.
	code := "import threading, time\nfrom servers.test import echo\nopen('/workspace/before', 'w').write('1')\nthreading.Thread(target=echo, args=(1,)).start()\ntime.sleep(60)"
	job, caller := sandboxtest.Job(sandbox.Python, code), newCountingCaller()
	job.Workspace = ws
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-caller.began
		cancel()
	}()
	o, err := c.Run(ctx, job, caller)
	<-caller.stopped
	if err != nil || o.Status != sandbox.Canceled || o.Calls != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	if f, err := ws.Open("before"); err != nil {
		t.Errorf("what it left is not saved: %v; %+v", err, o)
	} else {
		f.Content.Close()
	}
}

func (p pair) refuses(t *testing.T) {
	c := p.client
	job := sandboxtest.Job(sandbox.Python, "1")
	job.ID = "NO id\x1b"
	if o, err := c.Run(t.Context(), job, sandboxtest.Echo{}); err == nil || !strings.Contains(err.Error(), "invalid execution ID") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%+v, %v", o, err)
	}
	job = sandboxtest.Job(sandbox.Python, "1")
	job.Environment = "data"
	if o, err := c.Run(t.Context(), job, sandboxtest.Echo{}); err == nil {
		t.Errorf("%+v", o)
	}
}

// breaks cuts the connection while a program waits for a tool, whose call ends in its own way.
func (p pair) breaks(t *testing.T) {
	m, c := p.machine, p.client
	caller := newCountingCaller()
	before := m.dialCount()
	go func() {
		<-caller.began
		m.cut()
		m.work.Wait() // the worker has ended
		close(caller.release)
	}()
	o, err := c.Run(t.Context(), sandboxtest.Job(sandbox.Python, callingCode), caller)
	if why := <-caller.stopped; why != nil {
		t.Errorf("the call was ended: %v", why)
	}
	if err != nil || o.Status != sandbox.Crashed || o.Calls != 1 || o.Lost == "" || len(o.Notes) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	m.work.Wait() // the worker has ended, with all of its sandboxes
	if left, _ := filepath.Glob(filepath.Join(m.opts.Host.State, "*")); len(left) > 0 {
		t.Errorf("the worker left %q", left)
	}
	wants(t, c, sandboxtest.Job(sandbox.Python, "from servers.test import echo\necho(7)"), "7")
	if n := m.dialCount() - before; n != 1 || caller.calls.Load() != 1 {
		t.Errorf("%d connections, %d calls; want one of each", n, caller.calls.Load())
	}
}

// TestEverythingOfAJobTravels fails for whoever adds a field to a job or a program and does not send it.
func TestEverythingOfAJobTravels(t *testing.T) {
	for kind, want := range map[reflect.Type][]string{
		reflect.TypeFor[sandbox.Limits](): {"Timeout", "Memory", "Processes", "OpenFiles", "CPU", "FileSize", "Workspace", "Inodes", "Output", "Value", "Calls", "Concurrency", "Traffic"},
		reflect.TypeFor[sandbox.Job]():    {"ID", "Interpreter", "Code", "File", "Variables", "Prelude", "Limits", "Environment", "Added", "Session", "Owner", "OwnerAfter", "Workspace", "OnOutput"},
		reflect.TypeFor[bridge.Program](): {"Code", "File", "ValueLimit", "Keep", "Frame", "Variables", "Prelude", "Workspace"}, // Frame is filled in where the bridge is
	} {
		var fields []string
		for field := range kind.Fields() {
			if field.IsExported() { // the others are a host's own
				fields = append(fields, field.Name)
			}
		}
		if !slices.Equal(fields, want) {
			t.Errorf("%s has %q; what is new must travel, see jobHead and follow", kind, fields)
		}
	}
}

// TestNoSandboxes: a worker without gVisor says so.
func TestNoSandboxes(t *testing.T) {
	m := newMachine(t)
	m.opts.Host.Runsc = "/nowhere/runsc"
	c := newClient(t, m, sandbox.Pool{})
	_, err := c.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
	if err == nil || !strings.Contains(err.Error(), "runsc (gVisor) was not found") || !strings.Contains(err.Error(), "ssh://box") {
		t.Errorf("%v", err)
	}
	if _, again := c.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{}); again == nil || m.dialCount() != 1 {
		t.Errorf("%v after %d dials: it is too early for another try", again, m.dialCount())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{}); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after Close: %v", err)
	}
}
