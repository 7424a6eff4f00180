package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/bareserver"
	"sallyport/bench/stats"
	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

const (
	barCall     = 400   // microseconds, p50
	barParallel = 5_000 // calls a second
	barLarge    = 100   // MB a second

	socketName  = "up.sock" // of the upstream, in a bench's folder
	concurrency = 32        // calls at a time
)

// runner runs a program in a sandbox and returns its value as JSON.
type runner func(ctx context.Context, l language, code string) (string, error)

// calls measures what calls of a program cost. The upstream is in this process:
// at first nothing but a function behind the bridge of a sandbox.Host, then an MCP
// server behind Gateway.Call, over HTTP on a Unix socket.
func calls(ctx context.Context, b *bench) (err error) {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	g, done, err := b.open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	host, err := b.host(dir, g.Catalog.Tree())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	session, err := client().Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://localhost/mcp", HTTPClient: bareserver.Through(filepath.Join(dir, socketName))}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for _, l := range languages() {
		if err := b.callsOf(ctx, l, "function", onHost(host, g.Catalog.Tree()), nil); err != nil {
			return fmt.Errorf("%s on a host: %w", l.name, err)
		}
		if err := b.callsOf(ctx, l, "MCP server", onGateway(g), session); err != nil {
			return fmt.Errorf("%s through the gateway: %w", l.name, err)
		}
	}
	return nil
}

// open opens a gateway in this process with an upstream in this process.
func (b *bench) open(ctx context.Context, dir string) (*gateway.Gateway, func() error, error) {
	return b.openWith(ctx, dir, newFakeServer(), func(*config.Config, *gateway.Options) {})
}

// openWith is open to another upstream, with settings that change has changed.
func (b *bench) openWith(ctx context.Context, dir string, up http.Handler, change func(cfg *config.Config, opts *gateway.Options)) (*gateway.Gateway, func() error, error) {
	socket := filepath.Join(dir, socketName)
	stop, err := bareserver.ServeAt(socket, up)
	if err != nil {
		return nil, nil, err
	}
	cfg := config.Default()
	cfg.Dir = dir
	cfg.Sandbox.Runsc = filepath.Join(filepath.Dir(b.sallyport), "runsc")
	cfg.Sandbox.Calls, cfg.Sandbox.Typecheck = 1_000_000, false
	cfg.Upstreams = []config.Upstream{{Name: "bench", ID: "bench", URL: "http://localhost/mcp", Socket: socket, Timeout: 30 * time.Second, Concurrency: concurrency, MaxMessage: 64 * config.MiB}}
	if err := os.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run")); err != nil {
		return nil, nil, err
	}
	opts := &gateway.Options{CacheDir: filepath.Join(dir, "cache")}
	change(&cfg, opts)
	g, err := gateway.Open(&cfg, opts)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	g.Catalog.WaitConnected(ctx)
	return g, func() error { return errors.Join(g.Close(), stop()) }, nil
}

func (b *bench) host(dir string, tree map[string][]byte) (*sandbox.Host, error) {
	host, err := sandbox.New(sandbox.Options{
		Runsc: filepath.Join(filepath.Dir(b.sallyport), "runsc"), Guest: runtime.Guest(),
		State: filepath.Join(dir, "host"), Snapshots: filepath.Join(dir, "snapshots"), Pool: sandbox.Pool{Min: 1, Max: 2},
	})
	if err != nil {
		return nil, err
	}
	return host, host.Publish(tree)
}

func onGateway(g *gateway.Gateway) runner {
	return func(ctx context.Context, l language, code string) (string, error) {
		e, err := g.Executor.Execute(ctx, execution.Program{Code: code, Language: l.name})
		if err != nil {
			return "", err
		}
		return valueOf(e.Outcome)
	}
}

func onHost(host *sandbox.Host, tree map[string][]byte) runner {
	caller, count := directCaller{large()}, 0
	return func(ctx context.Context, l language, code string) (string, error) {
		count++
		job := sandbox.Job{ID: fmt.Sprintf("bench-%d", count), Interpreter: sandbox.Python, Code: code, Limits: sandbox.DefaultLimits()}
		job.Limits.Calls = 1_000_000
		if l.name == "typescript" {
			compiled, err := bundle.Compile(code, wrappers(tree), runtime.TypeScript, nil)
			if err != nil {
				return "", err
			}
			job.Interpreter, job.Code = sandbox.Node, compiled
		}
		outcome, err := host.Run(ctx, job, caller)
		if err != nil {
			return "", err
		}
		return valueOf(outcome)
	}
}

func valueOf(o sandbox.Outcome) (string, error) {
	if o.Status != sandbox.OK || o.Value == nil {
		return "", fmt.Errorf("program ended with %s: %+v %s", o.Status, o.Fault, o.Stderr.Text)
	}
	return o.Value.Text, nil
}

// wrappers are files that TypeScript is compiled against.
type wrappers map[string][]byte

// File implements bundle.Tree.
func (w wrappers) File(path string) ([]byte, bool) {
	data, ok := w[path]
	return data, ok
}

// List implements bundle.Tree.
func (w wrappers) List(string) []string { return nil }

