//go:build linux

package remote_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// stock answers with so many bytes.
type stock struct{ value json.RawMessage }

func (s stock) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Structured: s.value}, nil
}

// BenchmarkOverhead runs the same on a host and, by turns, through a client of one in memory: a program, a call, a large result.
func BenchmarkOverhead(b *testing.B) {
	m := newMachine(b)
	m.opts.Host.Snapshots, m.opts.Host.Logger = b.TempDir(), nil
	pool := sandbox.Pool{Min: 4, Max: 8}
	opts := m.opts.Host
	opts.Pool = pool
	host, err := sandbox.New(opts)
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	if err := host.Publish(sandboxtest.Tree()); err != nil {
		b.Fatal(err)
	}
	c := newClient(b, m, pool)
	for _, work := range []struct {
		name, code string
		size       int
		per        int
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
		}{{"local", host}, {"remote", c}} {
			b.Run(work.name+"/"+side.name, func(b *testing.B) {
				for b.Loop() {
					job := sandboxtest.Job(sandbox.Python, work.code)
					job.Session = side.name // a sandbox that is there, so that only the way counts
					o, err := side.runner.Run(b.Context(), job, stock{value})
					if err != nil || o.Status != sandbox.OK {
						b.Fatalf("%+v, %v", o, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*work.per), "us/each")
			})
		}
	}
}
