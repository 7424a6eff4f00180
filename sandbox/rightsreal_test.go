//go:build linux

package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	guest "sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
)

// TestPrintChecks is the process that TestChecksWithLessRights starts: it prints its checks.
func TestPrintChecks(t *testing.T) {
	switch os.Getenv("SALLYPORT_CHECKS") {
	case "":
		t.Skip("it is started by TestChecksWithLessRights")
	case "filtered":
		t.Setenv("SALLYPORT_CHECKS", "plain")
		runtime.LockOSThread()
		must(t, filterSystemCalls())
		_ = os.Remove(testutil.Snapshots())                            // if it is of this process: TestMain does not return
		must(t, syscall.Exec("/proc/self/exe", os.Args, os.Environ())) // the filter of this thread stays
	}
	checks := sandbox.Checks(t.Context(), sandbox.Options{Runsc: os.Getenv("SALLYPORT_TEST_RUNSC"), Guest: guest.Guest(), State: os.Getenv("SALLYPORT_STATE")})
	must(t, json.NewEncoder(os.Stdout).Encode(checks))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// filterSystemCalls refuses what the default filter of Docker refuses to a container without CAP_SYS_ADMIN.
func filterSystemCalls() error {
	deny, permit := uint32(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)), uint32(unix.SECCOMP_RET_ALLOW)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	skipUnless := func(nr uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1}
	}
	program := []unix.SockFilter{load(0)}
	for _, nr := range []uint32{unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS} {
		program = append(program, skipUnless(nr), answer(deny))
	}
	program = append(program, skipUnless(unix.SYS_CLONE3), answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jt: 1}, answer(permit),
		load(16), // the flags of clone
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x7E020000, Jf: 1}, answer(deny), answer(permit))
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}

// lesser is a folder that any user can read, with the test binary and runsc.
func lesser(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give up rights one by one")
	}
	dir := testutil.ShortDir(t)
	self, err := os.Executable()
	must(t, err, os.Chmod(dir, 0o755))
	for from, to := range map[string]string{self: "self", testutil.Runsc(t): "runsc"} {
		if out, err := exec.CommandContext(t.Context(), "cp", from, filepath.Join(dir, to)).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "root"), 0o755))
	return dir
}

// checksOf runs the checks by a script of the shell, in which "$@" is the process and $DIR the folder of lesser.
func checksOf(t *testing.T, dir, script, mode string) map[string]sandbox.Check {
	t.Helper()
	state := filepath.Join(dir, "state")
	must(t, os.Mkdir(state, 0o755), os.Chmod(state, 0o777)) //nolint:gosec // any user makes its own folder there
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script, "sh", filepath.Join(dir, "self"), "-test.run=^TestPrintChecks$")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "DIR=" + dir, "HOME=" + dir, "SALLYPORT_CHECKS=" + mode, "SALLYPORT_TEST_RUNSC=" + filepath.Join(dir, "runsc"), "SALLYPORT_STATE=" + filepath.Join(state, "s")}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	_, line, _ := strings.Cut("\n"+string(out), "\n[") // the race detector may warn before
	line, _, _ = strings.Cut("["+line, "\n")
	var checks []sandbox.Check
	if jsonErr := json.Unmarshal([]byte(line), &checks); err != nil || jsonErr != nil {
		t.Fatalf("%v, %v:\n%s", err, jsonErr, out)
	}
	found := map[string]sandbox.Check{}
	for _, check := range checks {
		found[check.Name] = check
	}
	return found
}

// chrooted is the start of a script that makes a root file system in $DIR/root, in a mount namespace of its own.
const chrooted = `exec unshare -m sh -ec 'R=$DIR/root; mkdir -p $R/usr $R/tmp $R/dev $R/proc $R/etc $R$DIR; chmod 777 $R/tmp
for link in bin lib lib64 sbin; do ln -s usr/$link $R/$link; done
mount --rbind /usr $R/usr; mount --rbind /dev $R/dev; mount --bind $DIR $R$DIR; mount --bind /tmp $R/tmp; `

