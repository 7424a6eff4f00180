//go:build linux

package sandbox

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// checkCgroups says how limits are enforced, and what the kernel would need to enforce them.
func checkCgroups(opts Options, r rights) Check {
	found := cgroups{mode: NoCgroup}
	if !opts.NoCgroups {
		found = findCgroups("/proc/self")
	}
	check := Check{Name: "limits", OK: true, Warn: !found.limitsMemory, Detail: string(found.mode)}
	switch {
	case found.limitsMemory:
		check.Detail += " below " + found.memory
		return check
	case found.mode == CgroupV2:
		check.Detail += " below " + found.memory + ", without its memory controller: memory is limited by watching it"
		check.Fix = "nothing needs to be done; " + ownScope
		return check
	}
	why, readOnly := whyNoCgroup(ownCgroups("/proc/self"))
	check.Detail += " (memory every 20 ms, processor time every 100 ms), because " + why
	check.Fix = "nothing needs to be done; " + writableCgroups(r.engine, readOnly)
	return check
}

const ownScope = "in a cgroup of its own (systemd-run --user --scope -p Delegate=yes sallyport ...) the kernel limits memory too"

// whyNoCgroup returns why no cgroup can be made in the cgroups of this process.
func whyNoCgroup(own map[string]string) (why string, readOnly bool) {
	version, dir := "cgroup v1", own["memory"]
	if dir == "" {
		version, dir = "cgroup v2", own[""]
	}
	if dir == "" {
		return "no cgroup of this process is mounted", false
	}
	var at unix.Statfs_t
	if unix.Statfs(dir, &at) == nil && at.Flags&unix.ST_RDONLY != 0 {
		return version + " is mounted read-only", true
	}
	return version + " at " + dir + " is not delegated to this user", false
}

// writableCgroups returns how the kernel can be made to limit memory.
func writableCgroups(e engine, readOnly bool) string {
	if !readOnly {
		return "as root, or " + ownScope
	}
	const docker28, unmasked = "docker run --cgroupns=private --security-opt writable-cgroups=true (Docker 28 or later)", "podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup"
	const node = "Kubernetes: cgroup_writable = true in the settings of the node's containerd"
	flags := map[engine]string{docker: docker28, podman: unmasked, kubernetes: node}
	return "as root, with writable cgroups the kernel limits memory too:\n" + cmp.Or(flags[e], docker28+"\n"+unmasked+"\n"+node)
}
