//go:build linux

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LimitMode is how a machine enforces the memory and CPU time limits of sandboxes.
type LimitMode string

// The modes. All of them poll, see [watch], and so report the same statuses. With a cgroup the kernel also
// enforces the memory limit, with headroom for gVisor itself, counts CPU time, and knows
// every process of a sandbox.
const (
	CgroupV1 LimitMode = "cgroup v1"
	CgroupV2 LimitMode = "cgroup v2"
	NoCgroup LimitMode = "no cgroup: limits by watching"
)

// cgroups describes where cgroups of sandboxes can be made. We make them ourselves and start runsc
// inside them: runsc itself would touch every hierarchy of the machine, need all controllers of a unified
// one, and remove the cgroup with its events before we can read why a sandbox ended. The pids controller is not used:
// at its limit, gVisor's kernel dies without a message.
type cgroups struct {
	mode LimitMode
	// memory and cpu are the folders of our own cgroup; on v2 they are the same. cpu is "" if CPU time is not counted.
	memory, cpu string
	// limitsMemory means that the kernel limits memory there.
	limitsMemory bool
	// headroom is added to the memory limit of a sandbox, for gVisor itself and the interpreter's start.
	headroom int64
}

// ownThread is the folder with the cgroups of the calling thread. That of the process, /proc/self, has those of its first
// thread, which may be in a sandbox's cgroup while it starts it, see enter; then it is locked, so it is not the calling one.
const ownThread = "/proc/thread-self"

// findCgroups reads our own cgroup from the files of self, a folder like ownThread, and tries to make a cgroup there.
func findCgroups(self string) cgroups {
	own := ownCgroups(self)
	if dir := own["memory"]; canMake(dir, "memory.limit_in_bytes") {
		found := cgroups{mode: CgroupV1, memory: dir, limitsMemory: true, headroom: sentryHeadroom}
		if canMake(own["cpuacct"], "cpuacct.usage") {
			found.cpu = own["cpuacct"]
		}
		return found
	}
	dir := own[""]
	if strings.HasPrefix(filepath.Base(dir), gatewayCgroupPrefix) { // delegate moved us there
		dir = filepath.Dir(dir)
	}
	if canMake(dir, "cgroup.procs") {
		return cgroups{mode: CgroupV2, memory: dir, cpu: dir, limitsMemory: delegate(dir, "memory"), headroom: sentryHeadroom}
	}
	return cgroups{mode: NoCgroup}
}

// canMake reports whether a cgroup with that file can be made in dir.
func canMake(dir, file string) bool {
	if dir == "" {
		return false
	}
	probe, err := os.MkdirTemp(dir, "sallyport-probe-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(probe) }()
	return unix.Access(filepath.Join(probe, file), unix.W_OK) == nil || unix.Access(filepath.Join(probe, file), unix.R_OK) == nil && file == "cpuacct.usage"
}

// ownCgroups returns the folder of our cgroup by controller, with "" for v2. It follows
// the mounts, because a container may see only a part of each hierarchy.
func ownCgroups(self string) map[string]string {
	paths, own := memberships(self), map[string]string{}
	data, _ := os.ReadFile(filepath.Join(self, "mountinfo"))
	for line := range strings.Lines(string(data)) {
		before, after, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
			continue
		}
		names := strings.Split(kind[2], ",")
		if kind[0] == "cgroup2" {
			names = []string{""}
		}
		for _, name := range names {
			path, known := paths[name]
			if rel, err := filepath.Rel(place[3], path); known && err == nil && filepath.IsLocal(rel) && own[name] == "" {
				own[name] = filepath.Join(place[4], rel)
			}
		}
	}
	return own
}

// memberships returns the path of our cgroup by controller, without those outside the visible hierarchy.
func memberships(self string) map[string]string {
	paths := map[string]string{}
	data, _ := os.ReadFile(filepath.Join(self, "cgroup"))
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || strings.HasPrefix(parts[2], "/..") {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	return paths
}

// gatewayCgroupPrefix is the name prefix of the cgroup that delegate moves us into.
const gatewayCgroupPrefix = "sallyport-gateway-"

// delegate enables a controller for cgroups below dir, our own v2 cgroup. That requires dir to
// have no processes: if only this process and its descendants are in it, they move into a child cgroup.
func delegate(dir, controller string) bool {
	has := func(file string) bool {
		data, err := os.ReadFile(filepath.Join(dir, file))
		return err == nil && slices.Contains(strings.Fields(string(data)), controller)
	}
	enable := func() bool {
		return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o600) == nil && has("cgroup.subtree_control")
	}
	if has("cgroup.subtree_control") {
		return true
	}
	if !has("cgroup.controllers") {
		return false
	}
	if enable() {
		return true
	}
	leaf := filepath.Join(dir, gatewayCgroupPrefix+strconv.Itoa(os.Getpid()))
	pids := pidsIn(dir)
	if !slices.Contains(pids, os.Getpid()) || !allDescendants(pids) || os.Mkdir(leaf, 0o755) != nil {
		return false
	}
	for _, pid := range pids {
		_ = moveInto(leaf, pid) // an error means that the process has ended
	}
	return enable()
}

func moveInto(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
}

// allDescendants reports whether all pids are this process or its descendants.
func allDescendants(pids []int) bool {
	for _, pid := range pids {
		for pid != os.Getpid() {
			if pid <= 1 {
				return false
			}
			pid = readStat(pid).parent
		}
	}
	return true
}

