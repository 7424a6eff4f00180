//go:build linux

package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Obstacle is one reason why sandboxes cannot start, with what removes it.
type Obstacle struct {
	what string
	// fix is a command or an action on the host, "" if only flags of the container help.
	fix string
	// option and field are what lifts it in a container: an option of docker and podman, and a member of securityContext in Kubernetes.
	option, field string
}

// Obstacles returns what can forbid sandboxes to start, the most certain one first.
func (r Rights) Obstacles() []Obstacle {
	if !r.proc {
		return []Obstacle{{what: "/proc is not mounted", fix: "mount -t proc proc /proc"}}
	}
	return slices.Concat(r.kernelObstacles(), r.processObstacles(), r.policyObstacles())
}

// kernelObstacles are settings of the kernel.
func (r Rights) kernelObstacles() (all []Obstacle) {
	add := func(bad bool, what, fix string) {
		if bad {
			all = append(all, Obstacle{what: what, fix: fix})
		}
	}
	add(r.sysctls[sysctlNamespaces] == "0", "user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000")
	add(!r.has(unix.CAP_SYS_ADMIN) && r.sysctls[sysctlClone] == "0", "kernel.unprivileged_userns_clone is 0", "sudo sysctl kernel.unprivileged_userns_clone=1")
	add(!r.has(unix.CAP_SYS_ADMIN) && r.sysctls[sysctlAppArmor] == "1", "AppArmor restricts unprivileged user namespaces (Ubuntu 23.10 and later)",
		"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for runsc")
	add(r.sysctls[sysctlPtrace] == "3", "kernel.yama.ptrace_scope is 3, and gVisor traces its processes", "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and restart the machine")
	return all
}

// processObstacles are properties of this process.
func (r Rights) processObstacles() (all []Obstacle) {
	if r.user == 0 && r.Rootless() && !r.has(unix.CAP_SETFCAP) {
		all = append(all, Obstacle{
			what:   "root lacks " + strings.Join(r.Missing(), ", ") + ", and also CAP_SETFCAP, without which it cannot make a user namespace (Linux 5.12 and later)",
			fix:    "run it as an ordinary user, or give root CAP_SETFCAP",
			option: "--user 1000", field: "runAsUser: 1000",
		})
	}
	if r.chrooted {
		all = append(all, Obstacle{what: "no user namespace can be made in a chroot", fix: "use a container or systemd-nspawn in place of chroot"})
	}
	return all
}

// policyObstacles are the filters and the policies that containers have by default.
func (r Rights) policyObstacles() (all []Obstacle) {
	if r.seccomp {
		all = append(all, Obstacle{what: "a seccomp filter is active; the usual ones of containers deny unshare, mount and pivot_root",
			option: "--security-opt seccomp=unconfined", field: "seccompProfile: {type: Unconfined}"})
	}
	switch {
	case r.label == "" || strings.HasPrefix(r.label, "unconfined"):
	case strings.Count(r.label, ":") >= 3: // user:role:type:level of SELinux
		if strings.Contains(r.label, ":container") {
			all = append(all, Obstacle{what: fmt.Sprintf("SELinux confines this process (%.60s)", r.label), option: "--security-opt label=disable", field: "seLinuxOptions: {type: spc_t}"})
		}
	default:
		all = append(all, Obstacle{what: fmt.Sprintf("AppArmor confines this process (%.60s); the usual profiles of containers deny mount", r.label),
			option: "--security-opt apparmor=unconfined", field: "appArmorProfile: {type: Unconfined}"})
	}
	return all
}

// Remedy joins what removes the obstacles: one line for the host, and one for each engine that can run this container.
func (r Rights) Remedy(all []Obstacle) string {
	var fixes, options, fields []string
	for _, o := range all {
		if o.fix != "" {
			fixes = append(fixes, o.fix)
		}
		if o.option != "" {
			options, fields = append(options, o.option), append(fields, o.field)
		}
	}
	var lines []string
	if len(fixes) > 0 {
		lines = append(lines, strings.Join(fixes, "; "))
	}
	if len(options) > 0 && (r.engine != "" || len(fixes) == 0) {
		lines = append(lines, r.engine.flags(options, fields)...)
	}
	return strings.Join(lines, "\n")
}

// flags returns one line for each engine that this one can be.
func (e engine) flags(options, fields []string) (lines []string) {
	each := []struct {
		engine engine
		line   string
	}{
		{docker, "docker run " + strings.Join(options, " ")},
		{podman, "podman run " + strings.Join(options, " ")},
		{kubernetes, "Kubernetes: securityContext: {" + strings.Join(fields, ", ") + "}"},
	}
	for _, one := range each {
		if e == one.engine || e == anyEngine || e == "" {
			lines = append(lines, one.line)
		}
	}
	return lines
}

// Describe joins the reasons.
func Describe(all []Obstacle) string {
	var what []string
	for _, o := range all {
		what = append(what, o.what)
	}
	return strings.Join(what, "; ")
}

// OwnScope says how an ordinary user can have the kernel limit memory.
const OwnScope = "in a cgroup of its own (systemd-run --user --scope -p Delegate=yes sallyport ...) the kernel limits memory too"

// WritableCgroups returns how the kernel can be made to limit memory.
func (r Rights) WritableCgroups(readOnly bool) string {
	if !readOnly {
		return "as root, or " + OwnScope
	}
	const docker28, unmasked = "docker run --cgroupns=private --security-opt writable-cgroups=true (Docker 28 or later)", "podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup"
	const node = "Kubernetes: cgroup_writable = true in the settings of the node's containerd"
	flags := map[engine]string{docker: docker28, podman: unmasked, kubernetes: node}
	return "as root, with writable cgroups the kernel limits memory too:\n" + cmp.Or(flags[r.engine], docker28+"\n"+unmasked+"\n"+node)
}
