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
	sessions   = 20
	executions = 200
)

// sustained has 20 sessions run 200 programs against one serve, half of them in either language.
func sustained(ctx context.Context, b *bench) (err error) {
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
	if err := g.quiet(ctx, 0); err != nil {
		return err
	}
	begin := time.Now()
	took, errs := storm(g.answers(ctx))
	whole := time.Since(begin).Seconds()
	bare, wrong := storm(func(_ int, l language, _ string) (float64, error) { return l.bare(ctx) })
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	b.add(row{Case: "200 programs of 20 sessions", Unit: "ms", Compared: stats.Compare(took, bare), Bars: []bar{atMost("errors", 0, float64(len(errs)))},
		Note: fmt.Sprintf("%.1f a second, both languages by turns, serve --http; bare: the one line in 200 interpreters, 20 at once%s", float64(len(took))/whole, firstOf(errs))})
	return nil
}

func firstOf(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return "; first error: " + errs[0].Error()
}

// answers has a client run a program that prints a text.
func (g *gate) answers(ctx context.Context) func(client int, l language, text string) (float64, error) {
	return func(client int, l language, text string) (float64, error) {
		code := map[string]string{"python": "print(" + text + ")", "typescript": "console.log(" + text + ")"}[l.name]
		return g.execute(ctx, client, l, code, text)
	}
}

// storm runs the programs, each session one after the other.
func storm(run func(client int, l language, text string) (float64, error)) (took []float64, errs []error) {
	var work sync.WaitGroup
	var mu sync.Mutex
	for client := range sessions {
		work.Go(func() {
			for i := range executions / sessions {
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
