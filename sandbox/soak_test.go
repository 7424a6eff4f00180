//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	guest "sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// soakClients run programs at the same time, soakUsual is for how long if SALLYPORT_SOAK says nothing.
const (
	soakClients = 20
	soakUsual   = 8 * time.Second
)

// soakOwners are the owners of programs; those without one have a sandbox of their own.
var soakOwners = []string{"", "alice", "bob", "carol"}

// resources is what a host could leave behind, counted.
type resources struct {
	Processes, Mounts, Sockets, Cgroups, Goroutines, Descriptors, Files int
	Resident                                                            int64
}

// String is one line of a report.
func (s resources) String() string {
	return fmt.Sprintf("%9d %6d %7d %7d %10d %11d %5d %8d MiB", s.Processes, s.Mounts, s.Sockets, s.Cgroups, s.Goroutines, s.Descriptors, s.Files, s.Resident>>20)
}

const soakHead = "           processes mounts sockets cgroups goroutines descriptors files resident"

// countResources counts what is in dirs, names them, belongs to hosts with these names, or to this process.
func countResources(hosts []string, dirs ...string) resources {
	s := resources{Goroutines: runtime.NumGoroutine(), Mounts: lines("/proc/self/mountinfo", ""), Processes: children(), Cgroups: len(cgroups(hosts))}
	for _, dir := range dirs {
		s.Processes += len(testutil.Processes(dir))
		s.Sockets += lines("/proc/net/unix", dir)
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && path != dir {
				s.Files++
			}
			return nil
		})
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	s.Descriptors = len(entries)
	debug.FreeOSMemory()
	data, _ := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(data)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		s.Resident = pages * int64(os.Getpagesize())
	}
	return s
}

func lines(file, with string) int {
	data, _ := os.ReadFile(file)
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// children counts the processes, dead ones that nobody waited for included, that this one has started.
func children() int {
	n := 0
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		n += len(strings.Fields(string(data)))
	}
	return n
}

// soak is one run of it.
type soak struct {
	t     *testing.T
	host  *sandbox.Host
	state string
	hosts []string
	temp  string
	lines []string // of the report

	mu     sync.Mutex
	counts map[string]int
	odd    []string
	kills  atomic.Int64
	owned  atomic.Int64 // programs that may share a sandbox
	shared int          // the most sandboxes that were shared at once
}

// workload is one kind of program, and the ways in which it may end.
type workload struct {
	name     string
	job      func(nonce string) sandbox.Job
	statuses []sandbox.Status
	value    string // @NONCE@ is the nonce
	cancel   bool
}

func program(interpreter sandbox.Interpreter, code string, limit func(*sandbox.Limits)) func(string) sandbox.Job {
	return func(nonce string) sandbox.Job {
		job := sandboxtest.Job(interpreter, strings.ReplaceAll(code, "@NONCE@", nonce))
		if limit != nil {
			limit(&job.Limits)
		}
		return job
	}
}

func session(interpreter sandbox.Interpreter, code string) func(string) sandbox.Job {
	return func(nonce string) sandbox.Job {
		job := program(interpreter, code, nil)(nonce)
		job.Session = fmt.Sprintf("soak-%s-%d", interpreter, rand.IntN(3)) //nolint:gosec // no secret
		return job
	}
}

func shortTimeout(l *sandbox.Limits) { l.Timeout = 400 * time.Millisecond }
func smallMemory(l *sandbox.Limits)  { l.Memory = 160 << 20 }

