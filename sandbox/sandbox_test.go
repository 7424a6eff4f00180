//go:build linux

package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// newHost opens a host with default options and something in our own environment that nobody may see. Each program has a
// sandbox of its own, which is restored from a snapshot.
func newHost(t *testing.T) (*sandbox.Host, string) {
	t.Helper()
	return hostOf(t, testutil.Snapshots())
}

// newColdHost is newHost without snapshots: each sandbox starts an interpreter.
func newColdHost(t *testing.T) (*sandbox.Host, string) {
	t.Helper()
	return hostOf(t, "")
}

func hostOf(t *testing.T, snapshots string) (*sandbox.Host, string) {
	t.Helper()
	t.Setenv("SALLYPORT_CANARY", "canary-0123456789abcdef")
	return hostWith(t, sandbox.Options{DebugLog: os.Getenv("SALLYPORT_RUNSC_LOG"), Snapshots: snapshots})
}

// hostWith opens a host where the tree of the suite is published, with a state directory of its own unless the options
// name one, and checks at the end that nothing is left.
func hostWith(t *testing.T, opts sandbox.Options) (host *sandbox.Host, state string) {
	t.Helper()
	host = open(t, &opts)
	names := hostNames(t, opts.State)
	t.Cleanup(func() { closeHost(t, host, opts.State, names) })
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	return host, opts.State
}

// open opens a host, with what every test gives it where the options say nothing else.
func open(t *testing.T, opts *sandbox.Options) *sandbox.Host {
	t.Helper()
	if opts.Guest == nil {
		opts.Guest = runtime.Guest()
	}
	if opts.Runsc == "" {
		opts.Runsc = testutil.Runsc(t)
	}
	if opts.State == "" {
		opts.State = testutil.ShortDir(t)
	}
	if opts.Logger == nil {
		opts.Logger = testutil.Logger(t)
	}
	host, err := sandbox.New(*opts)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// closeHost closes a host after which nothing may be left in its state directory and of the hosts of these names.
func closeHost(t *testing.T, host *sandbox.Host, state string, names []string) {
	t.Helper()
	if err := host.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	nothingLeft(t, state, names...)
}

// hostNames returns the names of the hosts that live in a state directory: their cgroups carry them.
func hostNames(t *testing.T, state string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(state, "host-*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no host in %s: %v", state, err)
	}
	for i, dir := range dirs {
		dirs[i] = filepath.Base(dir)
	}
	return dirs
}

// nothingLeft fails if a process, a file of the state directory, or a cgroup of the hosts is still there.
func nothingLeft(t *testing.T, state string, hosts ...string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(state, "*")); err != nil || len(left) > 0 {
		t.Errorf("left in the state directory: %v, %v", left, err)
	}
	testutil.NoProcesses(t, state)
	if left := cgroups(hosts); len(left) > 0 {
		t.Errorf("cgroups left: %v", left)
	}
}

// cgroups returns the cgroups of hosts, in all hierarchies.
func cgroups(hosts []string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		for _, host := range hosts {
			if err == nil && entry.IsDir() && strings.Contains(entry.Name(), host+"-") {
				found = append(found, path)
			}
		}
		return nil // what has gone meanwhile is none
	})
	return found
}

func TestConformance(t *testing.T) {
	host, state := newColdHost(t)
	sandboxtest.Run(t, host)
	nothingRuns(t, state) // what is left of the last one is cleared away in the background
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(state, "host-*", "case-*"))
		if err == nil && len(left) == 0 {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("left of executions while the host is open: %v, %v", left, err)
		}
	}
}

// TestConformanceRootless runs as an ordinary user, in a user namespace and without cgroups, what can
// depend on that: all but what the guests do among themselves.
func TestConformanceRootless(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TestConformance has just done that: this user is not root")
	}
	dir := testutil.ShortDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{self: "sandbox.test", testutil.Runsc(t): "runsc"} {
		if out, err := exec.Command("cp", from, filepath.Join(dir, to)).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chmod(filepath.Join(dir, "tmp"), 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "sandbox.test"), "-test.run=^(TestConformance|TestCrash|TestKilledHost)$", "-test.v",
		"-test.skip=^TestConformance$/^(faults|values|functions|emit|mistakes)$|^TestConformance$/^bridge$/^[^A-Z]") // of the bridge the attacks
	cmd.Dir = filepath.Join(dir, "tmp")
	cmd.Env = append(os.Environ(), "SALLYPORT_TEST_RUNSC="+filepath.Join(dir, "runsc"), "TMPDIR="+filepath.Join(dir, "tmp"), "HOME="+dir, "XDG_RUNTIME_DIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConformance ") {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
}

// sentry finds the sentry process of an execution.
func sentry(t *testing.T, state, id string) int {
	t.Helper()
	for range 200 {
		files, _ := filepath.Glob(filepath.Join(state, "host-*", id, "sentry.pid"))
		for _, file := range files {
			if pid := readPID(file); pid > 0 {
				return pid
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the sandbox did not start")
	return 0
}
