package sandboxtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Testbed is a test machine with secrets and files for attacks to steal or damage. After
// each attack these oracles are checked:
//
//	O1 nothing of the host's files has changed
//	O2 no process, mount, cgroup, socket or file of the execution is left
//	O3 a harmless program gives the right value
//	O4 what was planted as secret appears in no outcome, no log and no file of the sandboxes
//	O5 this process does not use 64 MiB more
//	O6 the log has one end of the execution
//	O7 no one was connected to
type Testbed struct {
	// Runner is what is attacked. It runs in this process, with its state in State, and logs to Log.
	Runner Runner
	State  string
	// Waiting is how many sandboxes may wait for programs.
	Waiting int

	dir, canary  string
	log          *journal
	traps        []*trap
	placeholders *strings.Replacer
}

// maxGrowth is the allowed memory growth of this process during an attack, in bytes (O5).
const maxGrowth = 64 << 20

// NewTestbed plants secrets: settings, another principal's workspace, sockets and environment variables. The caller must set Runner.
func NewTestbed(t *testing.T, state string) *Testbed {
	t.Helper()
	secret := make([]byte, 16)
	_, _ = rand.Read(secret)
	r := &Testbed{State: state, dir: testutil.ShortDir(t), canary: hex.EncodeToString(secret), log: &journal{}}
	t.Setenv("AWS_SECRET_ACCESS_KEY", r.canary)
	t.Setenv("SALLYPORT_TOKEN", r.canary)
	for name, mode := range map[string]os.FileMode{"settings/upstreams.yaml": 0o600, "settings/tokens/github.json": 0o600, "workspaces/other/notes.txt": 0o644, "world-readable": 0o644} {
		path := filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("token: "+r.canary+"\n"), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.setTraps(t)
	return r
}

// Logger returns the logger for the runner, which the oracles read.
func (r *Testbed) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// setTraps listens on addresses that a program must not reach.
func (r *Testbed) setTraps(t *testing.T) {
	t.Helper()
	abstract := fmt.Sprintf("@sallyport-%s", r.canary[:8])
	addresses := []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "0.0.0.0:0"}, {"unix", filepath.Join(r.dir, "docker.sock")}, {"unix", abstract},
	}
	var ports []string
	for _, a := range addresses {
		trap, err := setTrap(a.network, a.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(trap.close)
		r.traps = append(r.traps, trap)
		if _, port, err := net.SplitHostPort(trap.listener.Addr().String()); err == nil {
			ports = append(ports, port)
		}
	}
	if err := os.Chmod(filepath.Join(r.dir, "docker.sock"), 0o777); err != nil {
		t.Fatal(err)
	}
	r.placeholders = strings.NewReplacer("@DIR@", r.dir, "@STATE@", r.State, "@PID@", strconv.Itoa(os.Getpid()), "@ABSTRACT@", abstract[1:],
		"@PORT@", ports[0], "@ANYPORT@", ports[1], "@HOST@", ownAddress(), "@HALF@", r.canary[:16], "@YRANAC@", reverse(r.canary))
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// ownAddress is an address of this machine that is not loopback, if it has one.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}

// trap is a listener that counts connections.
type trap struct {
	listener net.Listener
	hits     atomic.Int64
	done     chan struct{}
}

func setTrap(network, address string) (*trap, error) {
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	t := &trap{listener: listener, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.hits.Add(1)
			_ = conn.Close()
		}
	}()
	return t, nil
}

func (t *trap) close() {
	_ = t.listener.Close()
	<-t.done
}

// journal keeps what was logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// since is what was logged after the first n bytes.
func (j *journal) since(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()[n:]
}

// meter is Echo for one execution: it knows the execution of the calls and how many there were at once.
type meter struct {
	Echo
	t         *testing.T
	execution string
	limit     int64
	open      atomic.Int64
}

// Call is one call.
func (m *meter) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	defer m.open.Add(-1)
	if n := m.open.Add(1); n > m.limit {
		m.t.Errorf("%d calls at once, allowed are %d", n, m.limit)
	}
	if call.Execution != m.execution {
		m.t.Errorf("a call of %q comes from %q", m.execution, call.Execution)
	}
	return m.Echo.Call(ctx, call)
}

func (r *Testbed) run(t *testing.T, job sandbox.Job) (sandbox.Outcome, error) {
	t.Helper()
	return r.Runner.Run(t.Context(), job, &meter{t: t, execution: job.ID, limit: int64(job.Limits.Concurrency)})
}

// state is what the oracles compare.
type state struct {
	files  map[string]string
	memory int64
	logged int
	mounts int
}

func (r *Testbed) snapshot() state {
	return state{files: r.files(), memory: usedMemory(), logged: len(r.log.since(0)), mounts: mounts()}
}

// files are the digests of everything that no program may change (O1).
func (r *Testbed) files() map[string]string {
	all := map[string]string{}
	kept, _ := filepath.Glob(filepath.Join(r.State, "host-*", "*"))
	for _, path := range append(kept, r.dir) {
		name := filepath.Base(path)
		if path == r.dir || name == "rootfs" || name == "guest" || strings.HasPrefix(name, "servers") {
			_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
				all[path] = digest(path, err)
				return nil
			})
		}
	}
	return all
}

