package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/bench/procs"
	"sallyport/bench/stats"
	"sallyport/bench/table"
)

const (
	// barGrowth is the throughput of several workers, for each of them, in parts of that of the first number.
	barGrowth = 0.9
	// series is how many programs each seat runs.
	series = 3
	// costPrograms is how many programs, and costRounds how many of those with calls, processor time is measured of.
	costPrograms, costRounds = 120, 10
)

// The rows of processor time; the name of the part follows.
const (
	costShared   = "processor time a program"
	costOwn      = "processor time a program in a sandbox of its own"
	costCall     = "processor time a call"
	costRecorded = "processor time a recorded call"
	recordRow    = "record on NATS, acknowledged"

	partGateway, partServers, partWorker = ", gateway", ", NATS server", ", worker"
)

// crewRow is the row of a number of workers.
func crewRow(n, seats int) string {
	return fmt.Sprintf("programs a second that wait, %d x %d seats", n, seats)
}

// usage is the processor time of the parts of a cluster, in milliseconds. That of a worker has its sandboxes in it.
type usage struct{ gateway, servers, worker float64 }

// usedTime returns what all parts have used so far.
func (s *site) usedTime() (u usage) {
	procs.Reap(s.pids()...) // which counts what has ended
	self := os.Getpid()
	for pid, p := range procs.Of(self, "no such folder") {
		switch {
		case pid == self:
		case pid == s.gateways[there].command.Process.Pid:
			u.gateway = p.Used()
		case p.Name == filepath.Base(os.Args[0]): // this program is the servers, too
			u.servers += p.Used()
		default: // also parts of sandboxes that have lost their parents
			u.worker += p.Used()
		}
	}
	u.worker += procs.ChildrenTime()
	return u
}

func (u usage) minus(before usage) usage {
	return usage{u.gateway - before.gateway, u.servers - before.servers, u.worker - before.worker}
}

func (u usage) times(n float64) usage { return usage{u.gateway * n, u.servers * n, u.worker * n} }

// crew starts a gateway with so many workers, and passes it to use.
func (b *bench) crew(ctx context.Context, n int, use func(s *site) error) error {
	return b.withSite(ctx, func(s *site) error {
		for i := range n {
			if err := s.join(ctx, fmt.Sprintf("w%d", i+1)); err != nil {
				return err
			}
		}
		sandbox := fmt.Sprintf("remote: workers, parallel: %d, queue: 10000, queue_wait: 10m", min(1024, n*b.seats))
		if err := s.serve(ctx, there, sandbox); err != nil {
			return err
		}
		if err := s.allJoined(ctx, n); err != nil {
			return err
		}
		return use(s)
	})
}

// allJoined waits until the gateway knows so many workers.
func (s *site) allJoined(ctx context.Context, n int) error {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c := exec.CommandContext(ctx, s.b.sallyport, "cluster", "status", "--config", s.dir+"/"+there+".yaml")
		c.Env = s.gateways[there].command.Env
		out, err := c.CombinedOutput()
		if err == nil && strings.Count(string(out), " ready ") == n {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%d workers have not joined: %s", n, out), err)
		}
	}
}

// cost measures the processor time of a program and of a call.
func cost(ctx context.Context, b *bench) error {
	return b.crew(ctx, 1, func(s *site) error {
		shared, err := s.using(ctx, func() error { return s.many(ctx, 4, costPrograms, python(lineProgram)) })
		if err != nil {
			return err
		}
		b.addCost(costShared, "one line, four at once, with the records of it and with the sandboxes that replace those used up", shared.times(1./costPrograms))
		own, err := s.using(ctx, func() error {
			return s.many(ctx, 4, costPrograms, program{Code: lineProgram, Language: "python", Isolation: "program"})
		})
		if err != nil {
			return err
		}
		b.addCost(costOwn, "the same, each in a sandbox that no other program uses", own.times(1./costPrograms))
		calls, err := s.costOfCall(ctx, "echo", shared)
		if err != nil {
			return err
		}
		b.addCost(costCall, fmt.Sprintf("programs with %d calls that are answered at once, less what such a program takes without them", manyCalls), calls)
		recorded, err := s.costOfCall(ctx, "change", shared)
		b.addCost(costRecorded, "the same of a tool that may change something", recorded)
		return err
	})
}

