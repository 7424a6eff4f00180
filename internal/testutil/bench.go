package testutil

import (
	"slices"
	"testing"
	"time"
)

// Measure runs a benchmark of call and reports its allocations and the p50 and
// p99 of its time, in microseconds. An error of call ends it.
func Measure(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// ReportCPU reports a benchmark's processor time as cpu-ms/op, next to the wall time: on a shared machine it is more
// reliable. Call it with defer, before the loop.
func ReportCPU(b *testing.B) func() {
	b.Helper()
	start := processorTime()
	return func() { b.ReportMetric(float64((processorTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op") }
}
