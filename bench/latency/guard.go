package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/bench/stats"
	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/store"
)

// barGuard is what the whole chain may add to a call, in microseconds at p50.
const barGuard = 150

// guard measures what calls of a program cost with everything of the guard on (policy with 20 rules and labels,
// approval, journal, audit, tokens for personal data), by turns with a gateway that has all of it off.
func guard(ctx context.Context, b *bench) (err error) {
	var run [2]runner
	for i, on := range []bool{false, true} {
		g, done, err := b.openGuarded(ctx, on)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		run[i] = onGateway(g)
	}
	l := languages()[0]
	for _, kind := range []struct{ kind, what string }{{"typical", "1 KB result, 2 e-mails"}, {"dense", "2 KB result, 24 values"}} {
		var took [2][]float64
		var used [2]float64
		for range guardRounds {
			for i := range run {
				before := processorTime()
				figures, err := repeat(ctx, l, run[i], manyCalls(kind.kind), 1)
				if err != nil {
					return err
				}
				used[i] += processorTime() - before
				took[i] = append(took[i], figures...)
			}
		}
		b.addGuard(kind.what, took[0], took[1], (used[1]-used[0])/(guardRounds*guardCalls), kind.kind == "typical")
	}
	return nil
}

const (
	// guardRounds is how many programs make guardCalls calls each, by turns without and with the guard.
	guardRounds = 10
	guardCalls  = 230
)

// addGuard adds two rows: the calls without anything, and with all of it.
func (b *bench) addGuard(what string, off, on []float64, processor float64, barred bool) {
	r := row{Case: "guarded call, " + what, Language: "python", Unit: "us", Compared: stats.Compare(on, off),
		Note: "all of the guard on; bare is the same call with all of it off, in the same run by turns"}
	added := r.P50 - r.Bare.P50
	if barred {
		r.Bars = []bar{atMost("added p50 us", barGuard, added)}
	}
	r.Note += fmt.Sprintf("; %.0f us added at p50, %.0f at the minimum; %.0f us of processor time for each call (the program's start and end in it)", added, r.Min-r.Bare.Min, processor)
	b.add(r)
}

// manyCalls measures 200 calls one after the other, after 30 that warm up; in microseconds.
func manyCalls(kind string) string {
	return fmt.Sprintf(`import time
from servers.bench import large
now = time.perf_counter
def one():
    begin = now()
    large(kind=%q)
    return round((now() - begin) * 1e6)
[one() for _ in range(%d)][30:]`, kind, guardCalls)
}

// openGuarded opens a gateway as serve does, with its records on disk.
func (b *bench) openGuarded(ctx context.Context, on bool) (*gateway.Gateway, func() error, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, nil, err
	}
	if !on { // without a folder there is neither journal nor record
		return b.openWith(ctx, dir, newFakeServer(), func(*config.Config, *gateway.Options) {})
	}
	records, err := store.Open(filepath.Join(dir, "records"), nil)
	if err != nil {
		return nil, nil, err
	}
	var wrong error
	g, done, err := b.openWith(ctx, dir, newFakeServer(), func(cfg *config.Config, opts *gateway.Options) {
		opts.DataDir, opts.Records = filepath.Join(dir, "data"), records
		wrong = guardSettings(cfg)
	})
	if err = errors.Join(err, wrong); err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	return g, func() error { return errors.Join(done(), records.Close()) }, nil
}

// guardSettings turns everything on.
func guardSettings(cfg *config.Config) error {
	read, err := config.Parse("upstreams.yaml", []byte(guardText()), nil)
	if err != nil {
		return err
	}
	cfg.Policy, cfg.Privacy, cfg.Approval, cfg.Audit, cfg.Journal = read.Policy, read.Privacy, read.Approval, read.Audit, read.Journal
	cfg.Upstreams[0].Labels = []string{"private", "untrusted"}
	return nil
}

func guardText() string {
	var rules strings.Builder
	for i := range 19 {
		fmt.Fprintf(&rules, "    - {name: rule-%d, tools: [bench.*], when: 'has(args.kind) && args.kind == \"none-%d\" && principal != \"x\"', then: deny}\n", i, i)
	}
	return "upstreams: {bench: {url: http://localhost/mcp}}\nprivacy: {mode: tokenize}\napproval: {wait: 30s}\naudit: {enabled: true}\npolicy:\n  default: ask\n  rules:\n" + rules.String() +
		"    - {name: reads, tools: [bench.large], when: 'session == \"\" || calls[\"bench.large\"] >= 0', then: allow}\n"
}

// people are results with personal data: 1 KB with two addresses, and 2 KB of little else.
func people() map[string]json.RawMessage {
	typical := `{"issue":{"id":4711,"title":"Export of the report stops after the first page","state":"open","labels":["bug","export"],"created_at":"2026-01-02T03:04:05Z",` +
		`"author":{"login":"ann","email":"ann.smith@example.com"},"assignee":{"login":"bob","email":"bob@example.org"},"body":"` + strings.Repeat("The export stops when there are more rows than fit on one page. ", 10) + `"}}`
	var rows []string
	for i := range 12 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"full_name":"Ann Smith %c","email":"user%d@example.com","title":"some words about an issue that was closed","updated_at":"2026-01-02T03:04:05Z"}`, i, 'a'+i, i))
	}
	return map[string]json.RawMessage{"typical": json.RawMessage(typical), "dense": json.RawMessage(`{"rows":[` + strings.Join(rows, ",") + `]}`)}
}
