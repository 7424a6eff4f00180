//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sallyport/internal/testutil"
)

func TestOwnCgroups(t *testing.T) {
	for _, test := range []struct {
		name, cgroup, mounts string
		want                 map[string]string
	}{
		{
			"v1 on a machine", "4:memory:/user/me\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n",
			"30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n33 25 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			map[string]string{"memory": "/sys/fs/cgroup/memory/user/me", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "": "/sys/fs/cgroup/unified"},
		},
		{
			"v1 in a container that sees its own part only", "4:memory:/docker/abc/sub\n",
			"30 25 0:26 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			map[string]string{"memory": "/sys/fs/cgroup/memory/sub"},
		},
		{
			"v1 in a container that sees another part", "4:memory:/\n",
			"30 25 0:26 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", map[string]string{},
		},
		{
			"v2", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n",
			"30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
			map[string]string{"": "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope"},
		},
		{"v2, of which we are outside", "0::/../other\n", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", map[string]string{}},
		{"nothing", "", "", map[string]string{}},
		{"nonsense", "x\n1:2\n::\n", "a - b\n - cgroup2\n1 2 3 4 5 - cgroup2 x y\n", map[string]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			self := t.TempDir()
			must(t, os.WriteFile(filepath.Join(self, "cgroup"), []byte(test.cgroup), 0o600), os.WriteFile(filepath.Join(self, "mountinfo"), []byte(test.mounts), 0o600))
			if diff := cmp.Diff(test.want, ownCgroups(self)); diff != "" {
				t.Errorf("cgroups (-want +got):\n%s", diff)
			}
		})
	}
	if found := findCgroups(t.TempDir()); found.mode != NoCgroup {
		t.Errorf("where there are none: %+v", found)
	}
}

// realCgroup makes a cgroup in the unified hierarchy of this machine, for the test to do with what it
// likes, and names a controller that can be had there: memory, if v1 does not have it.
func realCgroup(t *testing.T) (dir, controller string) {
	t.Helper()
	parent := ownCgroups(ownThread)[""]
	if os.Geteuid() != 0 || !canMake(parent, "cgroup.procs") {
		t.Skip("no cgroup v2 that this user can write")
	}
	control := filepath.Join(parent, "cgroup.subtree_control")
	before, after := words(t, control), words(t, filepath.Join(parent, "cgroup.controllers"))
	if len(after) == 0 {
		t.Skip("cgroup v2 has no controllers")
	}
	controller = after[0]
	if slices.Contains(after, "memory") {
		controller = "memory"
	}
	if !slices.Contains(before, controller) {
		if err := os.WriteFile(control, []byte("+"+controller), 0o600); err != nil {
			t.Skipf("cgroup v2 does not hand its controllers on: %v", err)
		}
		t.Cleanup(func() { _ = os.WriteFile(control, []byte("-"+controller), 0o600) })
	}
	dir, err := os.MkdirTemp(parent, "sallyport-test-") //nolint:usetesting // no usual folder
	must(t, err)
	t.Cleanup(func() { removeTree(t, dir) })
	return dir, controller
}

func words(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return strings.Fields(string(data))
}

// removeTree kills what is in a cgroup v2 and removes it with those below.
func removeTree(t *testing.T, dir string) {
	t.Helper()
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0o600)
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, file := range append(below, filepath.Join(dir, "cgroup.procs")) {
		for end := time.Now().Add(30 * time.Second); os.Remove(filepath.Dir(file)) != nil && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// TestDelegatedCgroup does in a real cgroup v2 what a gateway in a delegated one does, as root and as
// an ordinary user. A controller that v1 has here cannot be had; another shows how it is got.
func TestDelegatedCgroup(t *testing.T) {
	if dir := os.Getenv("SALLYPORT_TEST_DELEGATED"); dir != "" {
		inDelegatedCgroup(t, dir, os.Getenv("SALLYPORT_TEST_CONTROLLER"))
		return
	}
	for _, uid := range []int{0, nobodyID} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			dir, controller := realCgroup(t)
			for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
				must(t, os.Chown(filepath.Join(dir, file), uid, uid))
			}
			at, err := os.Open(dir)
			must(t, err)
			defer func() { _ = at.Close() }()
			self := filepath.Join(testutil.ShortDir(t), "sandbox.test")
			must(t, os.Chmod(filepath.Dir(self), 0o755))
			if out, err := exec.Command("cp", os.Args[0], self).CombinedOutput(); err != nil {
				t.Fatalf("copy: %v: %s", err, out)
			}
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestDelegatedCgroup$", "-test.v")
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), "SALLYPORT_TEST_DELEGATED="+dir, "SALLYPORT_TEST_CONTROLLER="+controller)
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(at.Fd()), Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// inDelegatedCgroup is alone in a cgroup v2 that it may write.
func inDelegatedCgroup(t *testing.T, dir, controller string) {
	t.Helper()
	if own := ownCgroups(ownThread)[""]; own != dir {
		t.Fatalf("this is %s, not %s", own, dir)
	}
	for range 2 {
		if !delegate(dir, controller) {
			t.Fatal("the controller was not got")
		}
	}
	if own := ownCgroups(ownThread)[""]; filepath.Dir(own) != dir || !strings.HasPrefix(filepath.Base(own), gatewayCgroupPrefix) {
		t.Errorf("moved to %s", own)
	}
	c := cgroups{mode: CgroupV2, memory: dir, cpu: dir, limitsMemory: controller == "memory", headroom: sentryHeadroom}
	group, err := c.make("sallyport-host-1-a", 64<<20)
	must(t, err)
	checkCgroup(t, group)
	if c.limitsMemory {
		if data, _ := os.ReadFile(filepath.Join(group.memory(), "memory.max")); strings.TrimSpace(string(data)) != fmt.Sprint(256<<20) {
			t.Errorf("limit %s", data)
		}
	}
	if found := findCgroups(ownThread); found.mode == CgroupV2 && found.memory != dir { // where v1 is not in the way
		t.Errorf("the next host would use %+v", found)
	}
}

