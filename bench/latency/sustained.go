package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/bench/stats"
)

const (
	// There are so many sessions, each of which runs so many programs in a round.
	sessions, each, rounds = 20, 5, 4
)

// measureSustained runs programs in 20 sessions against one serve, half of them in each language, alternating with as many
// interpreters.
func measureSustained(ctx context.Context, b *bench) (err error) {
	g, err := b.listen(ctx, setup{}, sessions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, l := range languages() {
		if _, err := g.line(ctx, l); err != nil {
			return err
		}
	}
	var ours, bare round
	for range rounds {
		if err := g.waitQuiet(ctx, 0); err != nil {
			return err
		}
		ours.runBlock(g.answers(ctx))
		if err := g.waitQuiet(ctx, 0); err != nil { // the refill is not to be on the interpreters' clock
			return err
		}
		bare.runBlock(func(_ int, l language, _ string) (float64, error) { return l.bare(ctx) })
	}
	if err := errors.Join(bare.errs...); err != nil {
		return err
	}
	name := fmt.Sprintf("%d sessions at once: ", sessions)
	b.add(row{Case: name + "one program", Unit: "ms", Compared: stats.Compare(ours.took, bare.took), Bars: []bar{atMost("errors", 0, float64(len(ours.errs)))},
		Note: fmt.Sprintf("both languages by turns, serve --http; bare: the one line in as many interpreters, %d at once%s", sessions, firstOf(ours.errs))})
	b.add(row{Case: name + "programs a second", Unit: "1/s", Compared: stats.CompareRates(ours.rates, bare.rates),
		Note: fmt.Sprintf("the same, in blocks of %d programs, ours and bare by turns; when a block begins, sandboxes wait; the clock runs while more are made", sessions*each)})
	return nil
}

// round holds the times and rates of many sessions at once, block by block.
type round struct {
	took, rates []float64
	errs        []error
}

// runBlock runs all sessions concurrently, each with its programs in sequence.
func (r *round) runBlock(run func(client int, l language, text string) (float64, error)) {
	begin := time.Now()
	took, errs := runSessions(run)
	r.rates = append(r.rates, float64(len(took))/time.Since(begin).Seconds())
	r.took, r.errs = append(r.took, took...), append(r.errs, errs...)
}

func firstOf(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return "; first error: " + errs[0].Error()
}

// answers has a client run a program that prints a text.
func (g *instance) answers(ctx context.Context) func(client int, l language, text string) (float64, error) {
	return func(client int, l language, text string) (float64, error) {
		code := map[string]string{"python": "print(" + text + ")", "typescript": "console.log(" + text + ")"}[l.name]
		return g.execute(ctx, client, l, code, text)
	}
}

// runSessions runs the programs of all sessions, each session in sequence.
func runSessions(run func(client int, l language, text string) (float64, error)) (took []float64, errs []error) {
	var work sync.WaitGroup
	var mu sync.Mutex
	for client := range sessions {
		work.Go(func() {
			for i := range each {
				l := languages()[(client+i)%2]
				one, err := run(client, l, fmt.Sprint(1000+client*100+i))
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					took = append(took, one)
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return took, errs
}
