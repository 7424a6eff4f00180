//go:build linux

// Package rights detects what the kernel permits this process, and what can prevent it from starting sandboxes. [Read] returns
// the [Rights]. Obstacles returns what is missing, and Remedy how to fix it.
package rights

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Rights are what the kernel lets this process do, and what can forbid it to start sandboxes.
type Rights struct {
	// proc says that /proc is mounted. Without it, the other fields are unknown.
	proc bool
	user int
	// capabilities is the bit set of the effective capabilities.
	capabilities uint64
	// seccomp says that a system call filter is active.
	seccomp bool
	// label is the AppArmor profile or the SELinux context of this process, "" if neither is active.
	label string
	// chrooted says that the root of this process is not a mount point.
	chrooted bool
	// sysctls are the kernel settings of [sysctlNames] that exist.
	sysctls map[string]string
	engine  engine
}

// engine is the program that runs the container of this process.
type engine string

// The known engines, "" if there is no container and anyEngine if the engine is unknown.
const (
	docker     engine = "docker"
	podman     engine = "podman"
	kubernetes engine = "Kubernetes"
	anyEngine  engine = "unknown"
)

// sysctlNames returns the kernel settings that can forbid user namespaces or gVisor's platform.
func sysctlNames() []string {
	return []string{sysctlNamespaces, sysctlClone, sysctlAppArmor, sysctlPtrace}
}

const (
	sysctlNamespaces = "user/max_user_namespaces"
	sysctlClone      = "kernel/unprivileged_userns_clone"
	sysctlAppArmor   = "kernel/apparmor_restrict_unprivileged_userns"
	sysctlPtrace     = "kernel/yama/ptrace_scope"
)

// Read reads the rights of this process from the files below root, usually "/".
func Read(root string, user int) Rights {
	r := Rights{user: user, sysctls: map[string]string{}, engine: readEngine(root)}
	self := filepath.Join(root, "proc", "self")
	status, err := os.ReadFile(filepath.Join(self, "status"))
	r.proc = err == nil
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "CapEff":
			r.capabilities, _ = strconv.ParseUint(value, 16, 64)
		case "Seccomp":
			r.seccomp = value != "0"
		}
	}
	r.label = readWord(filepath.Join(self, "attr", "current"))
	mounts, err := os.ReadFile(filepath.Join(self, "mountinfo"))
	r.chrooted = err == nil && !mountsRoot(string(mounts))
	for _, name := range sysctlNames() {
		if value := readWord(filepath.Join(root, "proc", "sys", name)); value != "" {
			r.sysctls[name] = value
		}
	}
	return r
}

// readWord returns the content of a small file without spaces and zero bytes around it, "" if it cannot be read.
func readWord(path string) string {
	data, _ := os.ReadFile(path)
	return strings.Trim(string(data), " \n\x00")
}

// mountsRoot reports whether a mountinfo file has a mount at /.
func mountsRoot(mounts string) bool {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return true
		}
	}
	return false
}

// readEngine detects the engine by the files that it leaves in a container.
func readEngine(root string) engine {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	groups := readWord(filepath.Join(root, "proc", "self", "cgroup"))
	switch {
	case exists("var/run/secrets/kubernetes.io"), exists("run/secrets/kubernetes.io"), strings.Contains(groups, "/kubepods"):
		return kubernetes
	case exists("run/.containerenv"), strings.Contains(groups, "/libpod"):
		return podman
	case exists(".dockerenv"), strings.Contains(groups, "/docker"):
		return docker
	case exists("run/systemd/container"):
		return anyEngine
	}
	return ""
}

// needed returns the capabilities with which root starts sandboxes without a user namespace.
func needed() []int { return []int{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID} }

// capabilityNames returns the names of the capabilities that sandboxes can need.
func capabilityNames() map[int]string {
	return map[int]string{unix.CAP_SYS_ADMIN: "SYS_ADMIN", unix.CAP_SETUID: "SETUID", unix.CAP_SETGID: "SETGID", unix.CAP_SETFCAP: "SETFCAP"}
}

func (r Rights) has(capability int) bool { return r.capabilities&(1<<capability) != 0 }

// Missing returns the names of the capabilities that this process lacks to start sandboxes as root, with their prefix.
func (r Rights) Missing() (names []string) {
	for _, capability := range needed() {
		if !r.has(capability) {
			names = append(names, "CAP_"+capabilityNames()[capability])
		}
	}
	return names
}

// Rootless reports whether sandboxes need a user namespace: for an ordinary user, and for root without what it needs.
func (r Rights) Rootless() bool {
	return r.user != 0 || r.proc && slices.ContainsFunc(needed(), func(capability int) bool { return !r.has(capability) })
}

// Root reports whether the user of this process is root.
func (r Rights) Root() bool { return r.user == 0 }
