//go:build linux

package rights

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// machine writes files below a folder, as the kernel and container engines have them.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	allCapabilities    = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"
	dockerCapabilities = "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"
	noCapabilities     = "CapEff:\t0000000000000000\nSeccomp:\t0\n"
	rootMount          = "22 1 0:21 / / rw - ext4 /dev/vda rw\n"
)

// TestObstacles checks what is said about machines of all kinds, with the exact flags.
func TestObstacles(t *testing.T) {
	for _, test := range []struct {
		name  string
		user  int
		files map[string]string
		what  []string
		fix   string
	}{
		{name: "root", files: map[string]string{"proc/self/status": allCapabilities, "proc/self/mountinfo": rootMount}},
		{name: "a user", user: 1000, files: map[string]string{"proc/self/status": noCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/user/max_user_namespaces": "96365\n", "proc/self/attr/current": "unconfined\n"}},
		{name: "no proc", what: []string{"/proc is not mounted"}, fix: "mount -t proc proc /proc"},
		{
			name: "Ubuntu 24.04", user: 1000,
			files: map[string]string{"proc/self/status": noCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
			what:  []string{"AppArmor restricts unprivileged user namespaces"},
			fix:   "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for runsc",
		},
		{name: "root on Ubuntu 24.04", files: map[string]string{"proc/self/status": allCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}},
		{
			name: "old Debian", user: 1000, files: map[string]string{"proc/self/status": noCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/kernel/unprivileged_userns_clone": "0\n"},
			what: []string{"kernel.unprivileged_userns_clone is 0"}, fix: "sudo sysctl kernel.unprivileged_userns_clone=1",
		},
		{
			name: "no namespaces at all", user: 1000, files: map[string]string{"proc/self/status": noCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/user/max_user_namespaces": "0\n"},
			what: []string{"user.max_user_namespaces is 0"}, fix: "sudo sysctl user.max_user_namespaces=15000",
		},
		{
			name: "no ptrace", files: map[string]string{"proc/self/status": allCapabilities, "proc/self/mountinfo": rootMount, "proc/sys/kernel/yama/ptrace_scope": "3\n"},
			what: []string{"kernel.yama.ptrace_scope is 3"}, fix: "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and restart the machine",
		},
		{
			name: "docker", files: map[string]string{".dockerenv": "", "proc/self/status": dockerCapabilities, "proc/self/mountinfo": rootMount, "proc/self/attr/current": "docker-default (enforce)\n"},
			what: []string{"a seccomp filter is active", "AppArmor confines this process (docker-default (enforce))"},
			fix:  "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
		},
		{
			name: "podman on Fedora, no capability", files: map[string]string{
				"run/.containerenv": "", "proc/self/status": strings.Replace(noCapabilities, "Seccomp:\t0", "Seccomp:\t2", 1),
				"proc/self/mountinfo": rootMount, "proc/self/attr/current": "system_u:system_r:container_t:s0:c1,c2\x00",
			},
			what: []string{"root lacks CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, and also CAP_SETFCAP", "seccomp", "SELinux confines"},
			fix: "run it as an ordinary user, or give root CAP_SETFCAP\n" +
				"podman run --user 1000 --security-opt seccomp=unconfined --security-opt label=disable",
		},
		{
			name: "Kubernetes", user: 65532, files: map[string]string{
				"run/secrets/kubernetes.io/serviceaccount/token": "x", "proc/self/status": strings.Replace(noCapabilities, "Seccomp:\t0", "Seccomp:\t2", 1),
				"proc/self/mountinfo": rootMount, "proc/self/attr/current": "cri-containerd.apparmor.d (enforce)\n",
			},
			what: []string{"seccomp", "AppArmor confines"},
			fix:  "Kubernetes: securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}",
		},
		{
			name: "an unknown container", user: 1, files: map[string]string{"proc/self/status": strings.Replace(noCapabilities, "Seccomp:\t0", "Seccomp:\t2", 1), "proc/self/mountinfo": rootMount},
			what: []string{"seccomp"},
			fix: "docker run --security-opt seccomp=unconfined\npodman run --security-opt seccomp=unconfined\n" +
				"Kubernetes: securityContext: {seccompProfile: {type: Unconfined}}",
		},
		{
			name: "a chroot", user: 1, files: map[string]string{"proc/self/status": noCapabilities, "proc/self/mountinfo": "23 22 0:22 / /proc rw - proc proc rw\n"},
			what: []string{"no user namespace can be made in a chroot"},
			fix:  "use a container or systemd-nspawn in place of chroot",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Read(machine(t, test.files), test.user)
			found := r.Obstacles()
			if fix := r.Remedy(found); len(found) != len(test.what) || fix != test.fix {
				t.Errorf("obstacles %q, fix:\n%s\nwant:\n%s", Describe(found), fix, test.fix)
			}
			for _, what := range test.what {
				if !strings.Contains(Describe(found), what) {
					t.Errorf("obstacles: %q; want %q", Describe(found), what)
				}
			}
		})
	}
}

// TestRootless checks who needs a user namespace.
func TestRootless(t *testing.T) {
	for _, test := range []struct {
		user   int
		status string
		want   bool
	}{{0, allCapabilities, false}, {1000, allCapabilities, true}, {0, dockerCapabilities, true}, {0, noCapabilities, true}} {
		if got := Read(machine(t, map[string]string{"proc/self/status": test.status}), test.user).Rootless(); got != test.want {
			t.Errorf("user %d with %q: rootless is %v", test.user, test.status, got)
		}
	}
}

// TestFlagsInDocs: the pages name the flags that doctor prints, and no other ones.
func TestFlagsInDocs(t *testing.T) {
	var sandboxes []string
	all := (Rights{proc: true}).processObstacles()
	for _, label := range []string{"docker-default (enforce)", "system_u:system_r:container_t:s0:c1,c2"} {
		all = append(all, Rights{seccomp: true, label: label}.policyObstacles()...)
	}
	for _, o := range all {
		sandboxes = append(sandboxes, o.option, o.field)
	}
	limits := append(optionIn.FindAllString(Rights{engine: anyEngine}.WritableCgroups(true), -1), "cgroup_writable = true")
	// Flags of the image itself.
	known := append(slices.Concat(sandboxes, limits), "--security-opt no-new-privileges", "--cap-drop all")
	for page, wanted := range map[string][]string{
		"docs/reference/platforms.md": slices.Concat(sandboxes, limits), "docs/deploy/README.md": sandboxes, "docs/explanation/limits.md": nil,
	} {
		text := readPage(t, page)
		for _, flag := range wanted {
			if !strings.Contains(text, flag) {
				t.Errorf("%s lacks %s, which doctor prints", page, flag)
			}
		}
		for _, flag := range optionIn.FindAllString(text, -1) {
			if !slices.Contains(known, flag) {
				t.Errorf("%s has %s, which doctor does not print", page, flag)
			}
		}
	}
}

var optionIn = regexp.MustCompile(`--(security-opt[ =]|cgroupns=|cap-drop |user [0-9])[A-Za-z0-9=/_-]+`)

// readPage returns a page with its lines joined, as flags may be in two lines.
func readPage(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), page))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}
