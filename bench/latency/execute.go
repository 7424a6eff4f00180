package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/stats"
)

const (
	// The bars of what a program of one line may take, in milliseconds.
	barEmpty   = 250
	barNothing = 1500
	// What one of a series of programs may take, in milliseconds, and how many a second there must be.
	barSeries     = 22
	barSeriesRate = 45
)

// withInstance starts serve, warms it up with the line, and passes it to use.
func (b *bench) withInstance(ctx context.Context, s setup, l language, use func(g *instance) error) (err error) {
	g, err := b.start(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for range 3 {
		if _, err := g.line(ctx, l); err != nil {
			return err
		}
	}
	return use(g)
}

// lines are how long the line took by turns in serve and in the interpreter alone, and what processor time that one used.
type lines struct{ ours, bare, bareUsed []float64 }

// measureInterleaved measures the line in serve and in the interpreter alone by turns, each while serve and its processes
// are idle; the interpreter, which does not load serve, goes first.
func (b *bench) measureInterleaved(ctx context.Context, g *instance, l language, n, waiting int) (all lines, err error) {
	if b.poolless {
		waiting = 0
	}
	for range n {
		if err := g.waitQuiet(ctx, waiting); err != nil {
			return lines{}, err
		}
		alone, used, err := l.alone(ctx)
		if err != nil {
			return lines{}, err
		}
		took, err := g.line(ctx, l)
		if err != nil {
			return lines{}, err
		}
		all.ours, all.bare, all.bareUsed = append(all.ours, took), append(all.bare, alone), append(all.bareUsed, used)
	}
	return all, nil
}

// warmPool measures a program that finds a waiting sandbox: the default settings. Refilling the pool is not in the time,
// since each program starts after it; its processor time is a row of its own.
func warmPool(ctx context.Context, b *bench, l language) error {
	return b.withInstance(ctx, setup{}, l, func(g *instance) error {
		var all lines
		var used, bareUsed []float64
		for range b.n {
			block, spent, err := b.block(ctx, g, l)
			if err != nil {
				return err
			}
			all.ours, all.bare = append(all.ours, block.ours...), append(all.bare, block.bare...)
			used, bareUsed = append(used, spent), append(bareUsed, sum(block.bareUsed)/blockSize)
		}
		r := comparedRow("warm pool (one waits, each run uses one up)", l, all.ours, all.bare)
		r.Bars = []bar{atMost("ratio", l.ratio, r.Ratio), steady(r.Summary)}
		r.Note = "default settings; each program starts when another sandbox waits and serve rests: what it takes to replace the sandbox is in the row below, not in this one"
		b.add(r)
		r = comparedRow("processor time a program, refill included", l, used, bareUsed)
		r.Note = fmt.Sprintf("of serve and all that it started, until the next sandbox waits; means of %d programs; bare: of the interpreter alone", blockSize)
		b.add(r)
		return nil
	})
}

// blockSize is how many programs processor time is measured of at once: it is counted in steps of 10 ms, process by process.
const blockSize = 10

// block measures some lines, and the processor time that each took, its share of refilling the pool included.
func (b *bench) block(ctx context.Context, g *instance, l language) (all lines, each float64, err error) {
	waiting := 1
	if b.poolless {
		waiting = 0
	}
	if err := g.waitQuiet(ctx, waiting); err != nil {
		return lines{}, 0, err
	}
	before := g.usedTime()
	if all, err = b.measureInterleaved(ctx, g, l, blockSize, waiting); err != nil {
		return lines{}, 0, err
	}
	if err := g.waitQuiet(ctx, waiting); err != nil {
		return lines{}, 0, err
	}
	return all, (g.usedTime() - before - sum(all.bareUsed)) / blockSize, nil
}

func sum(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}

// protocol is a call that is refused before anything is run: what client, pipe and face cost.
func protocol(ctx context.Context, b *bench) error {
	python := languages()[0]
	return b.withInstance(ctx, setup{}, python, func(g *instance) error {
		if err := g.waitQuiet(ctx, 0); err != nil {
			return err
		}
		session, err := b.alone(ctx)
		if err != nil {
			return err
		}
		took, bare, err := byTurns(ctx, b.n, func() {},
			func() (float64, error) { return g.call(ctx, 0, python, " ", "code is blank", true) },
			func() (float64, error) { return since(func() error { return echo(ctx, session) }) })
		if err := errors.Join(err, session.Close()); err != nil {
			return err
		}
		b.add(row{Case: "protocol alone", Unit: "ms", Compared: stats.Compare(took, bare),
			Note: "execute_code with a blank program, which is refused at once; bare: the SDK's client calls the least server of the SDK, over stdio too"})
		return nil
	})
}

// alone connects the SDK's client to serve's upstream, without serve.
func (b *bench) alone(ctx context.Context) (*mcp.ClientSession, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self)
	command.Env = []string{upstreamVar + "=" + echoing}
	return client().Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
}

// seriesLength is how many programs follow each other without a pause.
const seriesLength = 50