// costOfCall measures the processor time of a call of a tool, from programs with many; costPrograms without calls have taken shared.
func (s *site) costOfCall(ctx context.Context, tool string, shared usage) (usage, error) {
	all, err := s.using(ctx, func() error { return s.many(ctx, 1, costRounds, python(fmt.Sprintf(manyProgram, tool))) })
	return all.minus(shared.times(float64(costRounds) / costPrograms)).times(1. / (costRounds * manyCalls)), err
}

// addCost adds rows of what each part used.
func (b *bench) addCost(name, note string, u usage) {
	for _, part := range []struct {
		name string
		used float64
	}{{partGateway, u.gateway}, {partServers, u.servers}, {partWorker, u.worker}} {
		b.add(table.Row{Case: name + part.name, Language: "python", Unit: "ms", Compared: stats.Compare([]float64{part.used}, nil), Note: note})
	}
}

// using returns what all parts use for what do does, until they rest again.
func (s *site) using(ctx context.Context, do func() error) (usage, error) {
	if err := procs.WaitQuiet(ctx, s.processes, 1); err != nil {
		return usage{}, err
	}
	before := s.usedTime()
	if err := do(); err != nil {
		return usage{}, err
	}
	err := procs.WaitQuiet(ctx, s.processes, 1)
	return s.usedTime().minus(before), err
}

// many runs a program n times, so many at once.
func (s *site) many(ctx context.Context, atOnce, n int, p program) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	errs := make([]error, atOnce)
	var work sync.WaitGroup
	for i := range atOnce {
		work.Go(func() {
			for range next {
				if _, err := s.execute(ctx, there, p); err != nil {
					errs[i] = errors.Join(errs[i], err)
				}
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// throughput measures programs that wait on more and more workers.
func throughput(ctx context.Context, b *bench) error {
	first := 0.0 // of one worker
	for _, n := range b.workers {
		err := b.crew(ctx, n, func(s *site) error {
			rate, memory, u, err := s.waiting(ctx, n)
			if err != nil {
				return err
			}
			b.addThroughput(n, rate, &first, memory, u)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d workers: %w", n, err)
		}
	}
	return nil
}

// waiting runs programs that wait in all seats, and returns how many of them ended in a second, the memory that they took,
// and the processor time of one.
func (s *site) waiting(ctx context.Context, n int) (rate, memory float64, each usage, err error) {
	seats, free := min(1024, n*s.b.seats), available()
	waits := python(fmt.Sprintf(waitProgram, s.b.waits))
	if err := s.many(ctx, seats, seats, python(fmt.Sprintf(waitProgram, 1))); err != nil { // so that sandboxes are there
		return 0, 0, usage{}, err
	}
	before := s.usedTime()
	low := sample()
	begin := time.Now()
	err = s.many(ctx, seats, seats*series, waits)
	took := time.Since(begin).Seconds()
	memory = free - low()
	all := s.usedTime().minus(before)
	count := float64(seats * series)
	return count / took, memory / float64(seats), all.times(1 / count), err
}

func (b *bench) addThroughput(n int, rate float64, first *float64, memory float64, u usage) {
	ideal := float64(n*b.seats) / (float64(b.waits) * waitTime.Seconds())
	r := table.Row{Case: crewRow(n, b.seats), Language: "python", Unit: "1/s", Compared: stats.CompareRates([]float64{rate}, []float64{ideal}),
		Note: fmt.Sprintf("each makes %d calls of 0.5 s, one after the other, %d programs; bare: what as many seats do if nothing but the calls takes time; a program took %.1f ms of processor time (gateway %.1f, NATS %.1f, workers %.1f), a seat %.1f MB of the machine's memory",
			b.waits, n*b.seats*series, u.gateway+u.servers+u.worker, u.gateway, u.servers, u.worker, memory)}
	if *first == 0 {
		*first = rate / float64(n)
	} else {
		r.Bars = []table.Bar{table.AtLeast("per worker, of one", barGrowth, rate/float64(n) / *first)}
	}
	b.add(r)
}
