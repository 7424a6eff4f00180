//go:build linux

package sandbox

import (
	"golang.org/x/sys/unix"

	"sallyport/sandbox/rights"
)

// checkCgroups says how limits are enforced, and what the kernel would need to enforce them.
func checkCgroups(opts Options, r rights.Rights) Check {
	found := cgroups{mode: NoCgroup}
	if !opts.NoCgroups {
		found = findCgroups(ownThread)
	}
	check := Check{Name: "limits", OK: true, Warn: !found.limitsMemory, Detail: string(found.mode)}
	switch {
	case found.limitsMemory:
		check.Detail += " below " + found.memory
		return check
	case found.mode == CgroupV2:
		check.Detail += " below " + found.memory + ", without its memory controller: memory is limited by watching it"
		check.Fix = "nothing needs to be done; " + rights.OwnScope
		return check
	}
	why, readOnly := whyNoCgroup(ownCgroups(ownThread))
	check.Detail += " (memory every 20 ms, processor time every 100 ms), because " + why
	check.Fix = "nothing needs to be done; " + r.WritableCgroups(readOnly)
	return check
}

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
