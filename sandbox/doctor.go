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
	"sallyport/sandbox/rights"
	"sallyport/sandbox/runsc"
)

// Checks checks all prerequisites for running programs, and finally runs a test
// program in each language. It takes a few seconds at most.
func Checks(ctx context.Context, opts Options) []Check {
	r := rights.Read("/", os.Geteuid())
	checks := []Check{
		checkRunsc(ctx, opts), checkPlatform(), checkNamespaces(ctx, r),
		checkInterpreter(ctx, "python", minVersion{3, 11}, opts.Python, "/usr/bin/python3", "python3"),
		checkInterpreter(ctx, "node", minVersion{20, 0}, opts.Node, "/usr/bin/node", "node", "nodejs"),
		checkCgroups(opts, r),
	}
	for _, check := range checks {
		if !check.OK {
			return checks // a program would fail for the same reason
		}
	}
	return append(checks, checkRun(ctx, opts, r)...)
}

func checkRunsc(ctx context.Context, opts Options) Check {
	check := Check{Name: "runsc", Fix: runscFix()}
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

// checkNamespaces tries to start a process in the namespaces of a sandbox, because many settings and policies can forbid that.
func checkNamespaces(ctx context.Context, r rights.Rights) Check {
	if err := tryNamespaces(ctx); err != nil {
		return namespaceProblem(r, err)
	}
	check := Check{Name: "user namespaces", OK: true, Detail: "sandboxes run rootless in one"}
	switch {
	case !r.Rootless():
		check.Detail = "available, and root has the capabilities that it needs"
	case r.Root():
		check.Detail += ": root lacks " + strings.Join(r.Missing(), ", ")
	}
	return check
}

// tryNamespaces starts a process in a user namespace that makes a mount namespace and mounts in it. As root, runsc does that too.
func tryNamespaces(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{}
	cmd.SysProcAttr = runsc.Namespace()
	// The process itself mounts then, which AppArmor can forbid although it permits the user namespace.
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	err := cmd.Start()
	if err == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // what it does does not matter
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func namespaceProblem(r rights.Rights, err error) Check {
	check := Check{Name: "user namespaces", Detail: fmt.Sprintf("they cannot be made here, and sandboxes of an ordinary user need them: %v", err)}
	if r.Root() {
		check.Detail = fmt.Sprintf("root can start no sandbox here: %v", err)
	}
	found := r.Obstacles()
	check.Fix = r.Remedy(found)
	if len(found) > 0 {
		check.Detail += "; " + rights.Describe(found)
	} else {
		check.Fix = "allow user namespaces; they cannot be made in a chroot, nor by a user without a mapping"
	}
	return check
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

// checkRun runs a program in each language.
func checkRun(ctx context.Context, opts Options, r rights.Rights) []Check {
	fix := "run with --log-level debug; runsc's own reason is in its log"
	if found := r.Obstacles(); len(found) > 0 {
		fix += "\npossible cause: " + rights.Describe(found) + "\n" + r.Remedy(found)
	}
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