// TestChecksWithLessRights really takes rights away from a process. Where sandboxes work, programs run; where they
// cannot, the checks say which right is missing, and what gives it.
func TestChecksWithLessRights(t *testing.T) {
	const works = ""
	for _, test := range []struct{ name, script, mode, detail, fix string }{
		{"root without CAP_SYS_ADMIN", `exec setpriv --bounding-set -sys_admin "$@"`, "plain", works, "rootless in one: root lacks CAP_SYS_ADMIN"},
		{"root without CAP_SETUID", `exec setpriv --bounding-set -setuid,-setgid "$@"`, "plain", works, "root lacks CAP_SETUID, CAP_SETGID"},
		{"root with CAP_SETFCAP only", `exec setpriv --no-new-privs --bounding-set -all,+setfcap "$@"`, "plain", works, "rootless in one"},
		{"an ordinary user", `exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "plain", works, "rootless in one"},
		{"an ordinary user without privileges to gain", `exec setpriv --no-new-privs --reuid 65534 --regid 65534 --clear-groups --bounding-set -all "$@"`, "plain", works, "rootless in one"},
		{"root in a user namespace", `exec unshare -U -r "$@"`, "plain", works, "available"},
		{"root without any capability", `exec setpriv --bounding-set -all "$@"`, "plain",
			"root can start no sandbox here: operation not permitted; root lacks CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, and also CAP_SETFCAP", "run it as an ordinary user, or give root CAP_SETFCAP"},
		{"no user namespaces left", `exec unshare -U -r sh -ec 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -sys_admin "$@"' sh "$@"`, "plain",
			"no space left on device; user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000"},
		{"no user namespaces left, as root", `exec unshare -U -r sh -ec 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"' sh "$@"`, "plain",
			"root can start no sandbox here: no space left on device; user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000"},
		{"a user without a mapping", `exec unshare -U "$@"`, "plain", "they cannot be made here", "nor by a user without a mapping"},
		{"a filter, as root", `exec "$@"`, "filtered", "root can start no sandbox here: operation not permitted; a seccomp filter is active", "seccomp"},
		{"a filter, as Docker's root", `exec setpriv --bounding-set -sys_admin "$@"`, "filtered", "root can start no sandbox here: operation not permitted; a seccomp filter is active", "seccomp"},
		{"a filter, as a user", `exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "filtered", "they cannot be made here, and sandboxes of an ordinary user need them: operation not permitted; a seccomp filter", "seccomp"},
		{"a user in a chroot", chrooted + `mount -t proc proc $R/proc; exec chroot --userspec=65534:65534 $R "$@"' sh "$@"`, "plain",
			"operation not permitted; no user namespace can be made in a chroot", "use a container or systemd-nspawn"},
		{"root in a chroot", chrooted + `mount -t proc proc $R/proc; exec chroot $R "$@"' sh "$@"`, "plain",
			"root can start no sandbox here: operation not permitted; no user namespace can be made in a chroot", "use a container or systemd-nspawn"},
		{"no /proc", chrooted + `exec chroot $R "$@"' sh "$@"`, "plain", "/proc is not mounted", "mount -t proc proc /proc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			checks := checksOf(t, lesser(t), test.script, test.mode)
			found := checks["user namespaces"]
			if test.detail != works {
				if found.OK || !strings.Contains(found.Detail, test.detail) || !strings.Contains(found.Fix, test.fix) {
					t.Errorf("%+v", found)
				}
				return
			}
			if !strings.Contains(found.Detail, test.fix) || !checks["sandbox with python"].OK || !checks["sandbox with node"].OK {
				t.Errorf("%+v", checks)
			}
		})
	}
}

// TestLimitsSayWhy checks what doctor says about cgroups that cannot be used, on a machine with both versions.
func TestLimitsSayWhy(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil {
		t.Skip("this machine has no cgroup v1 for memory")
	}
	const hide = `umount -l /sys/fs/cgroup/memory; `
	const inNamespace, user = `exec unshare -m sh -ec '`, `setpriv --reuid 65534 --regid 65534 --clear-groups `
	for _, test := range []struct{ name, script, detail, fix string }{
		{"v1", `exec "$@"`, "cgroup v1 below /sys/fs/cgroup/memory", ""},
		{"v1 of another user", `exec ` + user + `"$@"`, "because cgroup v1 at /sys/fs/cgroup/memory", "as root, or in a cgroup of its own (systemd-run --user --scope -p Delegate=yes sallyport ...)"},
		{
			"read-only v1, as in a container", inNamespace + `mount -o remount,ro,bind /sys/fs/cgroup/memory; mount -o remount,ro,bind /sys/fs/cgroup/unified; exec "$@"' sh "$@"`,
			"because cgroup v1 is mounted read-only", "writable-cgroups=true",
		},
		{"v2 without its memory controller", inNamespace + hide + `exec "$@"' sh "$@"`, "cgroup v2 below /sys/fs/cgroup/unified, without its memory controller", "Delegate=yes"},
		{"v2 of another user", inNamespace + hide + `exec ` + user + `"$@"' sh "$@"`, "because cgroup v2 at /sys/fs/cgroup/unified is not delegated to this user", "Delegate=yes"},
		{"read-only v2", inNamespace + hide + `mount -o remount,ro,bind /sys/fs/cgroup/unified; exec "$@"' sh "$@"`, "because cgroup v2 is mounted read-only", "writable-cgroups=true"},
		{"no cgroups", inNamespace + hide + `umount -l /sys/fs/cgroup/unified; exec "$@"' sh "$@"`, "because no cgroup of this process is mounted", "as root, or"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := checksOf(t, lesser(t), test.script, "plain")["limits"]
			if !strings.Contains(found.Detail, test.detail) || !strings.Contains(found.Fix, test.fix) || found.Warn != (test.fix != "") {
				t.Errorf("%+v", found)
			}
		})
	}
}