func pidsIn(dir string) []int {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// cgroup is the cgroup of one sandbox, nil if cgroups are not used. Its methods accept nil and are safe for concurrent use.
type cgroup struct {
	parent cgroups
	name   string
}

// cgroupName names the cgroup of one sandbox by its host's directory and its id.
func cgroupName(dir, id string) string {
	return "sallyport-" + filepath.Base(dir) + "-" + id
}

// make creates a cgroup with a limit of that many bytes of memory plus headroom. It returns nil without cgroups.
func (c cgroups) make(name string, memory int64) (*cgroup, error) {
	if c.memory == "" {
		return nil, nil //nolint:nilnil // nil means no cgroup, and its methods do nothing
	}
	g := &cgroup{parent: c, name: name}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("make cgroup: %w", err), g.remove())
		}
	}
	if !c.limitsMemory {
		return g, nil
	}
	if err := g.limit(memory); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

// limit sets the memory limit of the sandbox in bytes, plus headroom.
func (g *cgroup) limit(memory int64) error {
	if g == nil || !g.parent.limitsMemory {
		return nil
	}
	bytes := []byte(strconv.FormatInt(memory+g.parent.headroom, 10))
	dir, file, rest := g.memory(), "memory.max", map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"}
	if g.parent.mode == CgroupV1 {
		file, rest = "memory.limit_in_bytes", map[string]string{"memory.swappiness": "0"}
	}
	if err := os.WriteFile(filepath.Join(dir, file), bytes, 0o600); err != nil {
		return fmt.Errorf("limit memory of cgroup: %w", err)
	}
	for name, value := range rest { // optional: not every kernel has them
		_ = os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600)
	}
	return nil
}

func (g *cgroup) memory() string { return filepath.Join(g.parent.memory, g.name) }

// dirs returns the folders of the cgroup, one for each hierarchy.
func (g *cgroup) dirs() []string {
	dirs := []string{g.memory()}
	if g.parent.cpu != "" && g.parent.cpu != g.parent.memory {
		dirs = append(dirs, filepath.Join(g.parent.cpu, g.name))
	}
	return dirs
}

// enter implements the Enter hook of [runsc.Runsc]: the next process that this thread starts begins in the cgroup. The thread
// must be locked to its goroutine, so that Go starts no other process from it.
func (g *cgroup) enter(attr *syscall.SysProcAttr) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	if g.parent.mode == CgroupV2 {
		dir, err := os.Open(g.memory())
		if err != nil {
			return nil, fmt.Errorf("enter cgroup: %w", err)
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
		return func() { _ = dir.Close() }, nil
	}
	// On v1 a thread can be in another cgroup than its process, and its children start there.
	move := func(dirs ...string) error {
		var errs []error
		for _, dir := range dirs {
			errs = append(errs, os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0o600))
		}
		return errors.Join(errs...)
	}
	leave = func() { _ = move(g.parent.memory, cmp.Or(g.parent.cpu, g.parent.memory)) }
	if err := move(g.dirs()...); err != nil {
		leave()
		return nil, fmt.Errorf("enter cgroup: %w", err)
	}
	return leave, nil
}

// cpuTime returns the CPU time used inside, and false if it is not counted.
func (g *cgroup) cpuTime() (time.Duration, bool) {
	if g == nil || g.parent.cpu == "" {
		return 0, false
	}
	dir := filepath.Join(g.parent.cpu, g.name)
	if g.parent.mode == CgroupV2 {
		µs, ok := readKeyedInt(filepath.Join(dir, "cpu.stat"), "usage_usec")
		return time.Duration(µs) * time.Microsecond, ok
	}
	data, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	if err != nil {
		return 0, false
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return time.Duration(ns), err == nil
}

// outOfMemory reports whether the kernel's OOM killer has killed a process inside.
func (g *cgroup) outOfMemory() bool {
	if g == nil || !g.parent.limitsMemory {
		return false
	}
	file := "memory.events"
	if g.parent.mode == CgroupV1 {
		file = "memory.oom_control"
	}
	n, ok := readKeyedInt(filepath.Join(g.memory(), file), "oom_kill")
	return ok && n > 0
}

// readKeyedInt reads the number of a name from a file with lines of the form "name number".
func readKeyedInt(path, name string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// kill kills every process inside.
func (g *cgroup) kill() {
	if g == nil {
		return
	}
	if g.parent.mode == CgroupV2 && os.WriteFile(filepath.Join(g.memory(), "cgroup.kill"), []byte("1"), 0o600) == nil {
		return
	}
	for _, pid := range pidsIn(g.memory()) {
		if pid != os.Getpid() { // a thread of ours may be inside briefly, see enter
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// remove kills remaining processes and removes the cgroup. It is not an error if the cgroup does not exist.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs() {
		err := os.Remove(dir)
		for range 200 { // the last process may not have exited yet
			if !errors.Is(err, syscall.EBUSY) {
				break
			}
			g.kill()
			time.Sleep(5 * time.Millisecond)
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove cgroup: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removeTimeout is how long the last process of a sandbox may take to exit.
const removeTimeout = 10 * time.Second

// removeLater retries remove while the cgroup is busy. What is still busy then is removed with the host.
func (g *cgroup) removeLater() {
	for end := time.Now().Add(removeTimeout); time.Now().Before(end); {
		if !errors.Is(g.remove(), syscall.EBUSY) {
			return
		}
	}
}

// clear kills and removes all cgroups of the host with directory dir.
func (c cgroups) clear(dir string) error {
	if c.memory == "" {
		return nil
	}
	var errs []error
	for _, parent := range slices.Compact([]string{c.memory, cmp.Or(c.cpu, c.memory)}) {
		left, err := filepath.Glob(filepath.Join(parent, cgroupName(dir, "*")))
		errs = append(errs, err)
		for _, dir := range left {
			errs = append(errs, (&cgroup{parent: c, name: filepath.Base(dir)}).remove())
		}
	}
	return errors.Join(errs...)
}
