package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/bench/local"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/trust"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// benchJSON is what bench --json prints. Fields are added, never changed.
type benchJSON struct {
	Versions benchVersions  `json:"versions"`
	Tokens   *local.Tokens  `json:"tokens,omitempty"`
	Latency  *local.Latency `json:"latency,omitempty"`
	// Stopped is why not everything was measured, "" if it was.
	Stopped string `json:"stopped,omitempty"`
}

// benchVersions says what was measured, and with what.
type benchVersions struct {
	cli.Versions
	Settings     string              `json:"settings"`
	Vocabularies []string            `json:"vocabularies"`
	Upstreams    []benchUpstreamJSON `json:"upstreams"`
}

type benchUpstreamJSON struct {
	ID       string `json:"id"`
	Name     string `json:"server_name,omitempty"`
	Version  string `json:"server_version,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

// bench measures with the user's own upstreams. When it is stopped, it prints the results so far. Search does not learn
// from its calls, and results of tools are not stored.
func (a *app) bench(ctx context.Context, o benchOptions) (err error) {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	cfg.Search.Learn = false
	journals, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return fmt.Errorf("make folder for journals: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(journals)) }()
	begin := time.Now()
	g, err := a.OpenGateway(cfg, a.Logger(slog.LevelError), gateway.Options{ConnectWait: cli.ConnectTimeout, Fresh: true, Purpose: "bench", Journals: journals})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := a.WaitConnected(ctx, g); err != nil {
		return err
	}
	measure, err := local.New(g, cli.ToolOptions(cfg, g, a.Logger(0)))
	if err != nil {
		return err
	}
	m := &benchRun{app: a, options: o, cfg: cfg, gateway: g, bench: measure, connected: time.Since(begin), journals: journals}
	stopped := m.measure(tool.WithClient(ctx, "sallyport bench"))
	if err := errors.Join(m.print(context.WithoutCancel(ctx), stopped), stopped); err != nil {
		return err
	}
	return a.ReportMissing(g.Catalog.Upstreams())
}

// benchRun is one run of bench.
type benchRun struct {
	*app
	options         benchOptions
	cfg             *config.Config
	gateway         *gateway.Gateway
	bench           *local.Bench
	connected       time.Duration
	journals        string
	programsChecked bool   // stuck is set
	programsProblem string // why programs cannot be run, "" if they can
	tokens          *local.Tokens
	latency         *local.Latency
	bar             *cli.Progress
}

func (m *benchRun) measure(ctx context.Context) error {
	m.bar = m.Progress("counting tokens", 3)
	defer m.bar.Stop()
	if m.options.only != "latency" {
		if err := m.measureTokens(ctx); err != nil {
			return err
		}
	}
	if m.options.only == "tokens" {
		return nil
	}
	return m.measureLatency(ctx)
}

// measureTokens counts tokens, including those of calls unless --no-calls is set.
func (m *benchRun) measureTokens(ctx context.Context) (err error) {
	if m.tokens, err = m.bench.Tokens(ctx); err != nil || m.options.noCalls || m.tokens.Tools == 0 {
		return err
	}
	if err := m.checkPrograms(ctx); err != nil {
		return err
	}
	m.tokens.Calls, err = m.bench.Calls(ctx, m.programsProblem, m.reportCall)
	return err
}

// measureLatency measures latencies.
func (m *benchRun) measureLatency(ctx context.Context) (err error) {
	if err := m.checkPrograms(ctx); err != nil {
		return err
	}
	call, err := m.chooseTimedTool(ctx)
	if err != nil {
		return err
	}
	l, err := m.bench.Latency(ctx, m.latencySetup(call))
	if len(l.Rows)+len(l.Missing) > 0 {
		m.latency = l
	}
	return err
}

// checkPrograms sets stuck, once.
func (m *benchRun) checkPrograms(ctx context.Context) error {
	if !m.programsChecked {
		m.programsProblem, m.programsChecked = m.canRun(ctx), true
	}
	return ctx.Err()
}

// canRun returns why programs cannot be run, "" if they can.
func (m *benchRun) canRun(ctx context.Context) string {
	if err := cli.Platform(m.cfg); err != nil {
		return err.Error()
	}
	return m.bench.CanRun(ctx)
}

// chooseTimedTool chooses the tool to time, nil for none, and reports it.
func (m *benchRun) chooseTimedTool(ctx context.Context) (call *tool.ID, err error) {
	switch {
	case m.options.noCalls || m.programsProblem != "":
	case m.tokens == nil:
		call, err = m.bench.Callable(ctx, m.reportCall)
	case m.tokens.Calls != nil:
		call = m.tokens.Calls.Quickest()
	}
	if call == nil || err != nil {
		m.bar.Step(2, "taking times")
		return nil, err
	}
	m.bar.Step(2, fmt.Sprintf("timing %s %d times", call, local.Series*min(m.runs(), local.MaxAgain)))
	return call, nil
}

func (m *benchRun) reportCall(name string) { m.bar.Step(1, "calling "+name) }

func (m *benchRun) runs() int { return cmp.Or(m.options.runs, defaultBenchRuns) }

// latencySetup returns the setup of the latency measurements.
func (m *benchRun) latencySetup(call *tool.ID) local.Setup {
	return local.Setup{
		Runs: m.runs(), Open: m.openCached, Connected: float64(m.connected.Microseconds()) / 1000, Programs: m.programsProblem, Call: call, CallsEach: m.cfg.Sandbox.Calls, NoPool: m.cfg.Sandbox.Pool.Max == 0,
		Interpreters: map[string]string{"python": m.interpreter(sandbox.Python, m.cfg.Sandbox.Python), "typescript": m.interpreter(sandbox.Node, m.cfg.Sandbox.Node)},
	}
}

// interpreter returns the path of an interpreter on this machine, to compare with sandboxes; "" if there is none or sandboxes are remote.
func (m *benchRun) interpreter(i sandbox.Interpreter, explicit string) string {
	if m.cfg.Sandbox.Remote != "" {
		return ""
	}
	path, err := sandbox.InterpreterPath(i, explicit)
	if err != nil {
		return ""
	}
	return path
}

// openCached opens a gateway with the catalog from the cache. It starts no upstreams, has no pool of sandboxes and writes no records.
func (m *benchRun) openCached() (*gateway.Gateway, error) {
	cfg := *m.cfg
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	for _, up := range m.gateway.Catalog.Upstreams() {
		i := slices.IndexFunc(cfg.Upstreams, func(c config.Upstream) bool { return c.ID == up.ID })
		if i >= 0 {
			cfg.Upstreams[i].Disabled, cfg.Upstreams[i].Eager = up.Problem() != "", false
		}
	}
	return gateway.Open(&cfg, &gateway.Options{
		Version: cli.BuildVersion(), CacheDir: m.CacheDir(), LockFile: filepath.Join(m.cfg.Dir, trust.FileName), NoPool: true, ConnectWait: cli.ConnectTimeout, Journals: m.journals,
	})
}

// print prints the results. stopped is why they are incomplete, nil if they are not.
func (m *benchRun) print(ctx context.Context, stopped error) error {
	if m.tokens == nil && m.latency == nil {
		return nil
	}
	if m.options.asJSON {
		out := benchJSON{Versions: m.versions(ctx), Tokens: m.tokens, Latency: m.latency}
		if stopped != nil {
			out.Stopped = stopped.Error()
		}
		return m.PrintJSON(out)
	}
	var b strings.Builder
	if m.tokens != nil {
		writeTokens(&b, m.tokens)
		writeCalls(&b, m.tokens)
	}
	if m.latency != nil {
		writeLatency(&b, m.latency)
	}
	if stopped != nil {
		b.WriteString("\nStopped before everything was measured.\n")
	}
	return m.Print(b.String())
}

func (m *benchRun) versions(ctx context.Context) benchVersions {
	v := benchVersions{Versions: m.Versions(ctx), Settings: m.cfg.Path, Vocabularies: []string{"o200k_base", "cl100k_base"}, Upstreams: []benchUpstreamJSON{}}
	for _, up := range m.gateway.Catalog.Upstreams() {
		v.Upstreams = append(v.Upstreams, benchUpstreamJSON{up.ID, up.State.ServerName, up.State.ServerVersion, up.State.Protocol})
	}
	return v
}
