package typecheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/typecheck"
)

// BenchmarkCheck measures checks in a warm server, and reports how long the first one took
// and what the server's sandbox has in memory at the end.
func BenchmarkCheck(b *testing.B) {
	many := make([]string, 1800)
	for i := range many {
		many[i] = fmt.Sprintf("tool_%d", i)
	}
	files := tree(tools(many...))
	for language, wrong := range languages {
		b.Run(string(language), func(b *testing.B) {
			l := newLab(b, language, files)
			begin := time.Now()
			l.check(b, fmt.Sprintf(wrong, 0))
			first := time.Since(begin)
			i := 0
			for b.Loop() {
				i++
				if got := l.check(b, fmt.Sprintf(wrong, i)+strings.Repeat("\n", 15)); len(got) != 1 {
					b.Fatalf("%q", got)
				}
			}
			b.ReportMetric(float64(first.Milliseconds()), "first-ms")
			b.ReportMetric(float64(l.memory())/(1<<20), "MiB")
		})
	}
}

// memory is what gVisor keeps for the server, in bytes; its own 40 MiB come on top.
func (l *lab) memory() (bytes int64) {
	pids, _ := filepath.Glob(filepath.Join(l.state, "host-*", "check-*", "sentry.pid"))
	for _, file := range pids {
		pid, _ := os.ReadFile(file)
		fds, _ := filepath.Glob("/proc/" + strings.TrimSpace(string(pid)) + "/fd/*")
		for _, fd := range fds {
			if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, "/memfd:runsc-memory") {
				bytes = max(bytes, readMemory(fd))
			}
		}
	}
	return bytes
}

func readMemory(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Blocks * 512
}

// BenchmarkProgramIsNotHeldUp is what a check costs a program that does well: it is begun and dropped.
func BenchmarkProgramIsNotHeldUp(b *testing.B) {
	l := newLab(b, typecheck.Python, tree(tools()))
	l.check(b, "1")
	for b.Loop() {
		l.Check("1").Drop()
	}
}
