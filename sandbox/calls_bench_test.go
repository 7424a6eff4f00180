//go:build linux

package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// spec is what a wrapper knows of its arguments.
const spec = `{"sig":"bench.echo(*, text: str)","args":{"o":{"text":"s"}}}`

var inPython = "import time\nfrom sallyport import call, parallel\nnow = time.perf_counter\nSPEC = '" + spec + "'\ndef echo(): return call('bench.echo', {'text': 'x'}, SPEC)\n"

var inJavaScript = "const { call, parallel } = globalThis[Symbol.for('sallyport')];\nconst now = () => performance.now() / 1000;\nconst SPEC = '" + spec + "';\nconst echo = () => call('bench.echo', { text: 'x' }, SPEC);\n"

// benchmarks are programs whose value is a list of figures, all of one unit.
var benchmarks = []struct {
	name, unit string
	code       map[sandbox.Interpreter]string
}{
	{"call", "us", map[sandbox.Interpreter]string{
		sandbox.Python: "def one():\n    begin = now()\n    echo()\n    return (now() - begin) * 1e6\n[one() for _ in range(850)][50:]",
		sandbox.Node:   "const took = [];\nfor (let i = 0; i < 850; i++) { const begin = now(); await echo(); took.push((now() - begin) * 1e6); }\nexport default took.slice(50)",
	}},
	{"parallel", "calls/s", map[sandbox.Interpreter]string{
		sandbox.Python: "def thousand():\n    begin = now()\n    parallel([echo] * 1000)\n    return 1000 / (now() - begin)\n[thousand() for _ in range(8)][2:]",
		sandbox.Node:   "const rates = [];\nfor (let i = 0; i < 8; i++) { const begin = now(); await parallel(Array.from({ length: 1000 }, () => echo)); rates.push(1000 / (now() - begin)); }\nexport default rates.slice(2)",
	}},
	{"text", "MB/s", map[sandbox.Interpreter]string{sandbox.Python: largeInPython("text"), sandbox.Node: largeInJavaScript("text")}},
	{"rows", "MB/s", map[sandbox.Interpreter]string{sandbox.Python: largeInPython("rows"), sandbox.Node: largeInJavaScript("rows")}},
}

func largeInPython(kind string) string {
	return fmt.Sprintf("def one():\n    begin = now()\n    result = call('bench.%[1]s', {})\n    took = now() - begin\n    assert len(result[%[1]q]) > 1000\n    return 10 / took\n[one() for _ in range(8)][2:]", kind)
}

func largeInJavaScript(kind string) string {
	return fmt.Sprintf("const rates = [];\nfor (let i = 0; i < 8; i++) { const begin = now(); const result = await call('bench.%[1]s', {}); rates.push(10 / (now() - begin)); if (result[%[1]q].length < 1000) throw new Error('short'); }\nexport default rates.slice(2)", kind)
}

// answers are an upstream in this process.
type answers map[string]json.RawMessage

func (a answers) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Structured: a[call.Tool.Name]}, nil
}

// BenchmarkCalls is what calls cost from a program in a sandbox to an upstream in this process: the median of what programs measure.
func BenchmarkCalls(b *testing.B) {
	row := `{"id":12345,"name":"some name","tags":["a","b"],"open":true,"score":0.5,"text":"` + strings.Repeat("lorem ipsum ", 20) + `"},`
	caller := answers{
		"echo": json.RawMessage(`{"ok":true}`),
		"text": json.RawMessage(`{"text":"` + strings.Repeat("lorem ipsum dolor sit amet, ", 10_000_000/28) + `"}`),
		"rows": json.RawMessage(`{"rows":[` + strings.TrimSuffix(strings.Repeat(row, 10_000_000/len(row)), ",") + `]}`),
	}
	host := newCloningHost(b)
	for _, interpreter := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		for _, m := range benchmarks {
			b.Run(string(interpreter)+"/"+m.name, func(b *testing.B) {
				var figures []float64
				for b.Loop() {
					figures = append(figures, figuresOf(b, host, interpreter, m.code[interpreter], caller)...)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(figures), m.unit)
			})
		}
	}
}

func figuresOf(b *testing.B, host *sandbox.Host, interpreter sandbox.Interpreter, code string, caller answers) (figures []float64) {
	b.Helper()
	start := inPython
	if interpreter == sandbox.Node {
		start = inJavaScript
	}
	limits := sandbox.DefaultLimits()
	limits.Calls, limits.Timeout, limits.Value = 1<<20, 5*time.Minute, 1<<20
	outcome, err := host.Run(b.Context(), sandbox.Job{ID: fmt.Sprintf("calls-%d", time.Now().UnixNano()), Interpreter: interpreter, Code: start + code, Limits: limits}, caller)
	if err != nil || outcome.Status != sandbox.OK {
		b.Fatalf("%v: %+v %+v", err, outcome, outcome.Fault)
	}
	if err := json.Unmarshal([]byte(outcome.Value.Text), &figures); err != nil {
		b.Fatal(err)
	}
	return figures
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
