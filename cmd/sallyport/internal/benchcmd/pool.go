package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"sallyport/bench/local"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/internal/tool"
)

// benchPool measures programs with and without sandboxes that wait. Upstreams are not started.
func (a *app) benchPool(ctx context.Context, o benchOptions) (err error) {
	cfg, err := a.Load()
	if err == nil {
		err = cli.Platform(cfg)
	}
	if err != nil {
		return err
	}
	cfg.Upstreams = nil
	if cfg.Sandbox.Pool.Max == 0 {
		return &tool.Error{Kind: tool.Invalid, Message: "no sandbox waits for programs: sandbox.pool.max is 0", Hint: "set it to 1 or more in upstreams.yaml"}
	}
	dir, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := benchRun{app: a, options: o}
	p := a.Progress("timing programs", 0)
	times, err := local.Pool(ctx, local.PoolSetup{Runs: m.runs(), Open: func(pool, empty bool) (*gateway.Gateway, error) {
		own := a.App
		if empty {
			fresh, err := os.MkdirTemp(dir, "cache-")
			if err != nil {
				return nil, fmt.Errorf("make cache: %w", err)
			}
			own = a.withCache(fresh)
		}
		return own.OpenGateway(cfg, a.Logger(slog.LevelError), gateway.Options{NoPool: !pool, Purpose: "bench", Journals: dir})
	}})
	p.Stop()
	if err != nil {
		return err
	}
	if o.asJSON {
		return a.PrintJSON(map[string]any{"versions": a.Versions(ctx), "pool": times})
	}
	return a.Print(poolText(times))
}

// withCache returns an App with its cache in a folder.
func (a *app) withCache(dir string) *cli.App {
	env := func(name string) (string, bool) {
		if name == "XDG_CACHE_HOME" {
			return dir, true
		}
		return a.Env(name)
	}
	return &cli.App{Env: env, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, DataPath: a.DataPath, LogLevel: a.LogLevel}
}

// The figures that two projects promise, from which this one grew: with Docker containers.
const (
	promisedFirst     = "100-140 s"
	promisedFollowing = "0.5-1.5 s"
)

func poolText(times []local.PoolTimes) string {
	var b strings.Builder
	b.WriteString("A program of one line. FIRST is from the start of the gateway on, the others are of its next programs.\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "FIRST\tMEDIAN\tSLOWEST\t  ")
	for _, t := range times {
		fmt.Fprintf(w, "%s\t%s\t%s\t  %s, %s\n", poolSeconds(t.First), poolSeconds(t.Following.P50), poolSeconds(t.Following.Max), t.Language, t.What)
	}
	fmt.Fprintf(w, "%s\t\t%s\t  promised by the projects that this one replaces, in Docker: first, then with their pool\n", promisedFirst, promisedFollowing)
	_ = w.Flush() // to a Builder, which cannot fail
	return b.String()
}

func poolSeconds(ms float64) string { return fmt.Sprintf("%.3f s", ms/1000) }