// busy is a program with children in sessions of their own that does not want to end.
const busy = `trap '' TERM INT HUP; for i in 1 2 3; do setsid sh -c "trap '' TERM INT HUP; while :; do :; done" & done; while :; do :; done`

// checkCgroup starts a program inside, sees its time counted, kills it, and removes the cgroup.
func checkCgroup(t *testing.T, group *cgroup) {
	t.Helper()
	cmd := exec.Command("sh", "-c", busy)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	started := make(chan error)
	go func() { // a goroutine of its own, as the thread is moved
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		leave, err := group.enter(cmd.SysProcAttr)
		if err == nil {
			err = cmd.Start()
			leave()
		}
		started <- err
	}()
	must(t, <-started)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if used, ok := group.cpuTime(); ok && used > 200*time.Millisecond && len(pidsIn(group.memory())) == 4 {
			break
		} else if time.Now().After(end) {
			t.Errorf("used %s, %t; processes %v", used, ok, pidsIn(group.memory()))
			break
		}
	}
	if group.outOfMemory() {
		t.Error("out of memory")
	}
	go func() { _ = cmd.Wait() }()
	must(t, group.remove(), group.remove())
	for _, dir := range group.dirs() {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

func TestCgroupOfThisMachine(t *testing.T) {
	c := findCgroups(ownThread)
	if c.mode == NoCgroup {
		t.Skip("this user can make no cgroups")
	}
	dir, beside := fmt.Sprintf("/state/host-test%d", os.Getpid()), fmt.Sprintf("/state/host-test%dx", os.Getpid())
	made := func(dir, id string) *cgroup {
		group, err := c.make(cgroupName(dir, id), 64<<20)
		must(t, err)
		t.Cleanup(func() { _ = group.remove() })
		return group
	}
	checkCgroup(t, made(dir, "a"))
	one, two, other := made(dir, "b"), made(dir, "c"), made(beside, "b")
	must(t, c.clear(dir))
	for _, path := range append(one.dirs(), two.dirs()...) {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range other.dirs() {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("another host's is gone: %v", err)
		}
	}
}

// TestCgroupsBesideAStart: while the first thread of this process is in a sandbox's cgroup to start it, another host finds our own.
func TestCgroupsBesideAStart(t *testing.T) {
	c := findCgroups(ownThread)
	if c.mode != CgroupV1 {
		t.Skip("only threads of cgroup v1 have cgroups of their own")
	}
	group, err := c.make(cgroupName("/state/host-start", strconv.Itoa(os.Getpid())), 64<<20)
	must(t, err)
	t.Cleanup(func() { must(t, group.remove()) })
	move := func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "tasks"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	must(t, move(group.memory()))
	defer func() { must(t, move(c.memory)) }()
	if found := onOtherThread(func() cgroups { return findCgroups(ownThread) }); found != c {
		t.Errorf("found %+v, want %+v", found, c)
	}
}

// onOtherThread calls f on a thread that is not the first one of this process.
func onOtherThread[T any](f func() T) T {
	result := make(chan T)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() == os.Getpid() { // the first one is locked, so the next call has another
			result <- onOtherThread(f)
		} else {
			result <- f()
		}
	}()
	return <-result
}

// TestCgroupsOfAHostThatWasElsewhere: who clears a dead host away may be in another cgroup than that one was.
func TestCgroupsOfAHostThatWasElsewhere(t *testing.T) {
	c := findCgroups(ownThread)
	if c.mode == NoCgroup {
		t.Skip("this user can make no cgroups")
	}
	dir := filepath.Join(t.TempDir(), fmt.Sprintf("host-elsewhere%d", os.Getpid()))
	must(t, os.Mkdir(dir, 0o700), saveCgroups(c, dir))
	group, err := c.make(cgroupName(dir, "a"), 64<<20)
	must(t, err)
	_, err = clearHost(cgroups{mode: NoCgroup}, dir)
	must(t, err)
	for _, dir := range append(group.dirs(), dir) {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// TestNoCgroup: nothing happens, and nothing breaks, where there is none.
func TestNoCgroup(t *testing.T) {
	group, err := (cgroups{mode: NoCgroup}).make("x", 1)
	must(t, err, group.limit(1), group.remove(), (cgroups{mode: NoCgroup}).clear("/state/host-1"))
	group.kill()
	leave, err := group.enter(nil)
	must(t, err)
	leave()
	if _, ok := group.cpuTime(); ok || group.outOfMemory() {
		t.Error("no cgroup tells something")
	}
}
