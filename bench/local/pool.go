package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/bench/stats"
	"sallyport/gateway"
)

// PoolTimes are the times of programs of one line in one language, in milliseconds.
type PoolTimes struct {
	// What names the gateway: with waiting sandboxes or without.
	What     string `json:"what"`
	Language string `json:"language"`
	// First is from the opening of the gateway to the end of its first program. Following are those after it; with a pool,
	// each finds a sandbox that waits.
	First     float64       `json:"first"`
	Following stats.Summary `json:"following"`
}

// PoolSetup says how gateways are opened.
type PoolSetup struct {
	// Runs is the number of programs after the first one.
	Runs int
	// Open opens a gateway with or without a pool. With empty, nothing that was prepared earlier is used.
	Open func(pool, empty bool) (*gateway.Gateway, error)
}

// Pool measures the first program of a gateway and the following ones: on a machine that has prepared nothing, without a
// pool, and with one.
func Pool(ctx context.Context, s PoolSetup) (all []PoolTimes, err error) {
	for _, lang := range languages() {
		for _, kind := range []struct {
			what        string
			pool, empty bool
		}{{"nothing prepared", false, true}, {"without a pool", false, false}, {"with a pool", true, false}} {
			t := PoolTimes{What: kind.what, Language: lang.title}
			if err := t.measure(ctx, s, lang, kind.pool, kind.empty); err != nil {
				return all, fmt.Errorf("measure %s, %s: %w", lang.title, kind.what, err)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

func (t *PoolTimes) measure(ctx context.Context, s PoolSetup, lang language, pool, empty bool) (err error) {
	begin := time.Now()
	g, err := s.Open(pool, empty)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	warm := make(chan struct{})
	go func() {
		defer close(warm)
		if pool {
			g.Executor.Warm(ctx)
		}
	}()
	defer func() { <-warm }()
	if _, err := run(ctx, g, lang.name, lang.line); err != nil {
		return err
	}
	t.First = milliseconds(time.Since(begin))
	b := &Bench{gateway: g}
	var following []float64
	for range s.Runs {
		if pool && !b.await(ctx, lang) {
			return errors.New("no sandbox waits for programs")
		}
		if err := appendTime(ctx, &following, func() error { _, err := run(ctx, g, lang.name, lang.line); return err }); err != nil {
			return err
		}
	}
	t.Following = stats.Summarize(following)
	return nil
}
