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
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// BenchmarkStart measures the time to tools/list, and the memory of the idle server, bare and isolated.
func BenchmarkStart(b *testing.B) {
	launcher, modules := launcherWith(b, isolation.Options{Checkpoints: b.TempDir()}), testutil.Upstreams(b)
	dir := b.TempDir()
	bare := "command: node\nargs: [" + filepath.Join(modules, "@modelcontextprotocol/server-filesystem/dist/index.js") + ", " + dir + "]\n"
	isolated := bare + "isolate: {checkpoint: false, mounts: [{path: " + modules + "}, {path: " + dir + ", mode: rw}]}"
	for _, of := range []struct{ name, settings string }{
		{"bare", bare}, {"isolated", isolated}, {"with hosts", strings.Replace(isolated, "mounts", "hosts: [api.test], mounts", 1)},
		{"from a checkpoint", strings.Replace(isolated, "false", "true", 1)}, {"from a checkpoint with hosts", strings.Replace(isolated, "false", "true, hosts: [api.test]", 1)},
	} {
		b.Run(of.name, func(b *testing.B) {
			if strings.Contains(of.settings, "true") {
				s := open(b, launcher, parse(b, of.settings))
				if err := s.Connect(b.Context()); err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
				b.ResetTimer()
			}
			var memory int64
			for range b.N {
				s := open(b, launcher, parse(b, of.settings))
				if err := s.Connect(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				memory = proportional(b, s.State().PID)
				_ = s.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(memory)/(1<<20), "MiB")
		})
	}
}

// BenchmarkCall measures one call, bare and isolated.
func BenchmarkCall(b *testing.B) {
	launcher, modules := newLauncher(b), testutil.Upstreams(b)
	bare := "command: node\nargs: [" + filepath.Join(modules, "@modelcontextprotocol/server-memory/dist/index.js") + "]\n"
	for _, of := range []struct{ name, settings string }{{"bare", bare}, {"isolated", bare + "isolate: {mounts: [{path: " + modules + "}]}"}} {
		b.Run(of.name, func(b *testing.B) {
			s := open(b, launcher, parse(b, of.settings))
			if err := s.Connect(b.Context()); err != nil {
				b.Fatal(err)
			}
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begin := time.Now()
				if _, err := s.Call(b.Context(), tool.Call{Tool: tool.ID{Upstream: "it", Name: "search_nodes"}, Args: []byte(`{"query": "x"}`)}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
		})
	}
}

// proportional returns the memory (PSS) of a process, its parent if that is runsc, and all their descendants.
func proportional(b *testing.B, pid int) (bytes int64) {
	b.Helper()
	if of := parent(pid); strings.Contains(command(of), "runsc") {
		pid = of
	}
	for _, one := range append(descendants(pid), pid) {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", one))
		for line := range strings.Lines(string(data)) {
			var kib int64
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
				bytes += kib << 10
			}
		}
	}
	return bytes
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
