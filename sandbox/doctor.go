//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox/runsc"
)

// Checks checks all prerequisites for running programs, and finally runs a test
// program in each language. It takes a few seconds at most.
func Checks(ctx context.Context, opts Options) []Check {
	checks := []Check{
		checkRunsc(ctx, opts), checkPlatform(), checkNamespaces(ctx),
		checkInterpreter(ctx, "python", minVersion{3, 11}, opts.Python, "/usr/bin/python3", "python3"),
		checkInterpreter(ctx, "node", minVersion{20, 0}, opts.Node, "/usr/bin/node", "node", "nodejs"),
		checkCgroups(opts),
	}
	for _, check := range checks {
		if !check.OK {
			return checks // a program would fail for the same reason
		}
	}
	return append(checks, checkRun(ctx, opts)...)
}

func checkRunsc(ctx context.Context, opts Options) Check {
	check := Check{Name: "runsc", Fix: "run `make runsc`, put runsc beside sallyport or into PATH, or set sandbox.runsc in upstreams.yaml"}
	path, err := FindRunsc(opts.Runsc)
	if err != nil {
		check.Detail = "gVisor's runsc was not found"
		return check
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	version, err := (&runsc.Runsc{Path: path}).Version(ctx)
	if err != nil {
		check.Detail = fmt.Sprintf("%s does not run: %v", path, err)
		return check
	}
	return Check{Name: "runsc", OK: true, Detail: strings.TrimPrefix(version, "runsc version ") + " at " + path}
}

// probeLimit is the time limit of each probe, such as a --version command.
const probeLimit = 5 * time.Second

// checkPlatform reports gVisor's platform. kvm is never used, because it was seen to hang.
func checkPlatform() Check {
	check := Check{Name: "platform", OK: true, Detail: "systrap"}
	if _, err := os.Stat("/dev/kvm"); err == nil {
		check.Detail += "; /dev/kvm is there and not used"
	}
	return check
}

// checkNamespaces tries to create a user namespace, because many settings can forbid that.
func checkNamespaces(ctx context.Context) Check {
	if os.Geteuid() == 0 {
		return Check{Name: "user namespaces", OK: true, Detail: "not needed as root"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrNotFound) {
		return Check{Name: "user namespaces", Detail: fmt.Sprintf("they cannot be made here, and sandboxes of an ordinary user need them: %v", err), Fix: namespaceFix()}
	}
	return Check{Name: "user namespaces", OK: true, Detail: "sandboxes run rootless in one"}
}

func namespaceFix() string {
	for _, setting := range []struct{ path, bad, fix string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=15000"},
	} {
		if data, err := os.ReadFile(setting.path); err == nil && strings.TrimSpace(string(data)) == setting.bad {
			return setting.fix
		}
	}
	return "allow them (in a container: --privileged or a seccomp profile that allows unshare), or run as root"
}

// minVersion is the minimum version, major and minor, of an interpreter.
type minVersion [2]int

var versionNumber = regexp.MustCompile(`(\d+)\.(\d+)`)

// allows reports whether an interpreter's version output is at least that version.
func (o minVersion) allows(version string) bool {
	found := versionNumber.FindStringSubmatch(version)
	if found == nil {
		return false
	}
	major, majorErr := strconv.Atoi(found[1])
	minor, minorErr := strconv.Atoi(found[2])
	return majorErr == nil && minorErr == nil && (major > o[0] || major == o[0] && minor >= o[1])
}

func checkInterpreter(ctx context.Context, name string, oldest minVersion, explicit string, names ...string) Check {
	found, err := findInterpreter(explicit, "", names...)
	if err != nil {
		return Check{Name: name, Detail: err.Error(), Fix: "install it (apt install " + map[string]string{"python": "python3", "node": "nodejs"}[name] + "), or set sandbox." + name + " in upstreams.yaml to the path of one"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, found.path, "--version")
	cmd.WaitDelay = probeLimit
	out, err := cmd.Output()
	version := sanitize.Line(string(out), 60) + " at " + found.path
	switch {
	case err != nil:
		return Check{Name: name, Detail: fmt.Sprintf("%s does not run: %v", found.path, err), Fix: "set sandbox." + name + " in upstreams.yaml to one that does"}
	case !oldest.allows(string(out)):
		return Check{Name: name, Detail: version + " is too old", Fix: fmt.Sprintf("install %d.%d or later, or set sandbox.%s in upstreams.yaml to the path of one", oldest[0], oldest[1], name)}
	}
	return Check{Name: name, OK: true, Detail: version}
}

func checkCgroups(opts Options) Check {
	found := cgroups{mode: NoCgroup}
	if !opts.NoCgroups {
		found = findCgroups("/proc/self")
	}
	check := Check{Name: "limits", OK: true, Detail: string(found.mode)}
	switch {
	case found.limitsMemory:
		check.Detail += " below " + found.memory
	case found.mode == CgroupV2:
		check.Warn, check.Detail = true, check.Detail+" below "+found.memory+", without its memory controller: memory is limited by watching it"
		check.Fix = "nothing needs to be done; in a cgroup of its own (systemd-run --user --scope -p Delegate=yes sallyport ...) the kernel limits memory too"
	default:
		check.Warn, check.Detail = true, check.Detail+": memory every 20 ms, processor time every 100 ms"
		check.Fix = "nothing needs to be done; as root, or in a cgroup of its own (systemd-run --user --scope -p Delegate=yes sallyport ...), the kernel limits memory too"
	}
	return check
}

// checkRun runs a program in each language.
func checkRun(ctx context.Context, opts Options) []Check {
	fix := "run with --log-level debug; runsc's own reason is in its log"
	host, err := New(opts)
	if err != nil {
		return []Check{{Name: "sandbox", Detail: err.Error(), Fix: fix}}
	}
	defer func() { _ = host.Close() }()
	var checks []Check
	for _, interpreter := range []Interpreter{Python, Node} {
		code := map[Interpreter]string{Python: "6 * 7", Node: "export default 6 * 7"}[interpreter]
		check := Check{Name: "sandbox with " + string(interpreter), Fix: fix}
		start := time.Now()
		outcome, err := host.Run(ctx, Job{ID: "doctor-" + string(interpreter), Interpreter: interpreter, Code: code, Limits: DefaultLimits()}, noTools{})
		switch {
		case err != nil:
			check.Detail = err.Error()
		case outcome.Value == nil || outcome.Value.Text != "42":
			check.Detail = fmt.Sprintf("the test program ended with %s: %s", outcome.Status, strings.TrimSpace(outcome.Stderr.Text))
		default:
			check = Check{Name: check.Name, OK: true, Detail: fmt.Sprintf("a test program ran in %d ms", time.Since(start).Milliseconds())}
		}
		checks = append(checks, check)
	}
	return checks
}

// noTools is the caller of programs without tools: every call fails.
type noTools struct{}

func (noTools) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there are no tools here"}
}

// Runtime returns the version and the path of runsc; explicit is the path in the settings, or "".
func Runtime(ctx context.Context, explicit string) (version, path string, err error) {
	if path, err = FindRunsc(explicit); err != nil {
		return "", "", err
	}
	version, err = (&runsc.Runsc{Path: path}).Version(ctx)
	return strings.TrimPrefix(version, "runsc version "), path, err
}