// program is one that measures, in either language: its value is a list of figures.
func program(l language, python, typescript string) string {
	if l.name == "python" {
		return "import time, json\nfrom servers.bench import echo, large\nfrom sallyport import parallel\nnow = time.perf_counter\n" + python
	}
	return `import { echo, large } from "servers/bench";
import { parallel } from "sallyport";
const now = () => performance.now() / 1000;
` + typescript
}

// oneByOne measures 400 calls, after 50 that warm up; in microseconds.
func oneByOne(l language) string {
	return program(l, `def one():
    begin = now()
    echo(text="x")
    return round((now() - begin) * 1e6)
[one() for _ in range(450)][50:]`,
		`const took: number[] = [];
for (let i = 0; i < 450; i++) {
  const begin = now();
  await echo({ text: "x" });
  took.push(Math.round((now() - begin) * 1e6));
}
took.slice(50)`)
}

// atOnce measures 1,000 calls through parallel, six times; in calls a second.
func atOnce(l language) string {
	return program(l, `def thousand():
    begin = now()
    parallel([lambda: echo(text="x")] * 1000)
    return round(1000 / (now() - begin))
[thousand() for _ in range(6)]`,
		`const rates: number[] = [];
for (let i = 0; i < 6; i++) {
  const begin = now();
  await parallel(Array.from({ length: 1000 }, () => () => echo({ text: "x" })));
  rates.push(Math.round(1000 / (now() - begin)));
}
rates`)
}

// tenMegabytes measures six results of 10 MB; in MB a second.
func tenMegabytes(l language, kind string) string {
	return program(l, fmt.Sprintf(`def one():
    begin = now()
    result = large(kind=%q)
    took = now() - begin
    assert len(result[%q]) > 1000
    return round(10 / took, 1)
[one() for _ in range(6)]`, kind, kind),
		fmt.Sprintf(`const rates: number[] = [];
for (let i = 0; i < 6; i++) {
  const begin = now();
  const result: any = await large({ kind: %q });
  rates.push(Math.round(100 / (now() - begin)) / 10);
  if (result[%q].length < 1000) throw new Error("too short");
}
rates`, kind, kind))
}

// callsOf measures calls of one language by one way, by turns with the SDK's client. Where there is no session there is no
// twin: a call of a Go function by a Go function is no work that a ratio could be of.
func (b *bench) callsOf(ctx context.Context, l language, via string, run runner, session *mcp.ClientSession) error {
	for _, m := range []struct {
		what, unit, code string
		bare             twin
		bar              func(s stats.Summary) bar
	}{
		{"tool call", "us", oneByOne(l), directOneByOne, func(s stats.Summary) bar { return atMost("p50 us", barCall, s.P50) }},
		{"1,000 calls by parallel", "1/s", atOnce(l), directAtOnce, func(s stats.Summary) bar { return atLeast("p50 1/s", barParallel, s.P50) }},
		{"10 MB result, text", "MB/s", tenMegabytes(l, "text"), directMegabytes("text"), func(s stats.Summary) bar { return atLeast("p50 MB/s", barLarge, s.P50) }},
		{"10 MB result, records", "MB/s", tenMegabytes(l, "rows"), directMegabytes("rows"), func(s stats.Summary) bar { return atLeast("p50 MB/s", barLarge, s.P50) }},
	} {
		var figures, bare []float64
		for range 5 {
			more, err := repeat(ctx, l, run, m.code, 1)
			if err != nil {
				return fmt.Errorf("%s: %w", m.what, err)
			}
			figures = append(figures, more...)
			if session == nil {
				continue
			}
			alone, err := m.bare(ctx, session)
			if err != nil {
				return fmt.Errorf("%s, without us: %w", m.what, err)
			}
			bare = append(bare, alone...)
		}
		r := callRow(m.what+", "+via, m.unit, l, figures, bare)
		if session == nil || m.unit != "MB/s" {
			r.Bars = []bar{m.bar(r.Summary)}
		}
		b.add(r)
	}
	return nil
}

// callRow is a row of calls, with a time or a rate as unit.
func callRow(name, unit string, l language, figures, bare []float64) row {
	compare := stats.CompareRates
	if unit == "us" {
		compare = stats.Compare
	}
	r := row{Case: name, Language: l.name, Unit: unit, Compared: compare(figures, bare),
		Note: "Gateway.Call to the least MCP server in the same process, HTTP over a Unix socket; bare: the SDK's client calls that server"}
	if len(bare) == 0 {
		r.Note = "bridge and guest alone: sandbox.Host with a Go function behind it; nothing bare does the same work"
	}
	return r
}

// repeat gathers the figures that a program gives when it is run so many times.
func repeat(ctx context.Context, l language, run runner, code string, times int) (figures []float64, err error) {
	for range times {
		value, err := run(ctx, l, code)
		if err != nil {
			return nil, err
		}
		var more []float64
		if err := json.NewDecoder(strings.NewReader(value)).Decode(&more); err != nil {
			return nil, fmt.Errorf("read figures %.100q: %w", value, err)
		}
		figures = append(figures, more...)
	}
	return figures, nil
}
