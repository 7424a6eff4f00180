//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
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

// TestEveryWayToTheSameLimits runs into the limits that the kernel or a watcher holds in other ways
// than TestConformance (what this machine has for this user) and TestConformanceRootless find: without
// any cgroup as root, and in a cgroup v2 that belongs to root or to an ordinary user.
func TestEveryWayToTheSameLimits(t *testing.T) {
	t.Run("by watching", func(t *testing.T) { checkLimits(t, sandbox.Options{NoCgroups: true}) })
	for _, uid := range []int{0, 65534} {
		t.Run(fmt.Sprintf("cgroup v2 as %d", uid), func(t *testing.T) { inCgroupV2(t, uid) })
	}
}

// checkLimits opens a host and runs into its limits.
func checkLimits(t *testing.T, opts sandbox.Options) {
	t.Helper()
	host, _ := hostWith(t, opts)
	sandboxtest.LimitsHold(t, host)
}

// TestInCgroupV2 runs where inCgroupV2 has put it.
func TestInCgroupV2(t *testing.T) {
	if os.Getenv("SALLYPORT_TEST_V2") == "" {
		t.Skip("TestEveryWayToTheSameLimits runs it")
	}
	found := ""
	for _, check := range sandbox.Checks(t.Context(), sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t)}) {
		if check.Name == "limits" {
			found = check.Detail
		}
		if !check.OK {
			t.Errorf("doctor: %+v", check)
		}
	}
	if t.Log(found); !strings.HasPrefix(found, string(sandbox.CgroupV2)+" below /sys/fs/cgroup/sallyport-test") {
		t.Fatalf("doctor says %q", found)
	}
	checkLimits(t, sandbox.Options{})
}

// setUp makes /sys/fs/cgroup what it is on a machine with v2 alone, for itself and what it starts.
const setUp = `set -e
mount --make-rprivate /
umount --lazy --recursive /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
echo $$ >"$1/cgroup.procs"
exec setpriv --reuid=$2 --regid=$2 --clear-groups "$3" -test.run='^TestInCgroupV2$' -test.v`

// inCgroupV2 runs TestInCgroupV2 in a cgroup v2 that belongs to a user, on a machine that seems to have no other.
func inCgroupV2(t *testing.T, uid int) {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if os.Geteuid() != 0 || err != nil {
		t.Skipf("it takes root and setpriv (%s)", setpriv)
	}
	dir := testutil.ShortDir(t)
	for from, to := range map[string]string{os.Args[0]: "sandbox.test", testutil.Runsc(t): "runsc"} {
		if out, err := exec.Command("cp", from, filepath.Join(dir, to)).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
	}
	tmp, group := filepath.Join(dir, "tmp"), filepath.Join("/sys/fs/cgroup", filepath.Base("sallyport-test-"+filepath.Base(dir)))
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o777), os.Chmod(tmp, 0o777)); err != nil {
		t.Fatal(err)
	}
	v2 := unified(t)
	made := filepath.Join(v2, filepath.Base(group))
	if err := os.Mkdir(made, 0o755); err != nil {
		t.Skipf("no cgroup v2 that can be written: %v", err)
	}
	t.Cleanup(func() { removeCgroups(t, made) })
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(made, file), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", setUp, "sh", group, fmt.Sprint(uid), filepath.Join(dir, "sandbox.test"))
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "SALLYPORT_TEST_V2=1", "SALLYPORT_TEST_RUNSC="+filepath.Join(dir, "runsc"), "TMPDIR="+tmp, "HOME="+dir, "XDG_RUNTIME_DIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInCgroupV2 ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// unified returns where cgroup v2 is mounted.
func unified(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
			return dir
		}
	}
	t.Skip("no cgroup v2 here")
	return ""
}

func removeCgroups(t *testing.T, dir string) {
	t.Helper()
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, file := range append(below, filepath.Join(dir, "cgroup.procs")) {
		for end := time.Now().Add(30 * time.Second); os.Remove(filepath.Dir(file)) != nil && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left, with %v", dir, below)
	}
}
