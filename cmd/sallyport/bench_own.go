package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sallyport/bench/own"
	"sallyport/gateway"
	"sallyport/gateway/trust"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// benchJSON is what bench --json prints. Fields are added, never changed.
type benchJSON struct {
	Versions benchVersions `json:"versions"`
	Tokens   *own.Tokens   `json:"tokens,omitempty"`
	Latency  *own.Latency  `json:"latency,omitempty"`
}

// benchVersions says what was measured, and with what.
type benchVersions struct {
	versions
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

// bench measures with the user's own upstreams. What it does is learned from by nothing.
func (a *app) bench(ctx context.Context, o benchOptions) (err error) {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	cfg.Search.Learn = false
	begin := time.Now()
	g, err := a.openGateway(cfg, a.logger(slog.LevelError), gateway.Options{Settle: patience, Fresh: true, Purpose: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := a.settle(ctx, g); err != nil {
		return err
	}
	s := service{cfg: cfg, gateway: g, log: a.logger(0)}
	measure, err := own.New(g, s.tools())
	if err != nil {
		return err
	}
	m := &benching{app: a, options: o, cfg: cfg, gateway: g, bench: measure, connected: time.Since(begin)}
	ctx = tool.WithClient(ctx, "sallyport bench")
	if err := m.measure(ctx); err != nil {
		return err
	}
	if err := m.print(ctx); err != nil {
		return err
	}
	return a.tellMissing(g.Upstreams())
}

// benching is one run of bench.
type benching struct {
	*app
	options   benchOptions
	cfg       *config.Config
	gateway   *gateway.Gateway
	bench     *own.Bench
	connected time.Duration
	stuck     string // why programs cannot be run
	tokens    *own.Tokens
	latency   *own.Latency
}

func (m *benching) measure(ctx context.Context) (err error) {
	if m.tokens, err = m.bench.Tokens(ctx); err != nil {
		return err
	}
	quick, calls := m.options.only == "tokens", !m.options.noCalls && m.tokens.Tools > 0
	if !quick || calls {
		m.stuck = m.canRun(ctx)
	}
	if calls {
		if m.tokens.Calls, err = m.bench.Calls(ctx, m.stuck, m.progress); err != nil {
			return err
		}
	}
	if quick {
		return nil
	}
	m.progress("")
	m.latency, err = m.bench.Latency(ctx, m.setup())
	return err
}

// canRun says why programs cannot be run, "" if they can.
func (m *benching) canRun(ctx context.Context) string {
	if err := platform(m.cfg); err != nil {
		return err.Error()
	}
	return m.bench.CanRun(ctx)
}

// progress tells a person what takes its time.
func (m *benching) progress(called string) {
	switch {
	case !isTerminal(m.stderr):
	case called == "":
		m.say("taking times")
	default:
		m.say("calling " + called)
	}
}

// setup is what times are taken of.
func (m *benching) setup() own.Setup {
	s := own.Setup{
		Runs: cmp.Or(m.options.runs, defaultBenchRuns), Open: m.openKnown, Connected: float64(m.connected.Microseconds()) / 1000, Programs: m.stuck,
		Interpreters: map[string]string{"python": m.interpreter(sandbox.Python, m.cfg.Sandbox.Python), "typescript": m.interpreter(sandbox.Node, m.cfg.Sandbox.Node)},
	}
	if m.tokens.Calls != nil {
		s.Call = m.tokens.Calls.Quickest()
	}
	return s
}

// interpreter is the one that sandboxes use, on this machine and without a sandbox; "" where there is none, or sandboxes are elsewhere.
func (m *benching) interpreter(i sandbox.Interpreter, explicit string) string {
	if m.cfg.Sandbox.Remote != "" {
		return ""
	}
	path, err := sandbox.InterpreterPath(i, explicit)
	if err != nil {
		return ""
	}
	return path
}

// openKnown opens a gateway that has the catalog from the cache, starts no upstream and puts nothing on record.
func (m *benching) openKnown() (*gateway.Gateway, error) {
	cfg := *m.cfg
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	for _, up := range m.gateway.Upstreams() {
		i := slices.IndexFunc(cfg.Upstreams, func(c config.Upstream) bool { return c.ID == up.ID })
		if i >= 0 {
			cfg.Upstreams[i].Disabled, cfg.Upstreams[i].Eager = up.Problem() != "", false
		}
	}
	return gateway.Open(&cfg, &gateway.Options{
		Version: buildVersion(), CacheDir: m.cacheDir(), LockFile: filepath.Join(m.cfg.Dir, trust.FileName), NoPool: true, Settle: patience,
	})
}

func (m *benching) print(ctx context.Context) error {
	if m.options.only == "latency" {
		m.tokens = nil
	}
	if m.options.asJSON {
		return m.printJSON(benchJSON{Versions: m.versions(ctx), Tokens: m.tokens, Latency: m.latency})
	}
	var b strings.Builder
	if m.tokens != nil {
		writeTokens(&b, m.tokens)
		writeCalls(&b, m.tokens)
	}
	if m.latency != nil {
		writeLatency(&b, m.latency)
	}
	return m.app.print(b.String())
}

func (m *benching) versions(ctx context.Context) benchVersions {
	v := benchVersions{versions: versions{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}, Settings: m.cfg.Path, Vocabularies: []string{"o200k_base", "cl100k_base"}, Upstreams: []benchUpstreamJSON{}}
	v.Runsc, v.RunscPath = m.runscVersion(ctx)
	for _, up := range m.gateway.Upstreams() {
		v.Upstreams = append(v.Upstreams, benchUpstreamJSON{up.ID, up.State.ServerName, up.State.ServerVersion, up.State.Protocol})
	}
	return v
}