// backToBack measures series of programs without a pause, alternating with series of the interpreter alone.
func backToBack(ctx context.Context, b *bench, l language) error {
	return b.withInstance(ctx, setup{}, l, func(g *instance) error {
		var ours, bare series
		for range max(2, b.n/10) {
			if err := bare.run(func() (float64, error) { return l.bare(ctx) }, nil); err != nil {
				return err
			}
			if err := g.waitQuiet(ctx, 1); err != nil {
				return err
			}
			err := ours.run(func() (float64, error) { return g.line(ctx, l) }, func() (float64, error) {
				err := g.waitQuiet(ctx, 1)
				return g.usedTime(), err
			})
			if err != nil {
				return err
			}
		}
		addSeries(b, l, ours, bare)
		return nil
	})
}

// series holds the times of programs, and the rate and the processor time of each series.
type series struct{ took, rates, used []float64 }

// run runs a series. usedTime waits until nothing runs and returns the processor time used so far; nil for none.
func (s *series) run(one, usedTime func() (float64, error)) error {
	before := 0.0
	if usedTime != nil {
		var err error
		if before, err = usedTime(); err != nil {
			return err
		}
	}
	begin := time.Now()
	for range seriesLength {
		took, err := one()
		if err != nil {
			return err
		}
		s.took = append(s.took, took)
	}
	s.rates = append(s.rates, seriesLength/time.Since(begin).Seconds())
	if usedTime == nil {
		return nil
	}
	after, err := usedTime()
	s.used = append(s.used, (after-before)/seriesLength)
	return err
}

func addSeries(b *bench, l language, ours, bare series) {
	const name = "warm pool, one right after the other"
	r := comparedRow(name, l, ours.took, bare.took)
	r.Bars = []bar{atMost("p50 ms", barSeries, r.P50)}
	r.Note = fmt.Sprintf("series of %d without a pause", seriesLength)
	b.add(r)
	r = row{Case: name + ": programs a second", Language: l.name, Unit: "1/s", Compared: stats.CompareRates(ours.rates, bare.rates)}
	r.Bars = []bar{atLeast("p50 1/s", barSeriesRate, r.P50)}
	b.add(r)
	r = row{Case: name + ": processor time a program", Language: l.name, Unit: "ms", Compared: stats.Compare(ours.used, nil)}
	r.Bars = []bar{atMost("p50 ms", l.seriesUsed, r.P50)}
	r.Note = "of serve and all that it started, the sandbox that is made at the end of a series included"
	b.add(r)
}

// withTypeChecker is warm with type checkers, which check each program while it runs.
func withTypeChecker(ctx context.Context, b *bench, l language) error {
	return b.withInstance(ctx, setup{checkers: true}, l, func(g *instance) error {
		all, err := b.measureInterleaved(ctx, g, l, b.n, 2)
		if err != nil {
			return err
		}
		r := comparedRow("warm pool, with a type checker", l, all.ours, all.bare)
		r.Note = "pyright and tsc in sandboxes of their own"
		b.add(r)
		return nil
	})
}

// emptyPool measures without a pool: each program's sandbox is restored from the snapshot.
func emptyPool(ctx context.Context, b *bench, l language) error {
	return b.withInstance(ctx, setup{pool: "{min: 0, max: 0}"}, l, func(g *instance) error {
		all, err := b.measureInterleaved(ctx, g, l, b.n, 0)
		if err != nil {
			return err
		}
		r := comparedRow("empty pool", l, all.ours, all.bare)
		r.Bars = []bar{atMost("p50 ms", barEmpty, r.P50)}
		r.Note = "pool.max 0: restored on demand"
		b.add(r)
		return nil
	})
}

// fresh starts serve again n times and has it run one program. A nil folder is
// a new one each time. The times are from the start of the process, and from the call.
func (b *bench) fresh(ctx context.Context, l language, n int, folder func() string) (begun, called, bare []float64, err error) {
	for range n {
		alone, err := l.bare(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		begin := time.Now()
		g, err := b.start(ctx, setup{dir: folder()})
		if err != nil {
			return nil, nil, nil, err
		}
		took, err := g.line(ctx, l)
		whole := milliseconds(time.Since(begin))
		if err := errors.Join(err, g.close()); err != nil {
			return nil, nil, nil, err
		}
		begun, called, bare = append(begun, whole), append(called, took), append(bare, alone)
	}
	return begun, called, bare, nil
}

// coldStart measures the first program on a machine: no snapshot, no cache.
func coldStart(ctx context.Context, b *bench, l language) error {
	begun, called, bare, err := b.fresh(ctx, l, max(30, b.n/2), func() string { return "" })
	if err != nil {
		return err
	}
	first := comparedRow("from nothing, since the call", l, called, bare)
	first.Note = "no snapshot yet; the call comes right after the handshake"
	whole := comparedRow("from nothing, since serve's start", l, begun, bare)
	for _, r := range []*row{&first, &whole} {
		r.Bars = []bar{atMost("p50 ms", barNothing, r.P50)}
		b.add(*r)
	}
	return nil
}

// snapshotStart measures the first program of a serve that finds an earlier one's snapshot.
func snapshotStart(ctx context.Context, b *bench, l language) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := b.withInstance(ctx, setup{dir: dir}, l, func(g *instance) error { return g.waitQuiet(ctx, 0) }); err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}
	begun, called, bare, err := b.fresh(ctx, l, max(30, b.n/2), func() string { return dir })
	if err != nil {
		return err
	}
	first := comparedRow("snapshot on disk, since the call", l, called, bare)
	first.Note = "serve was restarted"
	b.add(first)
	b.add(comparedRow("snapshot on disk, since serve's start", l, begun, bare))
	return nil
}
