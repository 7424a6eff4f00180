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
	// crowd is how many sessions of another principal run programs without a pause.
	crowd = 10
	// barNeighbor is how many times longer a lone program may take beside them.
	barNeighbor = 2
	// neighborPause is the time between two lone programs.
	neighborPause = time.Second
)

// measureNeighbor measures lone programs of one principal, at rest and while sessions of another run programs without a pause.
func measureNeighbor(ctx context.Context, b *bench) (err error) {
	g, err := b.listen(ctx, setup{principals: true}, 1+crowd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	l := languages()[0]
	for range 3 {
		if _, err := g.line(ctx, l); err != nil {
			return err
		}
	}
	atRest, err := g.loneLines(ctx, l, b.n)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for client := range crowd {
		busy.Go(func() {
			for ctx.Err() == nil {
				_, _ = g.execute(ctx, 1+client, l, l.line, l.prints) // only the lone program counts
			}
		})
	}
	_, err = g.loneLines(ctx, l, 3) // until the crowd has its sandboxes
	var beside []float64
	if err == nil {
		beside, err = g.loneLines(ctx, l, b.n)
	}
	stop()
	busy.Wait()
	if err != nil {
		return err
	}
	r := row{Case: fmt.Sprintf("lone program, beside %d busy sessions of another principal", crowd), Language: l.name, Unit: "ms", Compared: stats.Compare(beside, atRest)}
	r.Bars = []bar{atMost("ratio", barNeighbor, r.Ratio)}
	r.Note = "one program a second; bare: the same program while nothing else runs"
	b.add(r)
	return nil
}

// loneLines runs the program of one line for the first client, with pauses.
func (g *instance) loneLines(ctx context.Context, l language, n int) (took []float64, err error) {
	for range n {
		time.Sleep(neighborPause)
		one, err := g.line(ctx, l)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}