func digest(path string, err error) string {
	info, statErr := os.Lstat(path)
	if err = errors.Join(err, statErr); err != nil {
		return err.Error()
	}
	sum := fnv.New64a()
	if info.Mode().IsRegular() {
		data, _ := os.ReadFile(path)
		_, _ = sum.Write(data)
	}
	return fmt.Sprintf("%s %s %x", info.Mode(), info.ModTime(), sum.Sum64())
}

// usedMemory is the memory that Go has and has not returned to the system. The memory of the process has in addition what the
// race detector keeps for each page of the heap that was ever used, which is not a leak.
func usedMemory() int64 {
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

func mounts() int {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	return strings.Count(string(data), "\n")
}

// checkOracles checks all oracles, for the time since before.
func (r *Testbed) checkOracles(t *testing.T, before state, jobs []string) {
	t.Helper()
	r.checkNothingLeft(t, jobs)
	after := r.snapshot()
	for path, was := range before.files {
		if is := after.files[path]; is != was {
			t.Errorf("O1: %s was %s, is %s", path, was, is)
		}
	}
	for path, is := range after.files {
		if _, was := before.files[path]; !was {
			t.Errorf("O1: %s is new: %s", path, is)
		}
	}
	if after.mounts > before.mounts {
		t.Errorf("O2: %d mounts, it were %d", after.mounts, before.mounts)
	}
	Case{Python: "6 * 7", Value: "42"}.run(t, r.Runner) // O3
	logged := r.log.since(before.logged)
	r.checkNoSecret(t, "the log", logged)
	if grown := after.memory - before.memory; grown > maxGrowth {
		t.Errorf("O5: this process has grown by %d MiB", grown>>20)
	}
	for _, id := range jobs {
		if n := len(endRecords(logged, id)); n != 1 {
			t.Errorf("O6: %d records of the end of %s: %s", n, id, logged)
		}
	}
	for _, trap := range r.traps {
		if hits := trap.hits.Load(); hits > 0 {
			t.Errorf("O7: %d connections to %s", hits, trap.listener.Addr())
		}
	}
}

// endRecords are the records that an execution has ended.
func endRecords(logged, id string) []string {
	var found []string
	for line := range strings.Lines(logged) {
		if strings.Contains(line, `msg="execution ended"`) && strings.Contains(line, " execution="+id+" ") {
			found = append(found, line)
		}
	}
	return found
}

// checkNoSecret is O4.
func (r *Testbed) checkNoSecret(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, r.canary) || strings.Contains(text, r.canary[:16]) || strings.Contains(text, reverse(r.canary)[:16]) {
		t.Errorf("O4: the secret is in %s", where)
	}
}

// checkNothingLeft is O2: what is made for a sandbox is counted, beyond those that wait for programs.
func (r *Testbed) checkNothingLeft(t *testing.T, jobs []string) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("no more than %d sandboxes live (O2)", r.Waiting), time.Minute, func() bool {
		return r.sandboxes() <= r.Waiting
	})
	for _, id := range jobs {
		r.awaitNothingOf(t, id)
	}
}

func (r *Testbed) awaitNothingOf(t *testing.T, id string) {
	t.Helper()
	left := findByID(r.State, id)
	for end := time.Now().Add(time.Minute); len(left) > 0; left = findByID(r.State, id) {
		if time.Now().After(end) {
			t.Fatalf("left of %s (O2): %s", id, strings.Join(left, " "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sandboxes counts the sentries of the host.
func (r *Testbed) sandboxes() int {
	n := 0
	for _, process := range testutil.Processes(r.State) {
		if strings.Contains(process, "runsc-sandbox") || strings.Contains(process, " boot ") {
			n++
		}
	}
	return n
}

// findByID returns the files, processes and cgroups with an execution's ID in their names.
func findByID(dir, id string) []string {
	var found []string
	for _, process := range testutil.Processes(dir) {
		if slices.ContainsFunc(strings.FieldsFunc(process, func(r rune) bool { return r == ' ' || r == '/' || r == '=' }), func(word string) bool { return word == id }) {
			found = append(found, process)
		}
	}
	hosts, _ := filepath.Glob(filepath.Join(dir, "host-*")) // those of a test that was killed may have had the same ids
	ours := func(cgroup string) bool {
		return slices.ContainsFunc(hosts, func(host string) bool { return strings.HasSuffix(cgroup, filepath.Base(host)+"-"+id) })
	}
	for at, is := range map[string]func(name string) bool{dir: func(name string) bool { return name == id || strings.HasSuffix(name, "-"+id) }, "/sys/fs/cgroup": ours} {
		_ = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && is(entry.Name()) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// RunAttacks runs all attacks in sequence.
func RunAttacks(t *testing.T, r *Testbed) {
	t.Helper()
	Case{Python: "6 * 7", Value: "42"}.run(t, r.Runner) // the host has made what it needs
	begin := r.snapshot()
	for _, attack := range Attacks() {
		t.Run(attack.ID+"-"+strings.ReplaceAll(attack.Name, " ", "-"), func(t *testing.T) { attack.run(t, r) })
	}
	if grown := r.snapshot().memory - begin.memory; grown > maxGrowth {
		t.Errorf("O5: this process has grown by %d MiB over all attacks", grown>>20)
	}
}
