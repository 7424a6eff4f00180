//go:build linux

package isolation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/isolation"
	"sallyport/gateway/upstream"
	"sallyport/internal/procmem"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// server is a real server that starts without credentials, with the settings that it needs.
type server struct{ name, args, mounts, dir string }

// servers returns the real servers of the test set.
func servers(t testing.TB, modules string) []server {
	t.Helper()
	dir := t.TempDir()
	official := filepath.Join(modules, "@modelcontextprotocol")
	writes := ", {path: " + dir + ", mode: rw}"
	return []server{
		{"filesystem", official + "/server-filesystem/dist/index.js, " + dir, writes, dir},
		{"memory", official + "/server-memory/dist/index.js", "", ""},
		{"everything", official + "/server-everything/dist/index.js", "", ""},
		{"git", filepath.Join(modules, "@cyanheads/git-mcp-server/dist/index.js"), "", ""},
		{"sqlite", filepath.Join(modules, "mcp-server-sqlite/dist/index.js") + ", " + dir + "/data.db", writes, dir},
	}
}

// settings returns the settings of a server: without a sandbox, or with the other keys of isolate.
func (s server) settings(modules, isolate string) string {
	bare := "command: node\nargs: [" + s.args + "]\n"
	if isolate == "" {
		return bare
	}
	return bare + "isolate: {" + isolate + ", mounts: [{path: " + modules + "}" + s.mounts + "]}"
}

const fromCheckpoint = "checkpoint: true"

// start returns a connected session.
func start(t testing.TB, launcher *isolation.Launcher, settings string) *upstream.Session {
	t.Helper()
	s := open(t, launcher, parse(t, settings))
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// BenchmarkStart measures the time to tools/list of real servers, bare and isolated.
func BenchmarkStart(b *testing.B) {
	launcher, modules := launcherWith(b, isolation.Options{Checkpoints: b.TempDir()}), testutil.Upstreams(b)
	for _, server := range servers(b, modules) {
		for _, of := range []struct{ name, isolate string }{
			{"bare", ""}, {"isolated", "checkpoint: false"}, {"isolated with hosts", "checkpoint: false, hosts: [api.test]"},
			{"from a checkpoint", fromCheckpoint}, {"from a checkpoint with hosts", fromCheckpoint + ", hosts: [api.test]"},
		} {
			b.Run(server.name+"/"+of.name, func(b *testing.B) {
				settings := server.settings(modules, of.isolate)
				_ = start(b, launcher, settings).Close() // makes the checkpoint
				times := make([]time.Duration, 0, b.N)
				for b.Loop() {
					begin := time.Now()
					s := start(b, launcher, settings)
					times = append(times, time.Since(begin))
					_ = s.Close()
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "p50-ms")
			})
		}
	}
}

// idleAfter is when a server is idle: gVisor has then returned the memory that its start needed.
const idleAfter = 5 * time.Second

// An idle server takes at most 120 MiB, with all processes of its sandbox.
func TestIdleMemory(t *testing.T) {
	t.Parallel()
	launcher, modules := launcherWith(t, isolation.Options{Checkpoints: t.TempDir()}), testutil.Upstreams(t)
	settings := servers(t, modules)[0].settings(modules, fromCheckpoint)
	_ = start(t, launcher, settings).Close()
	s := start(t, launcher, settings)
	time.Sleep(idleAfter)
	if all := proportional(t, s.State().PID); all < 20 || all > 120 {
		t.Errorf("an idle server takes %.1f MiB", all)
	}
}

// BenchmarkMemory measures the memory (PSS) of real servers that are idle, bare and from a checkpoint.
func BenchmarkMemory(b *testing.B) {
	launcher, modules := launcherWith(b, isolation.Options{Checkpoints: b.TempDir()}), testutil.Upstreams(b)
	for _, server := range servers(b, modules) {
		for _, of := range []struct{ name, isolate string }{{"bare", ""}, {"from a checkpoint", fromCheckpoint}} {
			b.Run(server.name+"/"+of.name, func(b *testing.B) {
				settings, all := server.settings(modules, of.isolate), []float64{}
				_ = start(b, launcher, settings).Close()
				for b.Loop() {
					s := start(b, launcher, settings)
					time.Sleep(idleAfter)
					all = append(all, proportional(b, s.State().PID))
					_ = s.Close()
				}
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], "p50-MiB")
			})
		}
	}
}

// BenchmarkCall measures one call, bare and isolated: one that only answers, and one that first opens a file, which node does in another
// thread.
func BenchmarkCall(b *testing.B) {
	launcher, modules := newLauncher(b), testutil.Upstreams(b)
	for _, call := range []struct{ name, server, tool, args string }{
		{"answer", "everything", "echo", `{"message": "x"}`}, {"file", "memory", "search_nodes", `{"query": "x"}`},
	} {
		bare := "command: node\nargs: [" + filepath.Join(modules, "@modelcontextprotocol/server-"+call.server+"/dist/index.js") + "]\n"
		for _, of := range []struct{ name, settings string }{{"bare", bare}, {"isolated", bare + "isolate: {mounts: [{path: " + modules + "}]}"}} {
			b.Run(call.name+"/"+of.name, func(b *testing.B) {
				measureCall(b, open(b, launcher, parse(b, of.settings)), tool.Call{Tool: tool.ID{Upstream: "it", Name: call.tool}, Args: []byte(call.args)})
			})
		}
	}
}

func measureCall(b *testing.B, s *upstream.Session, call tool.Call) {
	b.Helper()
	if err := s.Connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		begin := time.Now()
		if _, err := s.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
}

// proportional returns the memory (PSS), in MiB, of a process, its parent if that is runsc, and all their descendants.
func proportional(t testing.TB, pid int) float64 {
	t.Helper()
	if of := parent(pid); strings.Contains(command(of), "runsc") {
		pid = of
	}
	use, err := procmem.Of(append(descendants(pid), pid)...)
	if err != nil {
		t.Fatal(err)
	}
	return float64(use.Proportional) / (1 << 20)
}

func command(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(data)
}

func parent(pid int) (of int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if n, _ := fmt.Sscanf(line, "PPid: %d", &of); n == 1 {
			return of
		}
	}
	return 0
}

func descendants(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(data)) {
			var child int
			if n, _ := fmt.Sscan(field, &child); n == 1 {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
