package workflow_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/internal/store"
)

// BenchmarkStep measures what the engine adds to a step whose tool takes no time: expressions, and two writes to the disk.
func BenchmarkStep(b *testing.B) {
	for _, row := range []struct{ name, flow string }{
		{"sequence", "steps:" + sequence(100)},
		{"loop", `steps: [{id: each, for_each: "${{ lists.range(100) }}", steps: [{id: s, tool: t.echo, with: {n: "${{ item }}"}}]}]`},
		{"loop of 8 at once", `steps: [{id: each, for_each: "${{ lists.range(100) }}", concurrency: 8, steps: [{id: s, tool: t.echo, with: {n: "${{ item }}"}}]}]`},
	} {
		b.Run(row.name, func(b *testing.B) {
			s, err := store.Open(filepath.Join(b.TempDir(), "records"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			e := engine(b, standard(), workflow.Options{Records: s}, map[string]string{"flow": row.flow})
			var times []time.Duration
			for b.Loop() {
				begun := time.Now()
				if r := run(b, e, workflow.Start{Workflow: "flow"}); r.Status != workflow.OK {
					b.Fatalf("it is %s: %+v", r.Status, r.Error)
				}
				times = append(times, time.Since(begun)/100)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[0].Microseconds()), "µs/step-min")
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/step-p50")
			b.ReportMetric(float64(times[len(times)*9/10].Microseconds()), "µs/step-p90")
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// sequence is so many steps, each with a look at the one before.
func sequence(n int) string {
	var text strings.Builder
	text.WriteString("\n  - {id: s0, tool: t.echo, with: {n: 0}}")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&text, "\n  - {id: s%d, tool: t.echo, with: {n: \"${{ steps.s%d.output.n + 1 }}\"}}", i, i-1)
	}
	return text.String()
}