func workloads() []workload {
	const py, js = sandbox.Python, sandbox.Node
	return []workload{
		{"python", program(py, "from sallyport import call\ncall('test.echo', {'x': '@NONCE@'})['args']['x']", nil), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"node", program(js, `const { call } = globalThis[Symbol.for("sallyport")]; export default (await call("test.echo", { x: "@NONCE@" })).args.x`, nil), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"wrapper", program(py, "from servers.test import echo\necho('@NONCE@')", nil), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"files", program(py, "open('/workspace/x', 'w').write('@NONCE@')\nopen('/workspace/x').read()", nil), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"python session", session(py, "n = globals().get('n', 0) + 1\n'@NONCE@'"), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"node session", session(js, `globalThis.n = (globalThis.n ?? 0) + 1; export default "@NONCE@"`), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"fault", program(py, "raise ValueError('@NONCE@')", nil), []sandbox.Status{sandbox.Failed}, "", false},
		{"fault in node", program(js, "throw new Error('@NONCE@')", nil), []sandbox.Status{sandbox.Failed}, "", false},
		{"exit", program(py, "import os; os._exit(3)", nil), []sandbox.Status{sandbox.Exited}, "", false},
		{"timeout", program(py, "while True: pass", shortTimeout), []sandbox.Status{sandbox.TimedOut}, "", false},
		{"timeout in node", program(js, "for (;;);", shortTimeout), []sandbox.Status{sandbox.TimedOut}, "", false},
		{"daemons", program(py, "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(600)\n'@NONCE@'", nil), []sandbox.Status{sandbox.OK}, `"@NONCE@"`, false},
		{"memory", program(py, "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n        b = bytearray(50 << 20); time.sleep(20)\ntime.sleep(20)", smallMemory), []sandbox.Status{sandbox.OutOfMemory}, "", false},
		{"flood", program(py, "import os\nwhile True: os.write(1, b'A' * 65536)", nil), []sandbox.Status{sandbox.Flooded}, "", false},
		{"cancel", program(py, "import time\ntime.sleep(20)", nil), []sandbox.Status{sandbox.Canceled}, "", true},
		{"cancel a call", program(js, `const { call } = globalThis[Symbol.for("sallyport")]; await call("test.slow")`, nil), []sandbox.Status{sandbox.Canceled}, "", true},
	}
}

// client runs programs of all kinds until the time is over.
func (s *soak) client(ctx context.Context) {
	kinds := workloads()
	for ctx.Err() == nil {
		w := kinds[rand.IntN(len(kinds))]                  //nolint:gosec // no secret
		nonce := strconv.FormatInt(rand.Int64N(1<<40), 36) //nolint:gosec // no secret
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		if w.cancel {
			time.AfterFunc(time.Duration(rand.IntN(1500))*time.Millisecond, cancel) //nolint:gosec // no secret
		}
		job := w.job(nonce)
		if job.Owner = soakOwners[rand.IntN(len(soakOwners))]; job.Owner != "" { //nolint:gosec // no secret
			s.owned.Add(1)
		}
		outcome, err := s.host.Run(own, job, sandboxtest.Echo{})
		cancel()
		s.judge(w, nonce, outcome, err)
	}
}

func (s *soak) judge(w workload, nonce string, outcome sandbox.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[w.name]++
	want := strings.ReplaceAll(w.value, "@NONCE@", nonce)
	switch {
	case err != nil:
		s.odd = append(s.odd, fmt.Sprintf("%s: %v", w.name, err))
	case !slices.Contains(w.statuses, outcome.Status):
		s.odd = append(s.odd, fmt.Sprintf("%s ended with %s: %+v %s", w.name, outcome.Status, outcome.Fault, outcome.Stderr.Text))
	case want != "" && (outcome.Value == nil || outcome.Value.Text != want):
		s.t.Errorf("%s: value %+v, want %s", w.name, outcome.Value, want) // another's, perhaps: no kill explains that
	}
}

// killSome kills a sentry now and then, and publishes other wrappers.
func (s *soak) killSome(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(1500 * time.Millisecond):
		}
		s.mu.Lock()
		s.shared = max(s.shared, len(sandbox.SharedSentries(s.host)))
		s.mu.Unlock()
		switch n % 4 {
		case 0: // other wrappers retire the shared sandboxes
			tree := sandboxtest.Tree()
			tree["test/version.txt"] = []byte(strconv.Itoa(n))
			if err := s.host.Publish(tree); err != nil {
				s.t.Errorf("publish: %v", err)
			}
		case 2:
			s.killOne()
		}
	}
}

// killOne kills one of the sandboxes, waiting or not.
func (s *soak) killOne() {
	for _, process := range testutil.Processes(s.state) {
		pid, _ := strconv.Atoi(strings.Split(process, "/")[2])
		if strings.Contains(process, "runsc-sandbox") && rand.IntN(3) == 0 && syscall.Kill(pid, syscall.SIGKILL) == nil { //nolint:gosec // no secret
			s.kills.Add(1)
			return
		}
	}
}

// soakTime is how long to soak.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SALLYPORT_SOAK")
	if text == "" {
		return soakUsual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SALLYPORT_SOAK: %v", err)
	}
	return d
}

// note takes stock for the report.
func (s *soak) note(what string) resources {
	stock := countResources(s.hosts, s.state, s.temp)
	s.lines = append(s.lines, fmt.Sprintf("%-10s %s", what, stock))
	return stock
}

