//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"slices"

	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

func TestReuseCPU(t *testing.T) {
	for _, l := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		t.Run(string(l), func(t *testing.T) {
			host := openShared(t, l)
			code := map[sandbox.Interpreter]string{sandbox.Python: "print(1)", sandbox.Node: "console.log(1)"}[l]
			if c := os.Getenv("PROG"); c != "" { code = c }
			var times []time.Duration
			run := func() {
				job := sandboxtest.Job(l, code)
				job.Owner = "a"
				began := time.Now()
				out, err := host.Run(t.Context(), job, sandboxtest.Echo{})
				times = append(times, time.Since(began))
				if err != nil || out.Status != sandbox.OK { t.Fatalf("%+v %v", out, err) }; if os.Getenv("SHOW") != "" { t.Log(out.Stderr.Text) }
			}
			cpu := func() time.Duration {
				files, _ := filepath.Glob("/sys/fs/cgroup/cpuacct/*sallyport-host*/cpuacct.usage")
				files2, _ := filepath.Glob("/sys/fs/cgroup/cpuacct/*/*sallyport-host*/cpuacct.usage")
				files3, _ := filepath.Glob("/sys/fs/cgroup/cpu,cpuacct/*/*sallyport-host*/cpuacct.usage")
				var sum int64
				for _, f := range slices.Concat(files, files2, files3) {
					if !strings.Contains(f, "-r-") { continue }
					d, _ := os.ReadFile(f)
					n, _ := strconv.ParseInt(strings.TrimSpace(string(d)), 10, 64)
					sum += n
				}
				return time.Duration(sum)
			}
			for range 5 { run() }
			times = nil
			b, w := cpu(), time.Now()
			const n = 100
			for range n { run() }
			slices.Sort(times)
			t.Logf("%s: cpu %v wall %v per program; p50 %v p90 %v", l, (cpu()-b)/n, time.Since(w)/n, times[n/2], times[n*9/10])
		})
	}
}
