//go:build linux

package workers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// stock answers with so many bytes.
type stock struct{ value json.RawMessage }

func (s stock) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Structured: s.value}, nil
}

// BenchmarkOverhead runs the same on a host and, by turns, on a worker: a program, a call, a large result. The metric is the
// median.
func BenchmarkOverhead(b *testing.B) {
	c := natscluster.Start(b, 1)
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(b), Guest: runtime.Guest(), State: testutil.ShortDir(b), Snapshots: testutil.Snapshots(), Pool: sandbox.Pool{Min: 2, Max: 4}})
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		b.Fatal(err)
	}
	p := newPool(b, c, sandbox.Pool{Min: 2, Max: 4})
	join(b, c, "one", 4)
	for _, work := range []struct {
		name, code string
		size, per  int
	}{
		{"program", "1", 1, 1},
		{"calls", "from sallyport import call\nfor i in range(200): call('test.echo', {})", 1, 200},
		{"10MB", "from sallyport import call\nlen(call('test.echo', {}))", 10 << 20, 1},
	} {
		value, err := json.Marshal(strings.Repeat("x", work.size))
		if err != nil {
			b.Fatal(err)
		}
		for _, side := range []struct {
			name   string
			runner sandboxtest.Runner
		}{{"local", host}, {"worker", p}} {
			b.Run(work.name+"/"+side.name, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					job := sandboxtest.Job(sandbox.Python, work.code)
					job.Session = side.name // a sandbox that is there, so that only the way counts
					begun := time.Now()
					o, err := side.runner.Run(b.Context(), job, stock{value})
					if err != nil || o.Status != sandbox.OK {
						b.Fatalf("%+v, %v", o, err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/float64(work.per), "p50-us")
			})
		}
	}
}