// TestSoak has many clients run programs of all kinds, with crashes among them, and counts what is there before,
// while and after: at the end it is what it was at the beginning. `make soak` does it for longer.
func TestSoak(t *testing.T) {
	runsc, long := testutil.Runsc(t), soakTime(t)
	s := &soak{t: t, state: testutil.ShortDir(t), temp: testutil.ShortDir(t), lines: []string{soakHead}, counts: map[string]int{}}
	t.Setenv("TMPDIR", s.temp)
	begin := s.note("before")
	snapshots := filepath.Join(s.temp, "snapshots")
	host, err := sandbox.New(sandbox.Options{Runsc: runsc, Guest: guest.Guest(), State: s.state, Snapshots: snapshots, Pool: sandbox.Pool{Min: 1, Max: 3}, Reuse: true, SessionIdle: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.hosts = host, hostNames(t, s.state)
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	s.checkGrowth(s.run(long))
	if err := errors.Join(host.Close(), os.RemoveAll(snapshots)); err != nil { // snapshots are kept over restarts
		t.Errorf("close: %v", err)
	}
	s.end(begin)
	text := s.summary(long) + strings.Join(s.lines, "\n") + "\n"
	t.Log("\n" + text)
	if to := os.Getenv("SALLYPORT_SOAK_RESULT"); to != "" && !t.Failed() {
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil { //nolint:gosec // it is to be read
			t.Error(err)
		}
	}
}

// run soaks and takes stock ten times.
func (s *soak) run(long time.Duration) []resources {
	if long >= time.Minute {
		sandboxtest.Nonces(s.t, s.host, 500, soakClients)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), long)
	defer cancel()
	var all sync.WaitGroup
	for range soakClients {
		all.Go(func() { s.client(ctx) })
	}
	all.Go(func() { s.killSome(ctx) })
	var samples []resources
	start := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(long / 10):
			samples = append(samples, s.note(fmt.Sprintf("%4.0f s", time.Since(start).Seconds())))
		}
	}
	all.Wait()
	return samples
}

// checkGrowth compares the last third of the samples with the first: what leaks with each program is seen.
func (s *soak) checkGrowth(samples []resources) {
	third := len(samples) / 3
	if third == 0 {
		return
	}
	most := func(of func(resources) int, samples []resources) int {
		n := 0
		for _, sample := range samples {
			n = max(n, of(sample))
		}
		return n
	}
	for name, of := range map[string]func(resources) int{
		"processes": func(s resources) int { return s.Processes }, "mounts": func(s resources) int { return s.Mounts }, "sockets": func(s resources) int { return s.Sockets }, "cgroups": func(s resources) int { return s.Cgroups },
		"goroutines": func(s resources) int { return s.Goroutines }, "descriptors": func(s resources) int { return s.Descriptors }, "MiB": func(s resources) int { return int(s.Resident >> 20) },
	} {
		early, late := most(of, samples[:third]), most(of, samples[len(samples)-third:])
		if late > early*3/2+64 {
			s.t.Errorf("%s have grown from %d to %d", name, early, late)
		}
	}
}

// left says whether there is more of anything than before.
func (s resources) left(before resources) bool {
	return s.Processes > before.Processes || s.Mounts > before.Mounts || s.Sockets > before.Sockets || s.Cgroups > before.Cgroups ||
		s.Goroutines > before.Goroutines || s.Descriptors > before.Descriptors || s.Files > before.Files
}

// end gives what was told to end a moment to do so, and compares.
func (s *soak) end(begin resources) {
	for range 60 {
		if !countResources(s.hosts, s.state, s.temp).left(begin) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if last := s.note("after"); last.left(begin) {
		s.t.Errorf("it began with %+v and ended with %+v", begin, last)
	}
	// A kill may hit any program, and one that was about to start: what is odd is no more than that.
	if kills := int(s.kills.Load()); len(s.odd) > kills {
		s.t.Errorf("%d programs ended oddly, %d sandboxes were killed:\n%s", len(s.odd), kills, strings.Join(s.odd[:min(len(s.odd), 20)], "\n"))
	}
}

// summary says what was run.
func (s *soak) summary(long time.Duration) string {
	var kinds []string
	total := 0
	for kind, n := range s.counts {
		total += n
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("# make soak: %s, %d clients, %d processors\n%d executions, %.1f a second, %d by three owners in up to %d shared sandboxes; %d sandboxes killed, %d programs ended oddly\n%s\n\n",
		long, soakClients, runtime.NumCPU(), total, float64(total)/long.Seconds(), s.owned.Load(), s.shared, s.kills.Load(), len(s.odd), strings.Join(kinds, ", "))
}
